// SPDX-License-Identifier: Apache-2.0
#include "fleet.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::sampler_state;
using omnibal::shard;
using omnibal::step_sampler;

constexpr std::uint64_t seed = 12;
constexpr omnibal::resources<2> capacity{9, 4096};

std::vector<omnibal::resources<2>> make_samples() {
  test::random_amounts random(seed);
  return test::make_samples<2>(300, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.between(0, 4) : random.between(100, 2000);
  });
}

/// A training run on some ranks that repacks in every epoch, and logs which samples each step of it
/// takes. Stops after `steps_to_run` and gives its state.
sampler_state train(std::vector<omnibal::resources<2>> const& samples, std::size_t ranks,
                    sampler_state state, std::size_t steps_to_run,
                    std::vector<std::vector<std::uint32_t>>& log) {
  auto const pack = [&](std::uint64_t epoch_seed) {
    return omnibal::isf(samples, std::identity{}, capacity, {.rounds = 10},
                        omnibal::reaches_most(capacity), omnibal::rng::fisher_yates{epoch_seed});
  };
  bool resumes = state != sampler_state{};
  for (std::uint64_t epoch = state.epoch;; ++epoch) {
    auto const packed = omnibal::repack(seed, epoch, pack);
    auto const loads = omnibal::group_loads(packed.groups, samples, std::identity{});
    omnibal::schedule_steps_options const options{.seed = seed, .epoch = epoch};
    test::fleet all(ranks, [&](shard const& place) {
      return resumes ? step_sampler(loads, place, options, state)
                     : step_sampler(loads, place, options);
    });
    resumes = false;
    while (!all.done()) {
      if (steps_to_run-- == 0) return all.state();
      std::vector<std::uint32_t> taken;
      for (auto const& of_rank : all.next()) {
        for (std::uint64_t const group : of_rank.new_ones) {
          auto const items = packed.groups[group];
          taken.insert(taken.end(), items.begin(), items.end());
        }
      }
      log.push_back(taken);
    }
  }
}

}  // namespace

TEST_CASE("each epoch has its own packing, the same whenever it is made") {
  auto const samples = make_samples();
  std::uint64_t given = 0;
  auto const pack = [&](std::uint64_t epoch_seed) {
    given = epoch_seed;
    return omnibal::isf(samples, std::identity{}, capacity, {}, omnibal::reaches_most(capacity),
                        omnibal::rng::fisher_yates{epoch_seed});
  };
  auto const third = omnibal::repack(seed, 3, pack);
  CHECK(given == omnibal::epoch_seed(seed, 3));
  CHECK(omnibal::repack(seed, 4, pack).groups != third.groups);
  CHECK(omnibal::repack(seed + 1, 3, pack).groups != third.groups);
  CHECK(omnibal::repack(seed, 3, pack) == third);
}

TEST_CASE("a run that repacks in every epoch resumes in the middle of one") {
  auto const samples = make_samples();
  std::vector<std::vector<std::uint32_t>> whole;
  static_cast<void>(train(samples, 4, {}, 70, whole));
  REQUIRE(whole.size() == 70);
  for (std::size_t stop = 1; stop < 70; stop += 3) {
    std::vector<std::vector<std::uint32_t>> log;
    sampler_state const state = train(samples, 4, {}, stop, log);
    static_cast<void>(train(samples, 4, state, 70 - stop, log));
    CHECK(log == whole);
  }
}

TEST_CASE("a run that repacks takes every sample once per epoch, with other ranks too") {
  auto const samples = make_samples();
  for (std::size_t stop = 0; stop != 40; ++stop) {
    std::vector<std::vector<std::uint32_t>> log;
    sampler_state state = train(samples, 4, {}, stop, log);
    state = train(samples, 6, state, 5, log);
    state = train(samples, 3, state, 100, log);
    std::vector<std::size_t> counts(samples.size(), 0);
    for (auto const& step : log) {
      for (std::uint32_t const sample : step) ++counts[sample];
    }
    // Of the epoch that runs some samples are still to come.
    for (std::size_t const count : counts) {
      CHECK(count >= state.epoch);
      CHECK(count <= state.epoch + 1);
    }
  }
}

namespace {

static_assert(omnibal::seeded_packer<omnibal::packing (*)(std::uint64_t)>);
static_assert(!omnibal::seeded_packer<omnibal::grouping (*)(std::uint64_t)>);
static_assert(!omnibal::seeded_packer<omnibal::packing (*)()>);

}  // namespace
