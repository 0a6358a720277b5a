// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/cost/models.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/select_levels.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::level_reading;
using omnibal::level_search;
using omnibal::level_selection;
using omnibal::packing_level;
using omnibal::select_levels;
using omnibal::solve_status;
using omnibal::timed_level;
using omnibal::unknown_shortage;

/// Memory and time that are linear in the tokens of a rank and in the checkpointed layers.
struct linear_profile {
  std::int64_t memory = 1000;
  /// Bytes per token: for each layer that is kept, and for all together.
  std::int64_t kept = 1;
  std::int64_t always = 0;
  std::int64_t layers = 10;
  /// Nanoseconds for a token, for a token made again in one layer, for a token that is exchanged,
  /// and for a pack.
  std::int64_t token = 100;
  std::int64_t again = 3;
  std::int64_t exchange = 10;
  std::int64_t pack = 0;

  level_reading operator()(packing_level const& level) const {
    std::int64_t const tokens = level.length / level.sequence;
    std::int64_t const exchanged = level.sequence > 1 ? exchange : 0;
    return {memory - tokens * (kept * (layers - level.checkpointed_layers) + always),
            tokens * (token + again * level.checkpointed_layers + exchanged) + pack};
  }
};

level_search small_search() {
  return {.layers = 10, .lengths = {25, 50, 100, 200, 400, 800}, .degrees = {1, 2, 4, 8}};
}

/// The setting with the least time of its ranks, by trying all that fit.
bool is_fastest(timed_level const& found, linear_profile const& profile,
                level_search const& search) {
  auto const rank_time = [](timed_level const& of) { return of.nanoseconds * of.setting.sequence; };
  for (std::int64_t const degree : search.degrees) {
    for (std::int64_t c = 0; c <= search.layers; ++c) {
      packing_level const setting{found.setting.length, degree, c};
      level_reading const reading = profile(setting);
      if (reading.free_bytes < search.reserve_bytes) continue;
      if (rank_time({setting, reading.nanoseconds}) < rank_time(found)) return false;
    }
  }
  return profile(found.setting) ==
             level_reading{profile(found.setting).free_bytes, found.nanoseconds} &&
         profile(found.setting).free_bytes >= search.reserve_bytes;
}

/// The estimated time of an epoch with these levels, step by step.
std::int64_t epoch_time(std::vector<timed_level> const& levels,
                        std::vector<std::int64_t> const& lengths, std::int64_t ranks) {
  std::int64_t time = 0;
  std::int64_t above = 0;
  for (timed_level const& level : levels) {
    std::int64_t tokens = 0;
    std::int64_t halves = 0;
    for (std::int64_t const length : lengths) {
      if (length <= above || length > level.setting.length) continue;
      tokens += length;
      halves += 2 * length > level.setting.length ? 1 : 0;
    }
    std::int64_t const packs =
        std::max((tokens + level.setting.length - 1) / level.setting.length, halves);
    std::int64_t const at_once = ranks / level.setting.sequence;
    time += (packs + at_once - 1) / at_once * level.nanoseconds;
    above = level.setting.length;
  }
  return time;
}

std::string error_of(level_search const& search) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(select_levels(linear_profile{}, search)); });
}

template <class Profile>
std::string error_of_profile(Profile const& profile) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(select_levels(profile, small_search())); });
}

/// Llama 3 8B on 32 devices of 80 GB.
omnibal::language_profile llama_profile() {
  return {
      .model = omnibal::llama3_8b,
      .device = {.flops_per_second = 156'000'000'000'000, .bytes_per_second = 1'500'000'000'000},
      .memory_bytes = 80'000'000'000,
      .ranks = 32,
      .document = 4096,
      .logit_tokens = 4096,
      .link_bytes_per_second = 100'000'000'000,
      .pack_overhead_nanoseconds = 300'000'000};
}

static_assert(omnibal::level_profile<linear_profile>);
static_assert(omnibal::level_profile<omnibal::language_profile>);
static_assert(!std::invocable<omnibal::select_levels_fn, int, level_search>);
static_assert(
    !std::invocable<omnibal::select_levels_fn, linear_profile, level_search, std::vector<double>>);

}  // namespace

