// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Options and result of `select_recompute`.

#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace omnibal::inline v0 {

struct select_recompute_options {
  /// The number of micro-batches whose activations are kept at the same time. In 1F1B, stage s of p
  /// keeps the activations of p - s micro-batches, but at most of all micro-batches.
  std::int64_t in_flight = 1;
  /// The bytes of the budget that are reserved for other uses.
  std::int64_t reserve_bytes = 0;
  /// The effort of the search; `states` takes precedence if it is set.
  omnibal::effort effort = omnibal::effort::normal;
  /// The largest number of partial solutions that the search keeps for each number of layers: 32,
  /// 120 or 1024 by effort if not set. If few choices remain, the search keeps up to four times
  /// this number. More partial solutions reduce the gap between time and lower bound, in
  /// proportionally more time.
  std::optional<std::size_t> states = {};
  /// The gap at which the search ends: the share of the time by which the lower bound may be below
  /// the time. The gap is used only if a proof would require more partial solutions than `states`.
  double max_gap = 0.0008;
};

/// The result of `select_recompute`: a choice for each layer.
template <scalar_measure Time>
struct recompute_result {
  /// The status of the result: infeasible if no choices fit the budget.
  solve_status status = solve_status::solved;
  /// The index of the choice of each layer; empty if infeasible.
  std::vector<std::uint32_t> choices;
  /// The sum of the times of these choices.
  Time time{};
  /// A lower bound of the time: no choices within the budget have a shorter time.
  Time lower_bound{};
  /// True if the search proved that no choices within the budget have a shorter time, or that no
  /// choices fit the budget.
  bool proven = false;
  /// The bytes of the budget that the choices use, including the reserve; if infeasible, the
  /// smallest number of bytes of any choices.
  std::int64_t bytes = 0;
  /// The bytes by which `bytes` exceeds the budget; zero unless infeasible.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(recompute_result const&, recompute_result const&) = default;
};

}  // namespace omnibal::inline v0
