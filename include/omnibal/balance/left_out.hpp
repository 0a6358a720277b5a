#pragma once

/// \file
/// The groups that an epoch leaves to the next one.

#include <omnibal/check.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct left_out_fn {
  /// The groups that a schedule of `groups` groups and the `carried` ones has not run, ascending; a
  /// group that should have run twice and did not run at all is listed twice. Repetitions do not
  /// count as runs. With `remainder_policy::carry` these are fewer than there are ranks, and the
  /// next epoch takes them as `schedule_steps_options::carried`, so that over all epochs every
  /// group has run as often as any other, those left out by the last epoch once less.
  ///
  /// Complexity: linear. Memory: 4 bytes per group and the result. Determinism: portable. Errors:
  /// `std::invalid_argument` for a group that does not exist or runs more often than it should.
  [[nodiscard]] std::vector<std::uint32_t> operator()(
      steps const& schedule, std::size_t groups,
      std::span<std::uint32_t const> carried = {}) const {
    std::vector<std::uint32_t> runs(groups, 1);
    for (std::uint32_t const group : carried) ++runs[checked(group, groups)];
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
        if (schedule.is_repeat(step, rank)) continue;
        for (std::uint32_t const group : schedule(step, rank)) {
          if (runs[checked(group, groups)] == 0) {
            detail::throw_invalid(
                name, "group " + detail::to_text(group) + " runs more often than it should");
          }
          --runs[group];
        }
      }
    }
    std::vector<std::uint32_t> result;
    for (std::size_t group = 0; group != groups; ++group) {
      result.insert(result.end(), runs[group], static_cast<std::uint32_t>(group));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "left_out";

  [[nodiscard]] static std::uint32_t checked(std::uint32_t group, std::size_t groups) {
    if (group < groups) return group;
    detail::throw_invalid(name, "there is no group " + detail::to_text(group) + ", but " +
                                    detail::to_text(groups) + " groups");
  }
};

/// The groups that an epoch leaves to the next one; see `left_out_fn`.
inline constexpr left_out_fn left_out{};

}  // namespace omnibal::inline v0
