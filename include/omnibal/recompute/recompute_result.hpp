#pragma once

/// \file
/// What `select_recompute` is asked and what it answers.

#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace omnibal::inline v0 {

struct select_recompute_options {
  /// How many micro-batches keep their activations at once; in 1F1B stage s of p keeps those of
  /// p - s, or of all if there are fewer.
  std::int64_t in_flight = 1;
  /// Bytes of the budget that are for something else.
  std::int64_t reserve_bytes = 0;
  /// What the search may take; `states` takes precedence where it is set.
  omnibal::effort effort = omnibal::effort::normal;
  /// The most partial solutions that the search keeps for each number of layers, and up to four
  /// times as many where few choices are left to decide: 32, 96 or 1024. More of them give a
  /// smaller gap between time and lower bound, in proportionally more time.
  std::optional<std::size_t> states = {};
  /// Where a proof would need more than that, the search ends as soon as the lower bound is below
  /// the time by no more than this share of it.
  double max_gap = 0.0008;
};

/// A choice for each layer.
template <weight Time>
struct recompute_result {
  /// Infeasible where no choices fit the budget.
  solve_status status = solve_status::solved;
  /// The number of the choice of each layer; empty where infeasible.
  std::vector<std::uint32_t> choices;
  /// The sum of the times of these choices.
  Time time{};
  /// No choices within the budget take less time.
  Time lower_bound{};
  /// True where the time is the least possible.
  bool proven = false;
  /// What the choices take of the budget, the reserve included; where infeasible, the least that
  /// any choices take.
  std::int64_t bytes = 0;
  /// By how much `bytes` exceeds the budget; zero unless infeasible.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(recompute_result const&, recompute_result const&) = default;
};

}  // namespace omnibal::inline v0
