#pragma once

/// \file
/// The steps of one level.

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/steps.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A range of loads that become `Load`.
template <class Loads, class Load>
concept loads_as = sample_range<Loads> && std::convertible_to<sample_reference<Loads>, Load>;

/// The packs that ranks run at a time in a level; throws unless its degree divides their number.
[[nodiscard]] inline std::size_t packs_per_step(std::string_view function, std::size_t index,
                                                packing_level const& level, std::size_t ranks) {
  auto const sequence = static_cast<std::size_t>(level.sequence);
  if (ranks != 0 && ranks % sequence == 0) return ranks / sequence;
  throw_level(function, level_name(index), "sequence", level.sequence,
              "a divisor of the " + to_text(ranks) + " ranks");
}

/// Throws where groups would be left for a next epoch or come from an earlier one.
inline void check_no_carry(std::string_view function, schedule_steps_options const& options) {
  if (options.remainder == remainder_policy::carry || !options.carried.empty()) {
    throw_invalid(function, "options.remainder is carry, must be short_step or repeat");
  }
}

/// Throws unless each group has a load, and the levels have all groups, one after the other.
inline void check_loads(std::string_view function, level_packing const& packed, std::size_t loads) {
  if (loads != packed.groups.size()) {
    throw_invalid(function, "loads has " + to_text(loads) + " elements, but there are " +
                                to_text(packed.groups.size()) + " groups");
  }
  std::size_t next = 0;
  for (packed_level const& level : packed.levels) {
    if (level.first_group != next) break;
    next += level.group_count;
  }
  if (next == packed.groups.size()) return;
  throw_invalid(function, "the levels of packed do not have its " + to_text(packed.groups.size()) +
                              " groups one after the other");
}

/// The loads of the groups of `packed`; throws as `check_loads`, and for one that is negative or
/// not finite.
template <class Load, loads_as<Load> Loads>
[[nodiscard]] std::vector<Load> checked_loads(std::string_view function,
                                              level_packing const& packed, Loads const& loads) {
  check_loads(function, packed, std::ranges::size(loads));
  std::vector<Load> result;
  result.reserve(std::ranges::size(loads));
  for (auto&& load : loads) {
    result.push_back(load);
    static_cast<void>(checked_costs<working_weight<typename weight_of<Load>::type>>(
        function, "loads", result.size() - 1, result.back()));
  }
  return result;
}

/// A seed that is another for each level.
[[nodiscard]] inline std::uint64_t level_seed(std::uint64_t seed, std::size_t level) {
  return rng::engine(seed, level).word(0);
}

/// The schedule of some groups of a level by their places among the loads.
template <class Load>
[[nodiscard]] steps schedule_places(std::size_t level, std::span<Load const> loads,
                                    std::size_t packs, schedule_steps_options options) {
  options.seed = level_seed(options.seed, level);
  return schedule_steps(loads, packs, options);
}

/// The schedule of some groups of a level, by their indices. `loads` has the loads of all groups.
template <class Load>
[[nodiscard]] steps schedule_level(std::size_t level, std::span<std::uint32_t const> groups,
                                   std::span<Load const> loads, std::size_t packs,
                                   schedule_steps_options const& options) {
  std::vector<Load> own;
  own.reserve(groups.size());
  for (std::uint32_t const group : groups) own.push_back(loads[group]);
  steps const schedule = schedule_places(level, std::span<Load const>(own), packs, options);
  steps result(packs);
  result.reserve(schedule.size(), groups.size());
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    for (std::size_t pack = 0; pack != packs; ++pack) {
      for (std::uint32_t const place : schedule(step, pack)) result.push(groups[place]);
      if (schedule.is_repeat(step, pack)) {
        result.close_repeat();
      } else {
        result.close();
      }
    }
  }
  return result;
}

/// The indices of the groups of a level.
[[nodiscard]] inline std::vector<std::uint32_t> groups_of(packed_level const& level) {
  std::vector<std::uint32_t> result(level.group_count);
  for (std::uint32_t g = 0; g != level.group_count; ++g) result[g] = level.first_group + g;
  return result;
}

}  // namespace omnibal::inline v0::detail
