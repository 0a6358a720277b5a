#pragma once

/// \file
/// What a schedule of levels is made of.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The packs that ranks run at a time in a level; throws unless its degree divides their number.
[[nodiscard]] inline std::size_t packs_per_step(std::string_view function, std::size_t index,
                                                packing_level const& level, std::size_t ranks) {
  auto const sequence = static_cast<std::size_t>(level.sequence);
  if (ranks != 0 && ranks % sequence == 0) return ranks / sequence;
  throw_level(function, level_name(index), "sequence", level.sequence,
              "a divisor of the " + to_text(ranks) + " ranks");
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
template <class Load, load_range<Load> Loads>
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

}  // namespace omnibal::inline v0::detail
