// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The exchange of the tokens of a step.

#include <omnibal/check.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The memory of `context_exchange`, and its last result, for use in all steps.
class context_exchange_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] exchange_plan const& result() const& { return planner_.result(); }
  void result() const&& = delete;

 private:
  friend struct context_exchange_fn;

  std::vector<std::uint32_t> offsets_;
  make_plan_workspace<1> planner_;
};

struct context_exchange_fn {
  /// Plans the exchange that brings each rank its pieces of a layout, in the order of their cells:
  /// `context_exchange(layout, home_offsets, token_bytes)`. The pieces are the samples of the
  /// exchange plan. Before the exchange, rank r has the samples [home_offsets[r], home_offsets[r +
  /// 1]) and all their pieces. One exchange moves the tokens of a whole step, and its inverse
  /// returns the results of these tokens. `cut_pieces` returns the fields to send, and
  /// `join_pieces` returns the samples that come back.
  ///
  /// `token_bytes` is the number of bytes of a token, from which the plan computes the bytes of
  /// pieces. Padding is not exchanged. Complexity and memory: the same as `make_plan` for given
  /// parts. Determinism: portable. Errors: `std::invalid_argument` if the offsets do not ascend
  /// from zero to the number of samples, or if their number is not one more than the ranks. It is
  /// also thrown if bytes are negative or if options are invalid. Further errors:
  /// `std::overflow_error` if the sum of the bytes exceeds its type.
  template <offset_range Offsets>
  [[nodiscard]] exchange_plan operator()(context_layout const& layout, Offsets const& home_offsets,
                                         std::int64_t token_bytes,
                                         placement_options const& options = {}) const {
    context_exchange_workspace workspace;
    (*this)(layout, home_offsets, token_bytes, options, workspace);
    return workspace.result();
  }

  /// Plans the exchange in the memory of a workspace, for a training loop. A call allocates only if
  /// it requires more memory than all calls before it. The workspace owns the result.
  template <offset_range Offsets>
  exchange_plan const& operator()(context_layout const& layout, Offsets const& home_offsets,
                                  std::int64_t token_bytes, placement_options const& options,
                                  context_exchange_workspace& workspace) const {
    detail::check_weight(name, "token_bytes", token_bytes);
    find_home_pieces(layout, home_offsets, workspace.offsets_);
    detail::check_nodes(name, options, layout.ranks());
    std::int64_t tokens = 0;
    for (context_piece const& piece : layout.pieces()) tokens += piece.tokens;
    static_cast<void>(detail::checked_product(name, "the sum of the bytes", tokens, token_bytes));
    auto const bytes = [&](std::uint32_t number) {
      return layout.pieces()[number].tokens * token_bytes;
    };
    return make_plan(workspace.offsets_, layout.cells(), bytes, options, workspace.planner_);
  }

  /// Plans the exchange in the memory of a workspace, with default options.
  template <offset_range Offsets>
  exchange_plan const& operator()(context_layout const& layout, Offsets const& home_offsets,
                                  std::int64_t token_bytes,
                                  context_exchange_workspace& workspace) const {
    return (*this)(layout, home_offsets, token_bytes, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "context_exchange";

  /// Finds the first piece of each rank.
  template <class Offsets>
  static void find_home_pieces(context_layout const& layout, Offsets const& home_offsets,
                               std::vector<std::uint32_t>& result) {
    detail::copy_home_offsets(name, home_offsets, result);
    detail::check_size(name, "home_offsets", result.size(), layout.ranks() + 1, "ranks and an end");
    if (result.back() != layout.sample_count()) {
      detail::throw_invalid(name, "home_offsets ends with ", result.back(),
                            ", must end with the number of samples, ", layout.sample_count());
    }
    for (std::uint32_t& offset : result) offset = layout.piece_offsets()[offset];
  }
};

/// Plans the exchange that brings ranks their pieces; see `context_exchange_fn`.
inline constexpr context_exchange_fn context_exchange{};

}  // namespace omnibal::inline v0
