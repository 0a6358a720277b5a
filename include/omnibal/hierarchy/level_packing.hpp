#pragma once

/// \file
/// Packs in levels of length.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// How the packs of one level run: the setting of a training step.
struct packing_level {
  /// The most tokens of a pack.
  std::int64_t length = 0;
  /// Ranks that share the tokens of a pack: the sequence-parallel degree.
  std::int64_t sequence = 1;
  /// Layers whose activations are made again in the backward pass.
  std::int64_t checkpointed_layers = 0;

  [[nodiscard]] friend constexpr bool operator==(packing_level const&,
                                                 packing_level const&) = default;
};

/// The longest length of a level: its square is a 64-bit integer.
inline constexpr std::int64_t longest_level = 3'037'000'499;

/// Levels, or only their lengths.
template <class Range>
concept level_range = sample_range<Range> &&
    (std::same_as<std::ranges::range_value_t<Range const>, packing_level> ||
     (std::integral<std::ranges::range_value_t<Range const>> &&
      !std::same_as<std::ranges::range_value_t<Range const>, bool>));

namespace detail {

[[noreturn]] inline void throw_level(std::string_view function, std::string_view argument,
                                     std::string_view member, std::int64_t value,
                                     std::string_view rule) {
  throw_invalid(function, std::string(argument).append(".").append(member) + " is " +
                              to_text(value) + ", must be " + std::string(rule));
}

/// The name of a level in error texts.
[[nodiscard]] inline std::string level_name(std::size_t index) {
  return "levels[" + to_text(index) + "]";
}

/// The most ranks that share a pack.
inline constexpr std::int64_t most_level_degree = std::int64_t{1} << 20;

/// Throws unless a level with this setting can be.
inline void check_level(std::string_view function, std::string_view argument,
                        packing_level const& level) {
  if (level.length < 1 || level.length > longest_level) {
    throw_level(function, argument, "length", level.length, "from 1 to " + to_text(longest_level));
  }
  if (level.sequence < 1 || level.sequence > most_level_degree) {
    throw_level(function, argument, "sequence", level.sequence,
                "from 1 to " + to_text(most_level_degree));
  }
  if (level.checkpointed_layers < 0) {
    throw_level(function, argument, "checkpointed_layers", level.checkpointed_layers,
                "not negative");
  }
}

/// The levels of a range; throws unless there are some and their lengths increase.
template <level_range Levels>
[[nodiscard]] std::vector<packing_level> checked_levels(std::string_view function,
                                                        Levels const& levels) {
  if (std::ranges::empty(levels)) throw_invalid(function, "levels is empty");
  std::vector<packing_level> result;
  result.reserve(std::ranges::size(levels));
  for (auto const& given : levels) {
    if constexpr (std::integral<std::ranges::range_value_t<Levels const>>) {
      weight_name const name{function, "levels", result.size()};
      result.push_back({.length = to_working<std::int64_t>(name, given)});
    } else {
      result.push_back(given);
    }
    std::size_t const index = result.size() - 1;
    check_level(function, level_name(index), result.back());
    if (index != 0 && result[index].length <= result[index - 1].length) {
      throw_level(function, level_name(index), "length", result[index].length,
                  "above that of the level before it, " + to_text(result[index - 1].length));
    }
  }
  return result;
}

}  // namespace detail

/// A level and which groups are its packs: `group_count` of them from `first_group` on.
struct packed_level {
  packing_level setting{};
  std::uint32_t first_group = 0;
  std::uint32_t group_count = 0;
  /// Samples of shorter levels in these groups.
  std::uint32_t filled_in = 0;

  [[nodiscard]] friend bool operator==(packed_level const&, packed_level const&) = default;
};

/// Groups under the length of their level. Every input index is in exactly one group or in
/// `oversized`.
struct level_packing {
  /// The shortest level first.
  std::vector<packed_level> levels;
  /// Those of all levels, in the order of the levels.
  grouping groups;
  /// Samples longer than the last level, ascending.
  std::vector<std::uint32_t> oversized;

  /// The index of the level of a group. Precondition: `group < groups.size()`.
  [[nodiscard]] std::size_t level_of(std::uint32_t group) const {
    auto const next = std::upper_bound(
        levels.begin(), levels.end(), group,
        [](std::uint32_t g, packed_level const& level) { return g < level.first_group; });
    return static_cast<std::size_t>(next - levels.begin()) - 1;
  }

  [[nodiscard]] friend bool operator==(level_packing const&, level_packing const&) = default;
};

}  // namespace omnibal::inline v0
