// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Steps (global batches) of the levels of a hierarchy.

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct level_steps_fn {
  /// Schedules the groups of each level into steps. If `sequence` ranks share a pack of a level,
  /// `ranks / sequence` packs run at the same time in a step. The steps of the level then have
  /// `ranks / sequence` cells with one pack each; rank r runs cell r / sequence. A cell has the
  /// index of a group of `packed`.
  ///
  /// `loads` has the load of every group, a weight or resources. Use sums of squares to balance
  /// attention. `options.max_dist_ratio` limits the imbalance, as in `schedule_steps`. If it is 0,
  /// the steps are slices of the packs sorted by load.
  ///
  /// Complexity, memory and determinism: the same as `schedule_steps`. Errors: the errors of
  /// `schedule_steps`; `std::invalid_argument` if a degree does not divide the ranks, if the
  /// numbers of loads and groups differ, if options carry groups, or if they have different speeds.
  /// Source: Yao et al., "Hierarchical balance packing", NeurIPS 2025.
  template <sample_range GroupLoads>
    requires demand_function<std::identity, sample_reference<GroupLoads>>
  [[nodiscard]] std::vector<steps> operator()(level_packing const& packed, GroupLoads const& loads,
                                              std::size_t ranks,
                                              schedule_steps_options const& options = {}) const {
    using load_type = std::ranges::range_value_t<GroupLoads const>;
    if (options.remainder == remainder_policy::carry || !options.carried.empty()) {
      detail::throw_invalid(name, "options.remainder is carry, must be short_step or repeat");
    }
    if (options.speeds.size() > 1) {
      detail::throw_invalid(name, "options.speeds has ", options.speeds.size(),
                            " values, but several ranks may share a pack; call schedule_steps with "
                            "a speed for each cell of a level instead");
    }
    auto const own = detail::checked_loads<load_type>(name, packed, loads);
    std::vector<steps> result;
    result.reserve(packed.levels.size());
    for (std::size_t level = 0; level != packed.levels.size(); ++level) {
      packed_level const& at = packed.levels[level];
      std::size_t const packs = detail::packs_per_step(name, level, at.setting, ranks);
      auto const loads_of_level = std::span(own).subspan(at.first_group, at.group_count);
      schedule_steps_options of_level = options;
      of_level.seed = detail::level_seed(options.seed, level);
      result.push_back(shifted(schedule_steps(loads_of_level, packs, of_level), at.first_group));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "level_steps";

  /// Returns the same steps with `first` added to all group indices.
  [[nodiscard]] static steps shifted(steps const& schedule, std::uint32_t first) {
    steps result(schedule.ranks());
    result.reserve(schedule.size(), schedule.cells().item_count());
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
        for (std::uint32_t const place : schedule(step, rank)) result.push(first + place);
        if (schedule.is_repeat(step, rank)) {
          result.close_repeat();
        } else {
          result.close();
        }
      }
    }
    return result;
  }
};

/// Schedules the packs of each level into steps; see `level_steps_fn`.
inline constexpr level_steps_fn level_steps{};

}  // namespace omnibal::inline v0
