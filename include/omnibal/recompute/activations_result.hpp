// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Options and result of `select_activations`.

#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace omnibal::inline v0 {

struct select_activations_options {
  /// The number of micro-batches whose activations the device keeps at the same time. In 1F1B,
  /// stage s of p keeps the activations of p - s micro-batches, but at most of all micro-batches.
  std::int64_t in_flight = 1;
  /// The effort of the search; `labels` takes precedence if it is set.
  omnibal::effort effort = omnibal::effort::normal;
  /// The largest number of partial solutions that the search keeps after each module: 32, 128 or
  /// 2048 by effort if not set. More partial solutions reduce the gap between time and lower bound,
  /// in proportionally more time.
  std::optional<std::size_t> labels = {};
};

/// The result of `select_activations`: a choice for each module of each layer.
template <scalar_measure Time>
struct activations_result {
  /// The status of the result: infeasible if the budget is exceeded even with all optional modules
  /// recomputed.
  solve_status status = solve_status::solved;
  /// The choice of each module of each layer; empty if infeasible.
  std::vector<std::vector<activation_choice>> choices;
  /// The sum of the recomputation times of the recomputed modules.
  Time added_time{};
  /// A lower bound of the added time: no choices within the budget add less time.
  Time lower_bound{};
  /// True if the search proved that no choices within the budget add less time, or that no choices
  /// fit the budget.
  bool proven = false;
  /// The peak of the bytes on the device; if infeasible, the smallest possible peak.
  std::int64_t peak_bytes = 0;
  /// The bytes of one micro-batch that are offloaded.
  std::int64_t offloaded_bytes = 0;
  /// The bytes by which `peak_bytes` exceeds the budget; zero unless infeasible.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(activations_result const&,
                                       activations_result const&) = default;
};

}  // namespace omnibal::inline v0
