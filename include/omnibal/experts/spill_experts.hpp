// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fewest copies of experts on foreign ranks with which no rank exceeds a cap on its tokens.

#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/order_search.hpp>
#include <omnibal/detail/room_filling.hpp>
#include <omnibal/detail/spill_bound.hpp>
#include <omnibal/detail/spill_problem.hpp>
#include <omnibal/experts/spill_plan.hpp>
#include <omnibal/experts/token_counts.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct spill_experts_options {
  /// The largest number of foreign copies on a rank; unlimited without a value.
  std::optional<std::size_t> slots = {};
  /// The share by which the tokens of a rank may exceed the mean number of tokens of a rank,
  /// rounded up.
  double max_overload = 0.1;
  omnibal::effort effort = omnibal::effort::normal;
  /// The seed of the orders that the search tries.
  std::uint64_t seed = 0;
};

/// The memory of `spill_experts`, and its last result. Keep one workspace from batch to batch, so
/// that later calls need not allocate.
class spill_experts_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] spill_plan const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct spill_experts_fn;

  std::vector<std::int64_t> tokens_;
  detail::spill_problem problem_;
  std::vector<std::int64_t> bound_rooms_;
  std::vector<std::int64_t> bound_surpluses_;
  std::vector<detail::free_room> rooms_;
  std::vector<detail::free_room> taken_;
  std::vector<std::uint32_t> chosen_;
  std::vector<detail::expert_tokens> experts_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> candidate_;
  std::vector<foreign_copy> other_copies_;
  spill_plan result_;
};

struct spill_experts_fn {
  /// Plans the fewest copies of experts on foreign ranks with which no rank exceeds a cap, for the
  /// tokens of one batch. The range `tokens` has the number of tokens of each expert, and `home`
  /// the rank that keeps its weights. A foreign copy costs the transfer of the weights of an
  /// expert; the tokens of an expert are split over its home and its copies. The cap is the mean
  /// number of tokens of a rank, rounded up, times `1 + options.max_overload`.
  ///
  /// Each rank above the cap, a donor, sends exactly its surplus. The donors choose one after the
  /// other, from the largest surplus on. Each donor selects the fewest rooms below the cap that
  /// hold its surplus, and among such sets of rooms the set that leaves the least room free. The
  /// search then changes the order of the donors at random and keeps an order that does not need
  /// additional copies. It ends if the number of copies equals the lower bound, or after the number
  /// of orders that `options.effort` allows. No rank above the cap receives a copy, and no rank
  /// below it sends tokens. In rare cases this costs a further copy. To lower the largest number of
  /// tokens further with the same copies, call `split_experts`.
  ///
  /// Complexity: at most 16 orders of the donors with `fast`, 256 with `normal` and 16,384 with
  /// `thorough`. Memory: 32 bytes for each expert and 100 for each rank. Determinism: portable.
  /// Errors: `std::invalid_argument` that names the argument for negative tokens, no ranks, an
  /// unknown rank, a home for another number of experts, and a negative or infinite overload.
  /// Further errors: `std::length_error` above 2^32 - 1 experts or ranks; `std::overflow_error` if
  /// the sum of the tokens exceeds 2^63 - 1. Source: Nguyen, Pandit, Xu, Xiong and Joty,
  /// Least-Loaded Expert Parallelism, 2026, for the problem; the method is our own.
  template <token_range Tokens>
  [[nodiscard]] spill_plan operator()(Tokens const& tokens, std::span<std::uint32_t const> home,
                                      std::size_t ranks,
                                      spill_experts_options const& options = {}) const {
    spill_experts_workspace workspace;
    (*this)(tokens, home, ranks, options, workspace);
    return std::move(workspace.result_);
  }

