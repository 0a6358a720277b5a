// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "fnv1a.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/level_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::level_packing;
using omnibal::level_sampler;
using omnibal::level_sampler_options;
using omnibal::packing_level;
using omnibal::remainder_policy;
using omnibal::sampler_state;
using omnibal::shard;
using loads_type = std::vector<omnibal::resources<1>>;

/// Packs of three levels on one, two and four ranks, and their attention.
struct packed_data {
  explicit packed_data(std::size_t samples) {
    test::random_amounts random(samples);
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i != samples; ++i) lengths.push_back(random.heavy_tail(4000));
    std::vector<packing_level> const levels{
        {.length = 400, .checkpointed_layers = 1},
        {.length = 1600, .sequence = 2},
        {.length = 4000, .sequence = 4, .checkpointed_layers = 3}};
    packed = omnibal::pack_levels(lengths, std::identity{}, levels);
    loads = omnibal::group_loads(packed.groups, lengths, [](std::int64_t n) { return n * n; });
  }

  level_packing packed;
  loads_type loads;
};

/// What one rank does in a step.
struct rank_step {
  std::size_t level;
  std::vector<std::uint32_t> groups;
  bool is_repeat;

  friend bool operator==(rank_step const&, rank_step const&) = default;
};

/// The samplers of all ranks, run together.
class fleet {
 public:
  fleet(packed_data const& data, std::size_t ranks, level_sampler_options const& options)
      : data_(&data) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      samplers_.emplace_back(data.packed, data.loads, shard{ranks, rank}, options);
    }
  }
  fleet(packed_data const& data, std::size_t ranks, level_sampler_options const& options,
        sampler_state const& state)
      : data_(&data) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      samplers_.emplace_back(data.packed, data.loads, shard{ranks, rank}, options, state);
    }
  }

  /// Runs a step; what each rank does, after checks that they agree.
  std::vector<rank_step> next() {
    std::vector<rank_step> result;
    for (auto& sampler : samplers_) {
      auto const step = sampler.next();
      result.push_back({step.level, test::to_vector(step.groups), sampler.is_repeat()});
      REQUIRE(step.setting == data_->packed.levels[step.level].setting);
      REQUIRE(step.level == result.front().level);
      REQUIRE(step.groups.size() <= 1);
      for (std::uint32_t const group : step.groups) {
        REQUIRE(data_->packed.level_of(group) == step.level);
      }
      REQUIRE(sampler.state() == state());
      REQUIRE(sampler.step_count() == first().step_count());
      REQUIRE(sampler.done() == (sampler.step() == sampler.step_count()));
    }
    auto const sequence =
        static_cast<std::size_t>(data_->packed.levels[result[0].level].setting.sequence);
    for (std::size_t rank = 0; rank != result.size(); ++rank) {
      REQUIRE(result[rank] == result[rank - rank % sequence]);
    }
    return result;
  }

  /// Runs a step and counts the packs that are no repetitions.
  std::vector<rank_step> next(std::vector<int>& runs) {
    auto const result = next();
    auto const sequence =
        static_cast<std::size_t>(data_->packed.levels[result[0].level].setting.sequence);
    std::size_t new_packs = 0;
    for (std::size_t rank = 0; rank < result.size(); rank += sequence) {
      if (result[rank].is_repeat) continue;
      for (std::uint32_t const group : result[rank].groups) {
        ++runs.at(group);
        ++new_packs;
      }
    }
    REQUIRE(new_packs != 0);
    return result;
  }

  [[nodiscard]] level_sampler<omnibal::resources<1>> const& first() const {
    return samplers_.front();
  }
  [[nodiscard]] sampler_state state() const { return first().state(); }
  [[nodiscard]] bool done() const { return first().done(); }

 private:
  packed_data const* data_;
  std::vector<level_sampler<omnibal::resources<1>>> samplers_;
};

bool all_are(std::vector<int> const& runs, int times) {
  return std::all_of(runs.begin(), runs.end(), [times](int count) { return count == times; });
}

std::string error_of(packed_data const& data, shard const& place,
                     level_sampler_options const& options = {}) {
  return test::error_text<std::invalid_argument>(
      [&] { level_sampler(data.packed, data.loads, place, options); });
}

static_assert(std::same_as<decltype(level_sampler(level_packing{}, std::vector<double>{}, shard{})),
                           level_sampler<double>>);

}  // namespace

