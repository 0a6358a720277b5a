// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The exact split of the tokens of a batch over the copies of experts.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/lvalue_span.hpp>
#include <omnibal/experts/split_experts/split_flow.hpp>
#include <omnibal/experts/token_counts.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The division of the tokens of one batch among the copies of their experts.
struct expert_split {
  /// The tokens of each slot, in the order of the placement.
  std::vector<std::int64_t> tokens{};
  /// The tokens of each rank, including its `first_tokens`.
  std::vector<std::int64_t> rank_tokens{};
  /// The largest number of tokens of a rank. No split over the same copies has a smaller largest
  /// number.
  std::int64_t largest = 0;
  /// The proof that `largest` is optimal: a set of ranks, in ascending order, whose tokens cannot
  /// go to other ranks, because all copies of their experts are on these ranks. The mean of their
  /// tokens, rounded up, is `largest`.
  std::vector<std::uint32_t> full_ranks{};

  [[nodiscard]] friend bool operator==(expert_split const&, expert_split const&) = default;
};

struct split_experts_options {
  /// The tokens that each rank has in addition to the split tokens, such as the tokens of shared
  /// experts; empty if there are none.
  detail::lvalue_span<std::int64_t> first_tokens = {};
};

/// The memory of `split_experts`, and its last result. Keep one workspace from batch to batch, so
/// that later calls need not allocate.
class split_experts_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] expert_split const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct split_experts_fn;

  std::vector<std::int64_t> tokens_;
  detail::split_flow flow_;
  expert_split result_;
};

struct split_experts_fn {
  /// Splits the tokens of each expert over its copies so that the largest number of tokens of a
  /// rank is as small as possible. The range `tokens` has the number of tokens of each expert in
  /// one batch. The range `slots` has the expert of each slot, slots fastest, then ranks, as
  /// `expert_placement::experts` of one layer; each rank has the same number of slots. An expert
  /// without a copy must have no tokens.
  ///
  /// The optimum is the maximum, over all sets of ranks, of the mean number of tokens that can only
  /// go to ranks of the set, rounded up. A flow finds the optimum. First the tokens of each expert
  /// go to its copies on the ranks with the smallest loads. Then tokens move along augmenting paths
  /// from the ranks above the current bound to ranks below it. If there is no path, the bound rises
  /// to the mean of the reached ranks. Several splits may be optimal. The result does not prefer
  /// particular copies, such as copies on the rank on which the tokens are.
  ///
  /// Complexity: a search for paths is linear in the number of pairs of copies of the same expert.
  /// Memory: 8 bytes for each expert, 24 for each slot and 40 for each rank. Determinism: portable.
  /// Errors: `std::invalid_argument` that names the argument for negative tokens, no ranks, and a
  /// number of slots that is not a multiple of the ranks. It is also thrown for an unknown expert,
  /// tokens of an expert without a slot, and `first_tokens` with another number of elements than
  /// ranks. Further errors: `std::length_error` above 2^32 - 1 experts, slots or ranks;
  /// `std::overflow_error` if the sum of all tokens reaches 2^63. Source: Dinkelbach, Management
  /// Science 13, 1967, for Newton's method on ratios.
  template <token_range Tokens>
  [[nodiscard]] expert_split operator()(Tokens const& tokens, std::span<std::uint32_t const> slots,
                                        std::size_t ranks,
                                        split_experts_options const& options = {}) const {
    split_experts_workspace workspace;
    (*this)(tokens, slots, ranks, options, workspace);
    return std::move(workspace.result_);
  }

  /// Splits tokens in `workspace`, for a training loop. A call allocates only if it requires more
  /// memory than all earlier calls. The workspace contains the result.
  template <token_range Tokens>
  expert_split const& operator()(Tokens const& tokens, std::span<std::uint32_t const> slots,
                                 std::size_t ranks, split_experts_options const& options,
                                 split_experts_workspace& workspace) const {
    detail::check_positive(name, "ranks", ranks);
    detail::check_number(name, "ranks", ranks);
    detail::copy_tokens(name, tokens, workspace.tokens_);
    check(workspace.tokens_, slots, ranks, options);
    auto& result = workspace.result_;
    if (options.first_tokens.empty()) {
      result.rank_tokens.assign(ranks, 0);
    } else {
      result.rank_tokens.assign(options.first_tokens.begin(), options.first_tokens.end());
    }
    auto& flow = workspace.flow_;
    auto const unplaced = flow.run(workspace.tokens_, slots, result.tokens, result.rank_tokens);
    if (unplaced != workspace.tokens_.size()) {
      detail::throw_invalid(name, "slots has none for expert ", unplaced, " with ",
                            workspace.tokens_[unplaced], " tokens, must have one");
    }
    result.largest = flow.largest();
    result.full_ranks.assign(flow.cut().begin(), flow.cut().end());
    return result;
  }

  /// Splits tokens in `workspace` with default options.
  template <token_range Tokens>
  expert_split const& operator()(Tokens const& tokens, std::span<std::uint32_t const> slots,
                                 std::size_t ranks, split_experts_workspace& workspace) const {
    return (*this)(tokens, slots, ranks, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "split_experts";

  static void check(std::span<std::int64_t const> tokens, std::span<std::uint32_t const> slots,
                    std::size_t ranks, split_experts_options const& options) {
    detail::check_index_count(name, "slots", slots.size());
    if (slots.size() % ranks != 0) {
      detail::throw_invalid(name, "slots has ", slots.size(), " values, must have a multiple of ",
                            ranks, " ranks");
    }
    for (std::size_t s = 0; s != slots.size(); ++s) {
      if (slots[s] < tokens.size()) continue;
      detail::throw_invalid(name, "slots[", s, "] is ", slots[s], ", must be below the ",
                            tokens.size(), " experts");
    }
    if (options.first_tokens.empty()) return;
    detail::check_size(name, "options.first_tokens", options.first_tokens.size(), ranks, "ranks");
    std::int64_t sum = 0;
    for (std::int64_t const count : tokens) sum += count;
    for (std::size_t r = 0; r != ranks; ++r) {
      detail::check_weight(name, "options.first_tokens", r, options.first_tokens[r]);
      detail::checked_add(name, "the sum of the tokens", sum, options.first_tokens[r]);
    }
  }
};

/// Splits the tokens of each expert over its copies so that the largest number of tokens of a rank
/// is as small as possible; see `split_experts_fn`.
inline constexpr split_experts_fn split_experts{};

}  // namespace omnibal::inline v0
