// SPDX-License-Identifier: Apache-2.0
// The levels, the missing bytes and the time of an epoch, compared with all settings and all sets
// of levels of small searches.

#include "certificate.hpp"

#include <omnibal/config.hpp>
#include <omnibal/hierarchy/select_levels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::level_reading;
using omnibal::packing_level;
using omnibal::solve_status;
using omnibal::timed_level;
using omnibal::detail::int128;
using test::number_between;

/// Memory is linear in the checkpointed layers; the time of a setting is any.
struct linear_profile {
  std::int64_t free;
  std::int64_t per_token;
  std::int64_t per_layer;
  std::int64_t pace;
  std::int64_t overhead;

  level_reading operator()(packing_level const& level) const {
    std::int64_t const tokens = (level.length + level.sequence - 1) / level.sequence;
    return {.free_bytes = free - per_token * tokens + per_layer * level.checkpointed_layers,
            .nanoseconds = overhead + pace * (tokens + level.sequence) +
                           pace * tokens * level.checkpointed_layers / 8};
  }
};

struct instance {
  omnibal::level_search search;
  linear_profile profile;
  std::vector<std::int64_t> samples;
};

std::vector<std::int64_t> ascending(omnibal::rng::engine& random, std::int64_t max_count,
                                    std::int64_t most) {
  std::vector<std::int64_t> made;
  std::int64_t last = 0;
  for (auto left = number_between(random, 1, max_count); left != 0; --left) {
    made.push_back(last += number_between(random, 1, most));
  }
  return made;
}

instance draw_instance(omnibal::rng::engine& random) {
  instance made;
  std::int64_t const scale = number_between(random, 0, 3) == 0 ? 1'000'000 : 12;
  made.search.lengths = ascending(random, 5, scale);
  made.search.degrees = ascending(random, 3, 3);
  made.search.layers = number_between(random, 1, 9);
  made.search.min_checkpointed = number_between(random, 0, made.search.layers);
  made.search.reserve_bytes = number_between(random, 0, 9);
  if (number_between(random, 0, 1) == 0) {
    made.search.ranks = made.search.degrees.back() + number_between(random, 0, 5);
  }
  made.profile = {.free = number_between(random, 0, 8 * scale),
                  .per_token = number_between(random, 0, 3),
                  .per_layer = number_between(random, 1, 2 * scale),
                  .pace = number_between(random, 0, 5),
                  .overhead = number_between(random, 1, 100)};
  auto const longest = made.search.lengths.back();
  for (auto left = number_between(random, 0, 8); left != 0; --left) {
    made.samples.push_back(number_between(random, 0, longest + longest / 8));
  }
  if (number_between(random, 0, 9) == 0) {
    made.samples.assign(2, std::int64_t{1} << 62);
  }
  return made;
}

/// The setting of a length with the least time of all ranks, by trying all of them.
std::optional<timed_level> fastest(instance const& given, std::int64_t length,
                                   std::optional<std::int64_t>& missing) {
  std::optional<timed_level> best;
  for (std::int64_t const degree : given.search.degrees) {
    if (degree > length) continue;
    for (auto layers = given.search.min_checkpointed; layers <= given.search.layers; ++layers) {
      packing_level const setting{length, degree, layers};
      auto const reading = given.profile(setting);
      std::int64_t const lacks = given.search.reserve_bytes - reading.free_bytes;
      if (lacks > 0) {
        missing = std::min(missing.value_or(lacks), lacks);
        continue;
      }
      bool const is_better =
          !best || reading.nanoseconds * degree < best->nanoseconds * best->setting.sequence;
      if (is_better) best = timed_level{setting, reading.nanoseconds};
      break;
    }
  }
  return best;
}

/// The time of an epoch with these levels, or nothing where they do not hold all samples.
std::optional<int128> epoch(instance const& given, std::vector<timed_level> const& levels,
                            std::size_t chosen) {
  std::int64_t const ranks =
      given.search.ranks == 0 ? given.search.degrees.back() : given.search.ranks;
  std::int64_t above = -1;
  int128 sum = 0;
  for (std::size_t k = 0; k != levels.size(); ++k) {
    if ((chosen >> k & 1) == 0) continue;
    auto const& level = levels[k];
    std::int64_t tokens = 0;
    std::int64_t halves = 0;
    for (std::int64_t const length : given.samples) {
      if (length <= above || length > level.setting.length) continue;
      tokens += length;
      halves += length > level.setting.length / 2 ? 1 : 0;
    }
    std::int64_t const whole = (tokens + level.setting.length - 1) / level.setting.length;
    std::int64_t const packs = std::max(whole, halves);
    std::int64_t const at_once = std::max<std::int64_t>(1, ranks / level.setting.sequence);
    sum += int128{(packs + at_once - 1) / at_once} * level.nanoseconds;
    above = level.setting.length;
  }
  bool const holds_all = std::all_of(
      given.samples.begin(), given.samples.end(),
      [&](std::int64_t length) { return length <= above || length > given.search.lengths.back(); });
  if (chosen == 0 || !holds_all) return std::nullopt;
  return sum;
}

std::string fault_of(instance const& given) {
  std::int64_t needed = 0;
  std::uint64_t oversized = 0;
  for (std::int64_t const length : given.samples) {
    if (length > given.search.lengths.back()) {
      ++oversized;
    } else {
      needed = std::max(needed, length);
    }
  }
  std::vector<timed_level> levels;
  std::optional<std::int64_t> missing;
  for (std::int64_t const length : given.search.lengths) {
    std::optional<std::int64_t> lacks;
    if (auto const found = fastest(given, length, lacks)) {
      levels.push_back(*found);
    } else if (length >= needed && !missing) {
      missing = lacks.value_or(omnibal::unknown_shortage);
    }
  }
  auto const result = omnibal::select_levels(given.profile, given.search, given.samples);
  if (result.oversized != oversized) return "another number of oversized samples";
  if (result.fastest != levels) return "other settings";
  bool const is_feasible = !levels.empty() && levels.back().setting.length >= needed;
  if ((result.status == solve_status::solved) != is_feasible) return "feasible or not";
  if (!is_feasible) {
    bool const is_same = result.missing_bytes == missing.value_or(omnibal::unknown_shortage);
    return is_same ? "" : "other missing bytes";
  }
  std::optional<int128> least;
  std::size_t chosen_of_result = 0;
  for (std::size_t chosen = 0; chosen != std::size_t{1} << levels.size(); ++chosen) {
    auto const time = epoch(given, levels, chosen);
    if (time && (!least || *time < *least)) least = time;
  }
  for (std::size_t k = 0; k != levels.size(); ++k) {
    bool const is_chosen = std::find(result.levels.begin(), result.levels.end(),
                                     levels[k].setting) != result.levels.end();
    chosen_of_result |= std::size_t{is_chosen} << k;
  }
  if (result.epoch_nanoseconds != *least) return "an epoch that is not the shortest";
  return epoch(given, levels, chosen_of_result) == least ? "" : "levels with another epoch";
}

}  // namespace

TEST_CASE("The levels for some samples are the best of all sets of levels", "[certificate]") {
  test::certify<std::int64_t>("select_levels", [](omnibal::rng::engine& random) {
    return fault_of(draw_instance(random));
  });
}