TEST_CASE("levels take the steps of any scheduler") {
  packed_data const data(60);
  std::size_t const level_count = data.packed.levels.size();
  std::vector<std::multiset<std::int64_t>> loads_of_level(level_count);
  for (std::uint32_t group = 0; group != data.loads.size(); ++group) {
    loads_of_level[data.packed.level_of(group)].insert(data.loads[group][0]);
  }
  std::size_t calls = 0;
  auto const counted = [&](std::span<omnibal::resources<1> const> loads, std::size_t ranks,
                           omnibal::schedule_steps_options const& options) {
    std::multiset<std::int64_t> offered;
    for (auto const& load : loads) offered.insert(load[0]);
    auto const& own = loads_of_level[calls % level_count];
    CHECK(std::includes(own.begin(), own.end(), offered.begin(), offered.end()));
    ++calls;
    return omnibal::schedule_steps(loads, ranks, options);
  };
  level_sampler_options const options{.schedule = {.seed = 5, .rounds = 3}};
  level_sampler mine(data.packed, data.loads, {.ranks = 4}, options, counted);
  level_sampler expected(data.packed, data.loads, {.ranks = 4}, options);
  CHECK(calls == level_count);
  for (int step = 0; step != 30; ++step) {
    CHECK(test::to_vector(mine.next().groups) == test::to_vector(expected.next().groups));
  }
  level_sampler resumed(data.packed, data.loads, {.ranks = 4}, options, mine.state(), counted);
  CHECK(test::to_vector(resumed.next().groups) == test::to_vector(expected.next().groups));
}

TEST_CASE("an epoch runs every pack once, one level in each step") {
  for (std::size_t const samples : {1u, 7u, 60u, 500u}) {
    packed_data const data(samples);
    for (std::size_t const ranks : {4u, 8u, 12u}) {
      for (auto const policy : {remainder_policy::short_step, remainder_policy::repeat}) {
        fleet all(data, ranks, {.schedule = {.seed = samples, .remainder = policy}});
        std::vector<int> runs(data.loads.size(), 0);
        for (int epoch = 1; epoch != 4; ++epoch) {
          do {
            auto const step = all.next(runs);
            if (policy != remainder_policy::repeat) continue;
            for (rank_step const& mine : step) REQUIRE(mine.groups.size() == 1);
          } while (!all.done());
          REQUIRE(all_are(runs, epoch));
        }
      }
    }
  }
}

TEST_CASE("with carry every rank is busy, and what is left over runs in the next epoch") {
  for (std::size_t const samples : {1u, 60u, 500u, 2000u}) {
    packed_data const data(samples);
    for (std::size_t const ranks : {4u, 8u, 12u}) {
      fleet all(data, ranks, {.schedule = {.seed = samples, .remainder = remainder_policy::carry}});
      std::vector<int> runs(data.loads.size(), 0);
      for (int epoch = 1; epoch != 9; ++epoch) {
        do {
          auto const step = all.next(runs);
          auto const& level = data.packed.levels[step[0].level];
          // A level with fewer packs than a step never fills one.
          if (level.group_count * static_cast<std::size_t>(level.setting.sequence) < ranks)
            continue;
          for (rank_step const& mine : step) {
            REQUIRE(mine.groups.size() == 1);
            REQUIRE_FALSE(mine.is_repeat);
          }
        } while (!all.done());
        auto const behind =
            static_cast<std::uint64_t>(std::count(runs.begin(), runs.end(), epoch - 1));
        REQUIRE(behind == all.first().left_over());
        REQUIRE(static_cast<std::uint64_t>(std::count(runs.begin(), runs.end(), epoch)) + behind ==
                runs.size());
      }
    }
  }
}

TEST_CASE("with carry and other ranks no pack falls behind by more than one run") {
  packed_data const data(300);
  level_sampler_options const options{
      .schedule = {.seed = 6, .remainder = remainder_policy::carry}};
  for (int change = 0; change != 12; ++change) {
    fleet all(data, 8, options);
    std::vector<int> runs(data.loads.size(), 0);
    for (int step = 0; step != 3 * change; ++step) all.next(runs);
    while (all.first().epoch() == 0 && !all.done()) all.next(runs);
    for (int step = 0; step != change; ++step) all.next(runs);
    for (std::size_t const ranks : {16u, 4u, 12u}) {
      fleet other(data, ranks, options, all.state());
      REQUIRE(other.state() == all.state());
      for (int step = 0; step != 2; ++step) other.next(runs);
      all = other;
    }
    while (!all.done()) all.next(runs);
    int const epochs = static_cast<int>(all.first().epoch()) + 1;
    auto const behind =
        static_cast<std::uint64_t>(std::count(runs.begin(), runs.end(), epochs - 1));
    REQUIRE(behind == all.first().left_over());
    REQUIRE(static_cast<std::size_t>(std::count(runs.begin(), runs.end(), epochs)) + behind ==
            runs.size());
  }
}