TEST_CASE("the levels of the published rule") {
  // 100 tokens need no checkpoints, 200 need 5 of 10 layers, more need several ranks. A pack costs
  // 1000 beside its tokens, so that 100 take 110 a token, and 200 take 5 * 3 more and half of it.
  linear_profile const profile{.memory = 1000, .exchange = 12, .pack = 1000};
  auto const result = select_levels(profile, small_search());
  CHECK(result.status == solve_status::solved);
  REQUIRE(result.fastest.size() == 6);
  for (timed_level const& found : result.fastest) {
    CHECK(is_fastest(found, profile, small_search()));
  }
  CHECK(result.levels == std::vector<packing_level>{{100, 1, 0}, {800, 8, 0}});
}

TEST_CASE("four levels where they increase, fewer where they do not") {
  // The best length is 200 on two ranks; a rank holds 400 tokens.
  auto const profile = [](packing_level const& level) -> level_reading {
    std::int64_t time = 9000 * level.length / level.sequence;
    if (level == packing_level{200, 2, 0}) time = 100;
    return {level.length / level.sequence <= 400 ? 0 : -1, time};
  };
  auto const of = [&](std::int64_t longest, std::int64_t degree) {
    level_search const search{
        .layers = 1, .lengths = {50, 200, longest}, .degrees = {1, 2, degree}};
    return select_levels(profile, search).levels;
  };
  using levels = std::vector<packing_level>;
  CHECK(of(1600, 4) == levels{{100, 1, 0}, {200, 2, 0}, {400, 1, 0}, {1600, 4, 0}});
  CHECK(of(800, 4) == levels{{100, 1, 0}, {200, 2, 0}, {400, 1, 0}, {800, 2, 0}});
  // 190 is below the best length, 200 equal to it.
  CHECK(of(1710, 9) == levels{{100, 1, 0}, {200, 2, 0}, {1710, 9, 0}});
  CHECK(of(1800, 9) == levels{{100, 1, 0}, {200, 2, 0}, {1800, 9, 0}});
}

