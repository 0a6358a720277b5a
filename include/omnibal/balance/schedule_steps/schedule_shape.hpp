// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The numbers of a schedule, and the checks of its arguments.
///
/// The input is the arguments of the user. The output is `schedule_shape`, which no later stage
/// changes.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The numbers of ranks, steps and runs in a schedule. A run is one execution of a group: every
/// group runs once, and each entry of the carried groups runs once more.
struct schedule_shape {
  std::uint32_t ranks = 0;
  std::uint32_t groups_per_rank = 1;
  /// The number of full steps.
  std::uint32_t steps = 0;
  /// The number of runs, without repetitions in the last step.
  std::uint32_t runs = 0;
  /// The number of runs of carried groups. These runs come first.
  std::uint32_t carried = 0;
  /// The number of runs that do not fill a step and form the last step.
  std::uint32_t leftover = 0;
  /// The number of groups that are repeated to fill the last step.
  std::uint32_t repeated = 0;

  /// Returns the number of groups in a full step.
  [[nodiscard]] constexpr std::uint32_t groups_per_step() const { return ranks * groups_per_rank; }
  /// Returns the number of runs in full steps.
  [[nodiscard]] constexpr std::uint32_t full_runs() const { return steps * groups_per_step(); }
};

/// Checks the arguments of a schedule. Errors: `std::invalid_argument` for no ranks, no groups per
/// rank, a `max_dist_ratio` that is negative or not finite, and a carried group that does not
/// exist. Further errors: `std::length_error` if groups, carried groups and the groups of a step
/// exceed 2^32 - 1. Epochs without a full step leave out a group twice, so that a group may be
/// carried twice.
inline void check_schedule(std::string_view function, std::size_t groups, std::size_t ranks,
                           schedule_steps_options const& options) {
  check_positive(function, "ranks", ranks);
  check_positive(function, "options.groups_per_rank", options.groups_per_rank);
  check_number(function, "ranks", ranks);
  std::size_t const in_step = ranks * options.groups_per_rank;
  check_number(function, "ranks * options.groups_per_rank", in_step);
  check_weight(function, "options.max_dist_ratio", options.max_dist_ratio);
  std::size_t const carried = options.carried.size();
  check_index_count(function, "the schedule", carried + std::max(groups, in_step));
  for (std::size_t i = 0; i != carried; ++i) {
    if (options.carried[i] < groups) continue;
    throw_invalid(function, "options.carried[", i, "] is ", options.carried[i], ", but there are ",
                  groups, " groups");
  }
}

/// Returns the shape of a schedule. Precondition: `check_schedule` accepts the arguments.
[[nodiscard]] inline schedule_shape shape_of_schedule(std::size_t groups, std::size_t carried,
                                                      std::size_t ranks, remainder_policy remainder,
                                                      std::uint32_t groups_per_rank = 1) {
  auto const all = static_cast<std::uint32_t>(groups + carried);
  auto const in_step = static_cast<std::uint32_t>(ranks * groups_per_rank);
  std::uint32_t const rest = all % in_step;
  bool const is_rest_left_out = remainder == remainder_policy::carry;
  bool const is_rest_filled_up = remainder == remainder_policy::repeat && rest != 0;
  std::uint32_t const runs = is_rest_left_out ? all - rest : all;
  return {.ranks = static_cast<std::uint32_t>(ranks),
          .groups_per_rank = groups_per_rank,
          .steps = all / in_step,
          .runs = runs,
          .carried = std::min(static_cast<std::uint32_t>(carried), runs),
          .leftover = is_rest_left_out ? 0 : rest,
          // Ranks repeat the same number of groups as in other steps, or none.
          .repeated = is_rest_filled_up ? (in_step - rest) / groups_per_rank * groups_per_rank : 0};
}

}  // namespace omnibal::inline v0::detail