TEST_CASE("levels take turns evenly") {
  packed_data const data(3000);
  fleet all(data, 4, {});
  std::vector<std::size_t> level_of_step;
  do {
    level_of_step.push_back(all.next()[0].level);
  } while (!all.done());
  for (std::size_t level = 0; level != 3; ++level) {
    auto const total =
        static_cast<double>(std::count(level_of_step.begin(), level_of_step.end(), level));
    double seen = 0;
    for (std::size_t step = 0; step != level_of_step.size(); ++step) {
      seen += level_of_step[step] == level ? 1 : 0;
      double const share =
          total * static_cast<double>(step + 1) / static_cast<double>(level_of_step.size());
      REQUIRE(std::abs(seen - share) <= 1.7);
    }
  }
}

TEST_CASE("the first steps of a training take short packs") {
  packed_data const data(500);
  fleet plain(data, 4, {});
  std::size_t short_steps = 0;
  do {
    short_steps += plain.next()[0].level == 0 ? 1u : 0u;
  } while (!plain.done());
  for (std::uint64_t const first_steps : {std::uint64_t{1}, std::uint64_t{9}, ~std::uint64_t{0}}) {
    level_sampler_options const options{.short_first_steps = first_steps};
    fleet all(data, 4, options);
    std::vector<int> runs(data.loads.size(), 0);
    std::uint64_t const expected = std::min<std::uint64_t>(first_steps, short_steps);
    for (std::uint64_t step = 0; step != expected; ++step) REQUIRE(all.next(runs)[0].level == 0);
    bool has_longer = false;
    while (!all.done()) has_longer = all.next(runs)[0].level != 0 || has_longer;
    CHECK(has_longer);
    CHECK(all_are(runs, 1));
    // Later epochs do not begin again: their turns are those without short first steps.
    fleet later(data, 4, {.schedule = {.epoch = 1}});
    do {
      REQUIRE(all.next()[0].level == later.next()[0].level);
    } while (!later.done());
  }
}

TEST_CASE("short first steps go on where the ranks change") {
  packed_data const data(5000);
  level_sampler_options const options{.short_first_steps = 40};
  fleet all(data, 8, options);
  std::vector<int> runs(data.loads.size(), 0);
  for (int step = 0; step != 15; ++step) REQUIRE(all.next(runs)[0].level == 0);
  fleet resumed(data, 4, options, all.state());
  for (int step = 0; step != 25; ++step) REQUIRE(resumed.next(runs)[0].level == 0);
  bool has_longer = false;
  for (int step = 0; step != 12; ++step) has_longer |= resumed.next(runs)[0].level != 0;
  CHECK(has_longer);
  while (!resumed.done()) resumed.next(runs);
  CHECK(all_are(runs, 1));
}