TEST_CASE("the fewest checkpointed layers that fit are found") {
  test::random_amounts random(3);
  for (int i = 0; i != 300; ++i) {
    linear_profile const profile{.memory = random.between(100, 20'000),
                                 .kept = random.between(1, 4),
                                 .always = random.between(0, 2),
                                 .token = random.between(1, 100),
                                 .again = random.between(0, 9),
                                 .exchange = random.between(0, 90),
                                 .pack = random.between(1, 10'000)};
    auto search = small_search();
    search.reserve_bytes = random.between(0, 50);
    auto const result = select_levels(profile, search);
    for (timed_level const& found : result.fastest) {
      REQUIRE(is_fastest(found, profile, search));
    }
    // What is not there does not fit even with all layers checkpointed.
    for (std::int64_t const length : search.lengths) {
      auto const found =
          std::any_of(result.fastest.begin(), result.fastest.end(),
                      [length](timed_level const& one) { return one.setting.length == length; });
      bool const fits = profile({length, 8, 10}).free_bytes >= search.reserve_bytes;
      REQUIRE(found == fits);
    }
    REQUIRE((result.status == solve_status::solved) ==
            (!result.fastest.empty() && result.fastest.back().setting.length == 800));
    if (result.status == solve_status::solved) continue;
    REQUIRE(result.levels.empty());
    REQUIRE(result.missing_bytes == search.reserve_bytes - profile({800, 8, 10}).free_bytes);
  }
}

TEST_CASE("a profile that only fails is searched by halving") {
  for (std::int64_t memory = 200; memory != 2200; memory += 40) {
    linear_profile const known{.memory = memory};
    int readings = 0;
    auto const failing = [&](packing_level const& level) {
      level_reading reading = known(level);
      ++readings;
      if (reading.free_bytes < 0) reading = {unknown_shortage, 0};
      return reading;
    };
    auto const expected = select_levels(known, small_search());
    auto const result = select_levels(failing, small_search());
    REQUIRE(result.fastest == expected.fastest);
    REQUIRE(result.levels == expected.levels);
    REQUIRE(result.status == expected.status);
    if (result.status == solve_status::infeasible) {
      CHECK(result.missing_bytes == unknown_shortage);
    }
    CHECK(readings <= 6 * 4 * 7);
  }
}

TEST_CASE("a line that promises too much is corrected") {
  // Checkpointing frees less for each layer than the line through the ends says.
  auto const bent = [](packing_level const& level) -> level_reading {
    std::int64_t const c = level.checkpointed_layers;
    return {c * c - 50, 1000 + c};
  };
  auto const result = select_levels(bent, {.layers = 10, .lengths = {64}, .degrees = {1}});
  CHECK(result.levels == std::vector<packing_level>{{64, 1, 8}});
}

TEST_CASE("the least epoch time is that of all subsets") {
  test::random_amounts random(8);
  for (int i = 0; i != 200; ++i) {
    linear_profile const profile{.memory = random.between(500, 20'000),
                                 .exchange = random.between(0, 90),
                                 .pack = random.between(1, 20'000)};
    auto search = small_search();
    search.ranks = random.between(0, 1) * random.between(8, 64);
    std::vector<std::int64_t> lengths;
    std::int64_t const most = random.between(1, 900);
    for (std::int64_t n = random.between(0, 400); n != 0; --n) {
      lengths.push_back(random.between(0, 3) == 0 ? random.between(0, most)
                                                  : random.heavy_tail(most));
    }
    auto const result = select_levels(profile, search, lengths);
    std::int64_t longest = 0;
    for (std::int64_t const length : lengths) {
      if (length <= 800) longest = std::max(longest, length);
    }
    bool const is_enough =
        !result.fastest.empty() && result.fastest.back().setting.length >= longest;
    REQUIRE((result.status == solve_status::solved) == is_enough);
    if (!is_enough) continue;

    std::int64_t const ranks = search.ranks == 0 ? 8 : search.ranks;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t fewest = 0;
    for (std::size_t set = 1; set != std::size_t{1} << result.fastest.size(); ++set) {
      std::vector<timed_level> levels;
      for (std::size_t k = 0; k != result.fastest.size(); ++k) {
        if ((set >> k & 1) != 0) levels.push_back(result.fastest[k]);
      }
      if (levels.back().setting.length < longest) continue;
      std::int64_t const time = epoch_time(levels, lengths, ranks);
      if (time < least || (time == least && levels.size() < fewest)) fewest = levels.size();
      least = std::min(least, time);
    }
    REQUIRE(result.epoch_nanoseconds == least);
    REQUIRE(result.levels.size() == fewest);
    std::vector<timed_level> chosen;
    for (timed_level const& one : result.fastest) {
      if (std::find(result.levels.begin(), result.levels.end(), one.setting) !=
          result.levels.end()) {
        chosen.push_back(one);
      }
    }
    REQUIRE(epoch_time(chosen, lengths, ranks) == least);
  }
}

TEST_CASE("Llama 3 8B on 80 GB trains with 16K and 128K on one and eight ranks") {
  auto const result =
      select_levels(llama_profile(), {.layers = 32, .reserve_bytes = 4'000'000'000});
  REQUIRE(result.levels.size() == 2);
  CHECK(result.levels[0].length == 16384);
  CHECK(result.levels[0].sequence == 1);
  CHECK(result.levels[1].length == 131072);
  CHECK(result.levels[1].sequence == 8);
}

TEST_CASE("without a time that every pack costs 8K is as good as 16K and becomes a level") {
  auto profile = llama_profile();
  profile.pack_overhead_nanoseconds = 0;
  auto const lengths_of = [](level_selection const& found) {
    std::vector<std::int64_t> lengths;
    for (packing_level const& level : found.levels) lengths.push_back(level.length);
    return lengths;
  };
  level_search const search{.layers = 32, .reserve_bytes = 4'000'000'000};
  auto const none = select_levels(profile, search);
  CHECK(lengths_of(none) == std::vector<std::int64_t>{8192, 16384, 131072});
  CHECK(none.levels[0].checkpointed_layers == 0);
  // What is gained by 16K is 355.6 against 358.3 microseconds for a token.
  auto const per_token = [](timed_level const& of) {
    return static_cast<double>(of.nanoseconds * of.setting.sequence) /
           static_cast<double>(of.setting.length);
  };
  auto const with = select_levels(llama_profile(), search);
  REQUIRE(with.fastest.size() == 5);
  CHECK(per_token(with.fastest[1]) < 0.993 * per_token(with.fastest[0]));
  CHECK(per_token(none.fastest[1]) > per_token(none.fastest[0]));
}

TEST_CASE("searches that make no sense are errors") {
  auto const with = [](auto const& change) {
    level_search search = small_search();
    change(search);
    return error_of(search);
  };
  CHECK(with([](level_search& s) { s.lengths.clear(); }) ==
        "omnibal::select_levels: search.lengths is empty");
  CHECK(with([](level_search& s) {
          s.lengths = {8, 8};
        }) == "omnibal::select_levels: search.lengths[1] is 8, must be from 9 to 3037000499");
  CHECK(with([](level_search& s) { s.degrees = {0}; }) ==
        "omnibal::select_levels: search.degrees[0] is 0, must be from 1 to 1048576");
  CHECK(with([](level_search& s) { s.layers = 0; }) ==
        "omnibal::select_levels: search.layers is 0, must be from 1 to 16777216");
  CHECK(with([](level_search& s) { s.min_checkpointed = 11; }) ==
        "omnibal::select_levels: search.min_checkpointed is 11, must be from 0 to 10");
  CHECK(with([](level_search& s) { s.reserve_bytes = -1; }) ==
        "omnibal::select_levels: search.reserve_bytes is -1, must be from 0 to "
        "9223372036854775807");
  CHECK(with([](level_search& s) { s.ranks = 4; }) ==
        "omnibal::select_levels: search.ranks is 4, must be from 8 to 1048576");
  CHECK(with([](level_search&) {}) == "no error");
}

TEST_CASE("a profile that returns nonsense is an error") {
  CHECK(error_of_profile([](packing_level const&) {
          return level_reading{1, 0};
        }) ==
        "omnibal::select_levels: the profile gives 0 nanoseconds for length 25, sequence 1 and 0 "
        "checkpointed layers, must be positive");
  CHECK(error_of_profile([](packing_level const& level) {
          return level_reading{level.checkpointed_layers == 10 ? 5 : -5, -7};
        }) ==
        "omnibal::select_levels: the profile gives -7 nanoseconds for length 25, sequence 1 and 10 "
        "checkpointed layers, must be positive");
  CHECK_THROWS_AS(select_levels(linear_profile{}, small_search(), std::vector<int>{-1}),
                  std::invalid_argument);
}

TEST_CASE("memory that checkpointing does not free is no room") {
  auto const full = [](packing_level const&) { return level_reading{-5, 1}; };
  auto const result = select_levels(full, small_search());
  CHECK(result.status == solve_status::infeasible);
  CHECK(result.missing_bytes == 5);
  CHECK(result.fastest.empty());
}

TEST_CASE("an epoch that takes too long is an error") {
  auto const slow = [](packing_level const&) {
    return level_reading{0, std::numeric_limits<std::int64_t>::max()};
  };
  level_search const search{.layers = 1, .lengths = {10}, .degrees = {1}};
  CHECK(select_levels(slow, search, std::vector<int>{10}).epoch_nanoseconds ==
        std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(select_levels(slow, search, std::vector<int>{10, 1}), std::overflow_error);
}

TEST_CASE("samples above all lengths do not count, and none need the shortest level only") {
  auto const of = [](std::vector<std::int64_t> const& lengths) {
    return select_levels(linear_profile{.memory = 100'000}, small_search(), lengths).levels;
  };
  CHECK(of({}) == std::vector<packing_level>{{25, 1, 0}});
  CHECK(of({5000}) == of({}));
  CHECK(of({10, 5000}) == of({10}));
  auto const found =
      select_levels(linear_profile{.memory = 100'000}, small_search(), std::vector{10, 801, 5000});
  CHECK(found.oversized == 2);
}
