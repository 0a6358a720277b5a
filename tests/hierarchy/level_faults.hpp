// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every packing in levels must satisfy, and data for it.

#include "samples.hpp"

#include <omnibal/hierarchy/level_packing.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace test {

/// Lengths with the names of their sets, for levels up to 4096.
struct length_set {
  std::string name;
  std::vector<std::int64_t> lengths;
};

inline std::vector<length_set> length_sets(std::uint64_t seed, std::size_t count) {
  std::vector<length_set> result;
  for (auto const& set : small_sets<1>(seed, count)) {
    result.push_back({set.name, {}});
    for (auto const& sample : set.samples) result.back().lengths.push_back(sample[0]);
  }
  return result;
}

/// From one level to one for every few lengths.
inline std::vector<std::vector<std::int64_t>> level_sets() {
  return {{4096}, {512, 4096}, {1024, 1025, 4096}, {1, 16, 256, 2048, 4096}, {2000, 5000}};
}

inline std::int64_t load_of(omnibal::level_packing const& packed, std::size_t group,
                            std::vector<std::int64_t> const& lengths) {
  std::int64_t sum = 0;
  for (std::uint32_t const item : packed.groups[group]) sum += lengths[item];
  return sum;
}

inline std::int64_t squares_of(omnibal::level_packing const& packed, std::size_t group,
                               std::vector<std::int64_t> const& lengths) {
  std::int64_t sum = 0;
  for (std::uint32_t const item : packed.groups[group]) sum += lengths[item] * lengths[item];
  return sum;
}

/// The first level that is as long; their number where none is.
inline std::size_t own_level(omnibal::level_packing const& packed, std::int64_t length) {
  std::size_t level = 0;
  while (level != packed.levels.size() && packed.levels[level].setting.length < length) ++level;
  return level;
}

/// What is wrong with a packing in levels; empty where nothing is.
inline std::string level_fault(omnibal::level_packing const& packed,
                               std::vector<std::int64_t> const& lengths) {
  std::vector<std::uint8_t> seen(lengths.size(), 0);
  std::size_t next_group = 0;
  for (std::size_t level = 0; level != packed.levels.size(); ++level) {
    omnibal::packed_level const& own = packed.levels[level];
    if (own.first_group != next_group) return "a level does not follow the one before it";
    std::size_t moved = 0;
    for (; next_group != own.first_group + own.group_count; ++next_group) {
      std::string const name = "group " + std::to_string(next_group);
      if (packed.groups[next_group].empty()) return name + " is empty";
      if (packed.level_of(static_cast<std::uint32_t>(next_group)) != level) {
        return name + " has another level";
      }
      std::size_t own_samples = 0;
      for (std::uint32_t const item : packed.groups[next_group]) {
        if (item >= lengths.size()) return std::to_string(item) + " is not an index";
        if (seen[item]++ != 0) return "sample " + std::to_string(item) + " is in two places";
        std::size_t const home = own_level(packed, lengths[item]);
        if (home > level) return "sample " + std::to_string(item) + " is in too short a level";
        ++(home == level ? own_samples : moved);
      }
      if (own_samples == 0) return name + " has no sample of its level";
      if (load_of(packed, next_group, lengths) > own.setting.length) return name + " is too long";
    }
    if (moved != own.filled_in) return "filled_in is not the number of samples that moved in";
  }
  if (next_group != packed.groups.size()) return "groups without a level";
  std::size_t next = 0;
  for (std::uint32_t i = 0; i != lengths.size(); ++i) {
    bool const oversized = own_level(packed, lengths[i]) == packed.levels.size();
    bool const listed = next != packed.oversized.size() && packed.oversized[next] == i;
    if (listed) ++next;
    if (oversized != listed || oversized == (seen[i] != 0)) {
      return "sample " + std::to_string(i) + " is lost or listed wrongly";
    }
  }
  return next == packed.oversized.size() ? "" : "the oversized samples are not ascending";
}

}  // namespace test