TEST_CASE("a level sampler resumes exactly at every step") {
  packed_data const data(160);
  for (auto const policy :
       {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
    for (std::size_t const ranks : {4u, 8u}) {
      level_sampler_options const options{.schedule = {.seed = 3, .remainder = policy},
                                          .short_first_steps = 5};
      fleet all(data, ranks, options);
      std::uint64_t const steps = 2 * all.first().step_count() + 5;
      for (std::uint64_t step = 0; step != steps; ++step) {
        fleet resumed(data, ranks, options, all.state());
        REQUIRE(resumed.state() == all.state());
        auto const expected = all.next();
        REQUIRE(resumed.next() == expected);
        REQUIRE(resumed.state() == all.state());
      }
    }
  }
}

TEST_CASE("with other ranks every pack still runs once") {
  packed_data const data(200);
  for (auto const policy : {remainder_policy::short_step, remainder_policy::repeat}) {
    level_sampler_options const options{.schedule = {.seed = 1, .remainder = policy},
                                        .short_first_steps = 4};
    fleet all(data, 8, options);
    std::vector<int> before(data.loads.size(), 0);
    for (;;) {
      for (std::size_t const ranks : {4u, 8u, 16u}) {
        fleet resumed(data, ranks, options, all.state());
        std::vector<int> runs = before;
        while (!resumed.done()) resumed.next(runs);
        REQUIRE(all_are(runs, 1));
        do {
          resumed.next(runs);
        } while (!resumed.done());
        REQUIRE(all_are(runs, 2));
      }
      if (all.done()) break;
      all.next(before);
    }
  }
}

TEST_CASE("ranks that change again and again lose no pack") {
  packed_data const data(400);
  level_sampler_options const options{.schedule = {.seed = 4}};
  fleet all(data, 4, options);
  std::vector<int> runs(data.loads.size(), 0);
  for (std::size_t change = 0; change != omnibal::max_rank_changes; ++change) {
    all.next(runs);
    all = fleet(data, change % 2 == 0 ? 8 : 4, options, all.state());
  }
  while (!all.done()) {
    sampler_state const state = all.state();
    auto const expected = all.next(runs);
    REQUIRE(fleet(data, 4, options, state).next() == expected);
  }
  CHECK(all_are(runs, 1));
}

TEST_CASE("packs of a step have even loads, and mostly meet others in other epochs") {
  packed_data const data(20'000);
  fleet all(data, 4, {});
  // Hashes of steps: GCC 12 compares vectors of integers wrongly on big-endian processors.
  std::set<std::uint64_t> seen[2];
  double waiting = 0;
  std::size_t steps = 0;
  for (int epoch = 0; epoch != 2; ++epoch) {
    do {
      auto const step = all.next();
      std::vector<std::uint32_t> packs;
      double largest = 0;
      double sum = 0;
      for (rank_step const& mine : step) {
        if (mine.groups.empty()) continue;
        packs.push_back(mine.groups[0]);
        auto const load = static_cast<double>(data.loads[mine.groups[0]][0]);
        largest = std::max(largest, load);
        sum += load;
      }
      waiting += 1 - sum / 4 / largest;
      ++steps;
      std::sort(packs.begin(), packs.end());
      test::fnv1a hash;
      for (std::uint32_t const pack : packs) hash.add(pack);
      if (step[0].level == 0) seen[epoch].insert(hash.value());
    } while (!all.done());
  }
  CHECK(waiting / static_cast<double>(steps) <= 0.005);
  std::size_t common = 0;
  for (std::uint64_t const hash : seen[0]) common += seen[1].count(hash);
  CHECK(common * 5 <= seen[0].size());
}

TEST_CASE("any step of the present ranks can be had") {
  packed_data const data(300);
  level_sampler_options const options{
      .schedule = {.seed = 2, .remainder = remainder_policy::repeat}};
  level_sampler sampler(data.packed, data.loads, {.ranks = 8, .rank = 5}, options);
  static_cast<void>(sampler.next());
  level_sampler resumed(data.packed, data.loads, {.ranks = 4, .rank = 3}, options, sampler.state());
  std::uint64_t const count = resumed.step_count();
  bool any_repeat = false;
  for (std::uint64_t step = 1; step != count; ++step) {
    any_repeat = any_repeat || resumed.is_repeat(step);
    auto const expected = resumed(step);
    auto const found = resumed.next();
    REQUIRE(resumed.is_repeat() == resumed.is_repeat(step));
    REQUIRE(found.level == expected.level);
    REQUIRE(test::to_vector(found.groups) == test::to_vector(expected.groups));
  }
  CHECK(resumed.done());
  CHECK(any_repeat);
  CHECK_FALSE(resumed.is_repeat(count));
  std::string const range = "must be in [1, " + std::to_string(count) + ")";
  CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(resumed(0)); }) ==
        "omnibal::level_sampler: step is 0, " + range);
  CHECK(test::error_text<std::invalid_argument>(
            [&] { static_cast<void>(resumed.is_repeat(count + 1)); }) ==
        "omnibal::level_sampler::is_repeat: step is " + std::to_string(count + 1) + ", " + range);
}

TEST_CASE("no packs are an epoch without steps of levels") {
  packed_data const data(0);
  level_sampler sampler(data.packed, data.loads, {.ranks = 4});
  CHECK(sampler.done());
  CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(sampler.next()); }) ==
        "omnibal::level_sampler::next: there are no groups");
}

TEST_CASE("bad arguments of a level sampler are errors") {
  packed_data const data(50);
  CHECK(error_of(data, {.ranks = 0}) ==
        "omnibal::level_sampler: shard.ranks is 0, must be positive");
  CHECK(error_of(data, {.ranks = 4, .rank = 4}) ==
        "omnibal::level_sampler: shard.rank is 4, but there are 4 ranks");
  CHECK(error_of(data, {.ranks = 6}) ==
        "omnibal::level_sampler: levels[2].sequence is 4, must be a divisor of the 6 ranks");
  packed_data few = data;
  few.loads.pop_back();
  CHECK(error_of(few, {.ranks = 4}) == "omnibal::level_sampler: loads has " +
                                           std::to_string(few.loads.size()) + " values for " +
                                           std::to_string(data.loads.size()) + " groups");
}

