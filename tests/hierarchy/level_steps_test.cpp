// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "level_faults.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/level_metrics.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::level_packing;
using omnibal::level_steps;
using omnibal::packing_level;
using omnibal::remainder_policy;
using omnibal::schedule_steps_options;
using omnibal::steps;

std::vector<packing_level> const levels{{.length = 4096}, {.length = 32768, .sequence = 4}};

/// Mostly short documents, one in sixteen up to the longest level.
std::vector<std::int64_t> mixed_lengths(std::size_t count) {
  test::random_amounts random(count);
  std::vector<std::int64_t> result(count);
  for (std::int64_t& length : result) {
    length = random.between(0, 15) == 0 ? random.between(4097, 32768) : random.heavy_tail(4096);
  }
  return result;
}

auto squares_of_groups(level_packing const& packed, std::vector<std::int64_t> const& lengths) {
  return omnibal::group_loads(packed.groups, lengths, [](std::int64_t n) { return n * n; });
}

/// Which groups run how often, repetitions apart.
std::vector<int> runs_of(std::vector<steps> const& schedules, std::size_t groups) {
  std::vector<int> counts(groups, 0);
  for (steps const& schedule : schedules) {
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::size_t cell = 0; cell != schedule.ranks(); ++cell) {
        if (schedule.is_repeat(step, cell)) continue;
        for (std::uint32_t const group : schedule(step, cell)) ++counts.at(group);
      }
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("every group is in one step of its level, which has a cell for each pack") {
  for (std::size_t const count : {0u, 1u, 50u, 3000u}) {
    auto const lengths = mixed_lengths(count);
    auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
    auto const loads = squares_of_groups(packed, lengths);
    for (remainder_policy const policy : {remainder_policy::short_step, remainder_policy::repeat}) {
      auto const schedules = level_steps(packed, loads, 8, {.remainder = policy});
      REQUIRE(schedules.size() == 2);
      CHECK(schedules[0].ranks() == 8);
      CHECK(schedules[1].ranks() == 2);
      CHECK(runs_of(schedules, packed.groups.size()) == std::vector<int>(packed.groups.size(), 1));
      for (std::size_t level = 0; level != 2; ++level) {
        for (std::uint32_t const group : schedules[level].cells().items()) {
          REQUIRE(packed.level_of(group) == level);
        }
      }
    }
  }
}

TEST_CASE("attention is even in the steps, and uneven where they are random") {
  auto const lengths = mixed_lengths(100'000);
  auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
  auto const loads = squares_of_groups(packed, lengths);
  auto const balance = [&](double tolerance) {
    auto const schedules = level_steps(packed, loads, 8, {.max_dist_ratio = tolerance});
    return omnibal::level_metrics(packed, schedules, lengths).attention_balance;
  };
  CHECK(balance(0.0) <= 0.002);
  CHECK(balance(0.002) <= 0.005);
  CHECK(balance(1.0) > 0.1);
}

TEST_CASE("seeds and epochs make other steps") {
  auto const lengths = mixed_lengths(3000);
  auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
  auto const loads = squares_of_groups(packed, lengths);
  auto const first = level_steps(packed, loads, 8);
  CHECK(level_steps(packed, loads, 8) == first);
  auto const later = level_steps(packed, loads, 8, {.epoch = 1});
  auto const other = level_steps(packed, loads, 8, {.seed = 1});
  for (std::size_t level = 0; level != 2; ++level) {
    CHECK(later[level] != first[level]);
    CHECK(other[level] != first[level]);
  }
}

TEST_CASE("figures of levels are those of the definitions") {
  // Short packs 6 + 2, 5, 4; a long one 60 + 3 for two ranks.
  std::vector<std::int64_t> const lengths{6, 2, 5, 4, 60, 3};
  level_packing const packed{
      .levels = {{{.length = 8}, 0, 3, 0}, {{.length = 64, .sequence = 2}, 3, 1, 1}},
      .groups = omnibal::grouping({0, 2, 3, 4, 6}, {0, 1, 2, 3, 4, 5}),
      .oversized = {}};
  REQUIRE(test::level_fault(packed, lengths) == "");
  std::vector<steps> const schedules{omnibal::make_steps({{0}, {1}, {2}, {}}, 2),
                                     omnibal::make_steps({{3}}, 1)};
  auto const figures = omnibal::level_metrics(packed, schedules, lengths);
  // Steps 8 | 5 and 4 | idle of the first level, one of the second where no rank waits.
  CHECK(figures.data_balance == Approx((3.0 / 16 + 0.5 + 0) / 3));
  CHECK(figures.attention_balance == Approx(((1 - 65.0 / 80) + 0.5 + 0) / 3));
  CHECK(figures.communication_ratio == Approx(63.0 / 80));
  CHECK(figures.pad_ratio == Approx(8.0 / 88));
}

TEST_CASE("a sample alone above the last level is not padded") {
  std::vector<std::int64_t> const lengths{6, 5, 20};
  auto const packed =
      omnibal::pack_levels(lengths, std::identity{}, std::vector<std::int64_t>{8},
                           omnibal::next_fit, {.oversized = omnibal::oversize_policy::own_group});
  auto const schedules = level_steps(packed, std::vector<std::int64_t>{1, 1, 1}, 1);
  CHECK(omnibal::level_metrics(packed, schedules, lengths).pad_ratio == Approx(5.0 / 36));
}

TEST_CASE("nothing has figures of zero") {
  auto const packed = omnibal::pack_levels(std::vector<std::int64_t>{}, std::identity{}, levels);
  auto const schedules = level_steps(packed, std::vector<std::int64_t>{}, 4);
  auto const figures = omnibal::level_metrics(packed, schedules, std::vector<std::int64_t>{});
  CHECK(figures.data_balance == 0.0);
  CHECK(figures.attention_balance == 0.0);
  CHECK(figures.communication_ratio == 0.0);
  CHECK(figures.pad_ratio == 0.0);
}

TEST_CASE("wrong arguments of level_steps and level_metrics are errors") {
  std::vector<std::int64_t> const lengths{1, 2, 30000};
  auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
  auto const error_of = [&](level_packing const& given, std::size_t loads, std::size_t ranks,
                            schedule_steps_options const& options) {
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(level_steps(given, std::vector<std::int64_t>(loads, 1), ranks, options));
    });
  };
  CHECK(error_of(packed, 1, 6, {}) ==
        "omnibal::level_steps: levels[1].sequence is 4, must be a divisor of the 6 ranks");
  CHECK(error_of(packed, 1, 0, {}) ==
        "omnibal::level_steps: levels[0].sequence is 1, must be a divisor of the 0 ranks");
  CHECK(error_of(packed, 2, 4, {}) == "omnibal::level_steps: loads has 2 values for 1 groups");
  CHECK(error_of(packed, 1, 4, {.remainder = remainder_policy::carry}) ==
        "omnibal::level_steps: options.remainder is carry, must be short_step or "
        "repeat");
  level_packing broken = packed;
  broken.levels[1].group_count = 0;
  CHECK(error_of(broken, 1, 4, {}) ==
        "omnibal::level_steps: the levels of packed do not have its 1 groups one after the other");
  std::vector<steps> const one{steps(1)};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::level_metrics(packed, one, lengths));
        }) == "omnibal::level_metrics: schedules has 1 values for 2 levels");
}
