// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Levels of length, and packings whose groups belong to levels.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The settings of training steps for the packs of one level.
struct packing_level {
  /// The maximum number of tokens of a pack.
  std::int64_t length = 0;
  /// The number of ranks that share the tokens of a pack: the sequence-parallel degree.
  std::int64_t sequence = 1;
  /// The number of layers whose activations are recomputed in the backward pass.
  std::int64_t checkpointed_layers = 0;

  [[nodiscard]] friend bool operator==(packing_level const&, packing_level const&) = default;
};

/// The maximum length of a level. Its square fits into a 64-bit integer.
inline constexpr std::int64_t longest_level = 3'037'000'499;

/// A range of levels, or only of their lengths.
template <class Range>
concept level_range = sample_range<Range> &&
    (std::same_as<std::ranges::range_value_t<Range const>, packing_level> ||
     (std::integral<std::ranges::range_value_t<Range const>> &&
      !std::same_as<std::ranges::range_value_t<Range const>, bool>));

/// A level and its packs, which are the `group_count` groups from `first_group` on.
struct packed_level {
  packing_level setting{};
  std::uint32_t first_group = 0;
  std::uint32_t group_count = 0;
  /// The number of samples of shorter levels that fill room in these groups.
  std::uint32_t filled_in = 0;

  [[nodiscard]] friend bool operator==(packed_level const&, packed_level const&) = default;
};

/// Groups that belong to levels and fit into the lengths of their levels. Only a group of the last
/// level may exceed the length, and only if it consists of a single sample. Every input index is in
/// exactly one group or in `oversized`.
struct level_packing {
  /// The levels, the shortest first.
  std::vector<packed_level> levels;
  /// The groups of all levels, in the order of the levels.
  grouping groups;
  /// The samples that are longer than the last level and in no group, ascending.
  std::vector<std::uint32_t> oversized;

  /// Returns the index of the level of a group. Precondition: `group < groups.size()`.
  [[nodiscard]] std::size_t level_of(std::uint32_t group) const {
    auto const next = std::upper_bound(
        levels.begin(), levels.end(), group,
        [](std::uint32_t g, packed_level const& level) { return g < level.first_group; });
    return static_cast<std::size_t>(next - levels.begin()) - 1;
  }

  [[nodiscard]] friend bool operator==(level_packing const&, level_packing const&) = default;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Returns the name of a level for error messages.
[[nodiscard]] inline std::string level_name(std::size_t index) {
  return joined_text("levels[", index, "]");
}

/// The maximum number of ranks that share a pack.
inline constexpr std::int64_t max_level_degree = std::int64_t{1} << 20;

/// Throws `std::invalid_argument` unless the settings of a level are valid.
inline void check_level(std::string_view function, std::string_view argument,
                        packing_level const& level) {
  if (level.length < 1 || level.length > longest_level) {
    throw_number(function, joined_text(argument, ".length"), level.length, "must be from 1 to ",
                 longest_level);
  }
  if (level.sequence < 1 || level.sequence > max_level_degree) {
    throw_number(function, joined_text(argument, ".sequence"), level.sequence, "must be from 1 to ",
                 max_level_degree);
  }
  if (level.checkpointed_layers < 0) {
    throw_number(function, joined_text(argument, ".checkpointed_layers"), level.checkpointed_layers,
                 "must be not negative");
  }
}

/// Returns the levels of a range. Throws unless there is at least one level and the lengths ascend.
template <level_range Levels>
[[nodiscard]] std::vector<packing_level> checked_levels(std::string_view function,
                                                        Levels const& levels) {
  if (std::ranges::size(levels) == 0) throw_invalid(function, "levels is empty");
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
      throw_number(function, level_name(index) + ".length", result[index].length,
                   "must be above that of the level before it, ", result[index - 1].length);
    }
  }
  return result;
}

/// A functor from a sample to its number of tokens, an integer.
template <class Samples, class Demand>
concept token_samples =
    sample_range<Samples> && demand_function<Demand, sample_reference<Samples>> &&
    integral_measure<demand_result<Demand, sample_reference<Samples>>> &&
    same_kinds<demand_result<Demand, sample_reference<Samples>>, std::int64_t>;

/// Returns the tokens of each sample. Throws `std::invalid_argument` for a negative number.
template <class Samples, class Demand>
[[nodiscard]] std::vector<std::int64_t> measured_lengths(std::string_view function,
                                                         Samples const& samples,
                                                         Demand const& demand) {
  check_index_count(function, "samples", std::ranges::size(samples));
  return given_costs(function, "demand", samples, demand);
}

/// Returns the index of the first level that is at least as long as `length`, or the number of
/// levels if there is none.
[[nodiscard]] inline std::size_t level_for(std::span<packing_level const> levels,
                                           std::int64_t length) {
  auto const holds =
      std::find_if(levels.begin(), levels.end(),
                   [length](packing_level const& level) { return length <= level.length; });
  return static_cast<std::size_t>(holds - levels.begin());
}

/// Returns the samples of each level, ascending. The last group has the samples that are longer
/// than all levels.
[[nodiscard]] inline grouping level_members(std::span<packing_level const> levels,
                                            std::span<std::int64_t const> lengths) {
  std::vector<std::uint32_t> level_of(lengths.size());
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    level_of[i] = static_cast<std::uint32_t>(level_for(levels, lengths[i]));
  }
  return collect_parts(level_of, levels.size() + 1);
}

/// Returns the number of packs that the ranks run at the same time in a level. Throws unless the
/// degree of the level divides the number of ranks.
[[nodiscard]] inline std::size_t packs_per_step(std::string_view function, std::size_t index,
                                                packing_level const& level, std::size_t ranks) {
  auto const sequence = static_cast<std::size_t>(level.sequence);
  if (ranks != 0 && ranks % sequence == 0) return ranks / sequence;
  throw_number(function, level_name(index) + ".sequence", level.sequence,
               "must be a divisor of the ", ranks, " ranks");
}

/// Throws unless each group has a load and consecutive levels cover all groups.
inline void check_loads(std::string_view function, level_packing const& packed, std::size_t loads) {
  check_size(function, "loads", loads, packed.groups.size(), "groups");
  std::size_t next = 0;
  for (packed_level const& level : packed.levels) {
    if (level.first_group != next) break;
    next += level.group_count;
  }
  if (next == packed.groups.size()) return;
  throw_invalid(function, "the levels of packed do not have its ", packed.groups.size(),
                " groups one after the other");
}

/// Returns the loads of the groups of `packed`. Throws as `check_loads` does, and for a load that
/// is negative or not finite.
template <class Load, load_range<Load> Loads>
[[nodiscard]] std::vector<Load> checked_loads(std::string_view function,
                                              level_packing const& packed, Loads const& loads) {
  check_loads(function, packed, std::ranges::size(loads));
  std::vector<Load> result;
  result.reserve(std::ranges::size(loads));
  for (auto&& load : loads) {
    result.push_back(load);
    static_cast<void>(
        checked_costs<working_weight<Load>>(function, "loads", result.size() - 1, result.back()));
  }
  return result;
}

/// Returns a different seed for each level.
[[nodiscard]] inline std::uint64_t level_seed(std::uint64_t seed, std::size_t level) {
  return rng::engine(seed, level).word(0);
}

}  // namespace omnibal::inline v0::detail