TEST_CASE("states of other data, options or samplers are errors") {
  packed_data const data(200);
  level_sampler_options const options{.schedule = {.seed = 7}};
  fleet all(data, 4, options);
  for (int step = 0; step != 3; ++step) all.next();
  auto const error_with = [&](packed_data const& given, level_sampler_options const& used,
                              sampler_state const& state) {
    return test::error_text<std::invalid_argument>(
        [&] { level_sampler(given.packed, given.loads, {.ranks = 4}, used, state); });
  };
  CHECK(error_with(data, options, all.state()) == "no error");
  CHECK(error_with(data, {.schedule = {.seed = 8}}, all.state()) == "no error");
  std::string const other = "omnibal::level_sampler: state.digest is ";
  packed_data changed = data;
  changed.loads[3] = {changed.loads[3][0] + 1};
  CHECK(error_with(changed, options, all.state()).starts_with(other));
  changed = data;
  changed.packed.levels[1].setting.checkpointed_layers = 9;
  CHECK(error_with(changed, options, all.state()).starts_with(other));
  CHECK(error_with(data, {.schedule = {.max_dist_ratio = 0.1}}, all.state()).starts_with(other));
  CHECK(error_with(data, {.short_first_steps = 1}, all.state()).starts_with(other));
  CHECK(error_with(data, {.schedule = {.remainder = remainder_policy::repeat}}, all.state())
            .starts_with(other));

  sampler_state bad = all.state();
  bad.carried = 2;
  CHECK(error_with(data, options, bad) == "omnibal::level_sampler: state.carried is 2, must be 0");
  level_sampler_options const carrying{
      .schedule = {.seed = 7, .remainder = remainder_policy::carry}};
  fleet carry(data, 4, carrying);
  while (carry.state().epoch == 0) carry.next();
  REQUIRE(carry.state().carried != 0);
  CHECK(error_with(data, carrying, carry.state()) == "no error");
  bad = carry.state();
  bad.carried = ~std::uint64_t{0};
  CHECK(error_with(data, carrying, bad) ==
        "omnibal::level_sampler: state.carried is 18446744073709551615 in epoch 1, which these "
        "levels cannot have left over");
  bad = fleet(data, 4, carrying).state();
  bad.carried = 1;
  CHECK(error_with(data, carrying, bad) ==
        "omnibal::level_sampler: state.carried is 1 in epoch 0, which these levels cannot have "
        "left over");
  bad = all.state();
  bad.segments[0].batch = 2;
  CHECK(error_with(data, options, bad) ==
        "omnibal::level_sampler: state.segments has a batch of 2 groups, must be 1");
  for (std::uint32_t const ranks : {4u, 8u}) {
    bad = all.state();
    bad.segments[0].ranks = ranks;
    bad.segments[0].step_count = 1000;
    CHECK(error_with(data, options, bad)
              .starts_with("omnibal::level_sampler: state.segments has 1000 steps of " +
                           std::to_string(ranks) + " ranks where the epoch has "));
  }
}

TEST_CASE("levels that could leave over more than a state can say are an error") {
  // 2^20 packs in each of three levels, and at least 2^4 in the fourth.
  auto const error_with = [](std::uint32_t last) {
    level_packing packed;
    std::uint32_t groups = 0;
    for (std::uint32_t const count : {1u << 20, 1u << 20, 1u << 20, last}) {
      std::int64_t const length = static_cast<std::int64_t>(packed.levels.size()) + 1;
      packed.levels.push_back({{.length = length}, groups, count, 0});
      groups += count;
    }
    packed.groups = omnibal::grouping(std::vector<std::uint32_t>(groups + 1, 0), {});
    level_sampler_options const options{.schedule = {.remainder = remainder_policy::carry}};
    return test::error_text<std::invalid_argument>([&] {
      level_sampler(packed, std::vector<std::uint8_t>(groups, 1), shard{8, 1}, options);
    });
  };
  CHECK(error_with(15) == "no error");
  CHECK(
      error_with(17) ==
      "omnibal::level_sampler: options.schedule.remainder is carry, but what 4 levels with so many "
      "groups leave over fits no state");
}