  /// Plans copies in `workspace`, for a training loop. A call allocates only if it requires more
  /// memory than all earlier calls. The workspace contains the result.
  template <token_range Tokens>
  spill_plan const& operator()(Tokens const& tokens, std::span<std::uint32_t const> home,
                               std::size_t ranks, spill_experts_options const& options,
                               spill_experts_workspace& workspace) const {
    detail::check_positive(name, "ranks", ranks);
    detail::check_number(name, "ranks", ranks);
    detail::check_max_overload(name, options.max_overload);
    detail::copy_tokens(name, tokens, workspace.tokens_);
    detail::check_size(name, "home", home.size(), workspace.tokens_.size(), "experts");
    auto& result = workspace.result_;
    result.rank_tokens.assign(ranks, 0);
    std::int64_t total = 0;
    for (std::size_t e = 0; e != home.size(); ++e) {
      if (home[e] >= ranks) {
        detail::throw_invalid(name, "home[", e, "] is ", home[e], ", must be below the ", ranks,
                              " ranks");
      }
      result.rank_tokens[home[e]] += workspace.tokens_[e];
      total += workspace.tokens_[e];
    }
    std::int64_t const mean = detail::ceiled_mean(total, static_cast<std::int64_t>(ranks));
    result.cap = std::min(total, detail::with_overload(mean, options.max_overload));
    workspace.problem_.find(workspace.tokens_, home, result.rank_tokens, result.cap);
    workspace.bound_rooms_.resize(ranks);
    workspace.bound_surpluses_.resize(ranks);
    detail::spill_bound bound(workspace.bound_rooms_.data(), workspace.bound_surpluses_.data());
    result.fewest_copies = bound(workspace.problem_.lists(), result.cap);
    std::size_t const slots = options.slots.value_or(std::numeric_limits<std::size_t>::max());
    std::int64_t const unplaced = search(workspace, slots, options);
    std::size_t const copies = result.copies.size();
    result.proven = unplaced == 0 && copies == result.fewest_copies;
    result.status = detail::spill_status(unplaced, slots, result.fewest_copies, ranks);
    write(workspace, home);
    return result;
  }

  /// Plans copies in `workspace` with default options.
  template <token_range Tokens>
  spill_plan const& operator()(Tokens const& tokens, std::span<std::uint32_t const> home,
                               std::size_t ranks, spill_experts_workspace& workspace) const {
    return (*this)(tokens, home, ranks, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "spill_experts";

  /// Searches for an order of the donors that requires few copies, and writes the copies to
  /// `result.copies`. Returns the number of tokens above the cap for which there is no room.
  [[nodiscard]] static std::int64_t search(spill_experts_workspace& workspace, std::size_t slots,
                                           spill_experts_options const& options) {
    auto const& problem = workspace.problem_;
    auto& result = workspace.result_;
    std::size_t const donors = problem.donors.size();
    std::size_t const most_copies = donors + problem.experts.size() + problem.rooms.size();
    result.copies.resize(most_copies);
    workspace.other_copies_.resize(most_copies);
    workspace.rooms_.resize(problem.rooms.size());
    workspace.taken_.resize(problem.rooms.size());
    workspace.chosen_.resize(problem.rooms.size());
    workspace.experts_.resize(problem.experts.size());
    workspace.order_.resize(donors);
    workspace.candidate_.resize(donors);
    auto const found = detail::search_orders(
        problem.lists(),
        {slots, result.fewest_copies, detail::orders_of(options.effort), options.seed},
        {workspace.rooms_.data(), workspace.taken_.data(), workspace.chosen_.data(),
         workspace.experts_.data()},
        {workspace.order_.data(), workspace.candidate_.data(), result.copies.data(),
         workspace.other_copies_.data()});
    if (found.is_other) std::swap(result.copies, workspace.other_copies_);
    result.copies.resize(found.count);
    return found.unplaced;
  }

  /// Writes the tokens of homes and ranks that follow from the copies.
  static void write(spill_experts_workspace& workspace, std::span<std::uint32_t const> home) {
    auto& result = workspace.result_;
    std::sort(result.copies.begin(), result.copies.end(), [](auto const& left, auto const& right) {
      return left.expert != right.expert ? left.expert < right.expert : left.rank < right.rank;
    });
    result.home_tokens.assign(workspace.tokens_.begin(), workspace.tokens_.end());
    for (foreign_copy const& copy : result.copies) {
      result.home_tokens[copy.expert] -= copy.tokens;
      result.rank_tokens[home[copy.expert]] -= copy.tokens;
      result.rank_tokens[copy.rank] += copy.tokens;
    }
    result.largest = *std::max_element(result.rank_tokens.begin(), result.rank_tokens.end());
  }
};

/// Plans the fewest copies of experts on foreign ranks with which no rank exceeds a cap; see
/// `spill_experts_fn`.
inline constexpr spill_experts_fn spill_experts{};

}  // namespace omnibal::inline v0
