// SPDX-License-Identifier: Apache-2.0
#include "event_reference.hpp"

#include <omnibal/pipeline/dual_pipe_v.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::gpipe;
using omnibal::interleaved_1f1b;
using omnibal::one_f_one_b;
using omnibal::operation_kind;
using omnibal::simulate_pipeline;
using omnibal::stage_time;
using omnibal::timeline_policy;
using omnibal::transfer_time;
using omnibal::zb_h1;

constexpr omnibal::simulate_pipeline_options recorded{.timeline = timeline_policy::recorded};

std::int64_t below(omnibal::rng::engine& random, std::int64_t count) {
  return static_cast<std::int64_t>(omnibal::rng::below(random, static_cast<std::uint64_t>(count)));
}

/// Times, transfers and bytes for every virtual stage and micro-batch.
struct random_costs {
  std::vector<std::vector<stage_time<>>> times;
  std::vector<std::vector<transfer_time<>>> transfers;
  std::vector<std::vector<std::int64_t>> bytes;

  random_costs(omnibal::rng::engine& random, std::size_t stages, std::size_t micro_batches,
               std::int64_t range)
      : times(stages), transfers(stages - 1), bytes(stages) {
    for (std::size_t m = 0; m != micro_batches; ++m) {
      for (auto& stage : times) {
        stage.push_back({below(random, range), below(random, range), below(random, range)});
      }
      for (auto& cut : transfers) cut.push_back({below(random, range), below(random, range)});
      for (auto& stage : bytes) stage.push_back(below(random, range));
    }
  }

  [[nodiscard]] test::pipeline_costs<std::int64_t> as_functions(bool splits_backward) const {
    test::pipeline_costs<std::int64_t> result;
    result.time = [this, splits_backward](operation_kind kind, std::size_t s, std::size_t m) {
      stage_time<> const& time = times[s][m];
      if (kind == operation_kind::forward) return time.forward;
      if (kind == operation_kind::weight) return time.weight;
      return splits_backward ? time.backward : time.backward + time.weight;
    };
    result.transfer = [this](operation_kind kind, std::size_t cut, std::size_t m) {
      return kind == operation_kind::forward ? transfers[cut][m].forward
                                             : transfers[cut][m].backward;
    };
    result.bytes = [this](std::size_t s, std::size_t m) { return bytes[s][m]; };
    return result;
  }
};

template <class Schedule>
void check_against_events(Schedule const& schedule, std::uint64_t seed, std::int64_t range) {
  omnibal::rng::engine random(seed);
  random_costs const costs(random, schedule.stages * schedule.chunk_count(), schedule.micro_batches,
                           range);
  auto const expected = test::run_events(schedule, costs.as_functions(Schedule::splits_backward));
  auto const result =
      simulate_pipeline(schedule, costs.times, costs.transfers, costs.bytes, recorded);
  INFO(schedule.stages << " stages, " << schedule.micro_batches << " micro-batches");
  CHECK(result.makespan == expected.makespan);
  CHECK(result.busy == expected.busy);
  CHECK(result.peak_bytes == expected.peak_bytes);
  CHECK(result.bubble_share == Approx(expected.bubble_share));
  bool const same_timeline = result.timeline == expected.timeline;
  CHECK(same_timeline);
}

}  // namespace

TEST_CASE("simulate_pipeline agrees with a simulation by events") {
  omnibal::rng::engine random(1);
  for (std::uint64_t round = 0; round != 300; ++round) {
    auto const stages = static_cast<std::size_t>(1 + below(random, 6));
    auto const micro_batches = static_cast<std::size_t>(1 + below(random, 12));
    // Many ties and times of zero, or hardly any.
    std::int64_t const range = round % 3 == 0 ? 2 : round % 3 == 1 ? 10 : 1'000'000;
    check_against_events(gpipe{stages, micro_batches}, round, range);
    check_against_events(one_f_one_b{stages, micro_batches}, round, range);
    check_against_events(zb_h1{stages, micro_batches}, round, range);
    check_against_events(omnibal::dual_pipe_v(stages, 2 * stages + micro_batches), round, range);
    auto const groups = static_cast<std::size_t>(1 + below(random, 4));
    auto const chunks = static_cast<std::size_t>(1 + below(random, 4));
    check_against_events(interleaved_1f1b{stages, groups * stages, chunks}, round, range);
    std::size_t const group = stages + static_cast<std::size_t>(below(random, 4));
    check_against_events(interleaved_1f1b{stages, micro_batches, chunks, group}, round, range);
  }
}

TEST_CASE("simulate_pipeline gives the known makespans of equal stages") {
  for (std::int64_t p = 1; p <= 6; ++p) {
    for (std::int64_t m = 1; m <= 3 * p; ++m) {
      auto const stages = static_cast<std::size_t>(p);
      auto const micro_batches = static_cast<std::size_t>(m);
      for (stage_time<> const time :
           {stage_time{7, 13}, stage_time{5, 0}, stage_time{0, 5}, stage_time{4, 6, 3}}) {
        INFO(p << " stages, " << m << " micro-batches");
        std::int64_t const both = time.forward + time.backward + time.weight;
        auto const first = simulate_pipeline(gpipe{stages, micro_batches}, time);
        auto const second = simulate_pipeline(one_f_one_b{stages, micro_batches}, time);
        CHECK(first.makespan == (m + p - 1) * both);
        CHECK(second.makespan == (m + p - 1) * both);
        auto const share = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
        CHECK(first.bubble_share == Approx(share));
        CHECK(second.bubble_share == Approx(share));
        CHECK(second.busy == std::vector<std::int64_t>(stages, m * both));
      }
    }
  }
}

TEST_CASE("interleaving divides the waiting by the chunks") {
  for (std::int64_t p = 1; p <= 5; ++p) {
    for (std::int64_t chunks = 1; chunks <= 4; ++chunks) {
      for (std::int64_t groups = 1; groups <= 3; ++groups) {
        interleaved_1f1b const schedule{static_cast<std::size_t>(p),
                                        static_cast<std::size_t>(groups * p),
                                        static_cast<std::size_t>(chunks)};
        INFO(p << " stages, " << groups * p << " micro-batches, " << chunks << " chunks");
        auto const result = simulate_pipeline(schedule, stage_time{5, 10});
        CHECK(result.makespan == groups * p * chunks * 15 + (p - 1) * 15);
      }
    }
  }
}

// A number of micro-batches that is no multiple of the stages costs no waiting, and neither do
// larger groups. The first stage keeps as many units as Megatron's warm-up for the largest group.
TEST_CASE("interleaving with any number of micro-batches and any group") {
  for (std::size_t p = 1; p <= 5; ++p) {
    for (std::size_t m = p; m <= 3 * p + 1; ++m) {
      for (std::size_t group = p; group <= p + 3 && group <= m; ++group) {
        interleaved_1f1b const schedule{p, m, 3, group};
        INFO(p << " stages, " << m << " micro-batches, groups of " << group);
        auto const makespan = simulate_pipeline(schedule, stage_time{5, 10}).makespan;
        CHECK(makespan == static_cast<std::int64_t>(15 * (3 * m + p - 1)));
        std::size_t const groups = m / group;
        std::size_t const kept = 2 * p - 1 + 2 * ((m + groups - 1) / groups);
        CHECK(omnibal::peak_in_flight(schedule).front() ==
              static_cast<std::int64_t>(std::min(kept, 3 * m)));
      }
    }
  }
}

TEST_CASE("ZB-H1 waits as long as published") {
  for (std::int64_t p = 1; p <= 6; ++p) {
    for (std::int64_t m = p; m <= p + 7; ++m) {
      for (std::int64_t f = 1; f <= 4; ++f) {
        for (std::int64_t b = 1; b <= 4; ++b) {
          for (std::int64_t w = 0; w <= std::min(f, b); ++w) {
            zb_h1 const schedule{static_cast<std::size_t>(p), static_cast<std::size_t>(m)};
            INFO(p << " stages, " << m << " micro-batches, times " << f << b << w);
            CHECK(simulate_pipeline(schedule, stage_time{f, b, w}).makespan ==
                  m * (f + b + w) + (p - 1) * (f + b - w));
          }
        }
      }
    }
  }
}

TEST_CASE("schedules keep as many micro-batches in flight as they say") {
  for (std::int64_t p = 1; p <= 6; ++p) {
    for (std::int64_t m = 1; m <= 9; ++m) {
      auto const stages = static_cast<std::size_t>(p);
      auto const micro_batches = static_cast<std::size_t>(m);
      INFO(p << " stages, " << m << " micro-batches");
      auto const all =
          simulate_pipeline(gpipe{stages, micro_batches}, stage_time{2, 3}, 1, 1).peak_bytes;
      auto const few =
          simulate_pipeline(one_f_one_b{stages, micro_batches}, stage_time{2, 3}, 1, 1).peak_bytes;
      auto const same =
          simulate_pipeline(zb_h1{stages, micro_batches}, stage_time{2, 2, 2}, 1, 1).peak_bytes;
      for (std::int64_t s = 0; s != p; ++s) {
        auto const stage = static_cast<std::size_t>(s);
        CHECK(all[stage] == m);
        CHECK(few[stage] == std::min(m, p - s));
        CHECK(same[stage] == std::min(m, p));
      }
    }
  }
}

TEST_CASE(
    "simulate_pipeline takes one value, one for each stage, one for each micro-batch, or a "
    "functor") {
  one_f_one_b const schedule{3, 4};
  std::array<stage_time<>, 3> const of_stages{stage_time{4, 8}, stage_time{5, 10},
                                              stage_time{6, 12}};
  std::vector<std::vector<stage_time<>>> of_both;
  for (auto const& time : of_stages) of_both.emplace_back(4, time);
  auto const of_functor = [&](std::size_t stage, std::size_t) { return of_stages[stage]; };
  auto const expected = simulate_pipeline(schedule, of_stages, 3, 100);
  CHECK(simulate_pipeline(schedule, of_both, transfer_time{3, 3}, std::vector<int>(3, 100)) ==
        expected);
  CHECK(simulate_pipeline(schedule, of_functor, std::vector<int>{3, 3}).makespan ==
        expected.makespan);
  CHECK(simulate_pipeline(
            schedule, of_stages, [](std::size_t, std::size_t) { return 3; },
            [](std::size_t, std::size_t) { return 100; }) == expected);
  CHECK(expected.peak_bytes == std::vector<std::int64_t>{300, 200, 100});
}

TEST_CASE("simulate_pipeline tells forward transfers from backward ones") {
  // One micro-batch passes three stages up and down.
  auto const result =
      simulate_pipeline(gpipe{3, 1}, stage_time{1, 2}, transfer_time{10, 100}, 0, recorded);
  CHECK(result.makespan == 3 * 1 + 3 * 2 + 2 * 10 + 2 * 100);
  CHECK(result.timeline[2].begin == 11);
  CHECK(result.timeline[3].begin == 11 + 1 + 10 + 1 + 2 + 100);
}

TEST_CASE("simulate_pipeline computes in floating point where a time floats") {
  auto const result = simulate_pipeline(one_f_one_b{2, 3}, stage_time{0.5, 1.0}, 0.25);
  static_assert(std::same_as<decltype(result.makespan), double>);
  // The second stage waits for the third micro-batch, which the first began after a gradient.
  CHECK(result.makespan == 7.0);
  static_assert(
      std::same_as<decltype(simulate_pipeline(gpipe{2, 3}, stage_time{1, 2}, 0.5).makespan),
                   double>);
}

TEST_CASE("simulate_pipeline gives the timeline by stage and by time") {
  auto const result = simulate_pipeline(zb_h1{4, 6}, stage_time{3, 4, 2}, 1, 1, recorded);
  REQUIRE(result.timeline.size() == 4u * 6u * 3u);
  for (std::size_t i = 1; i != result.timeline.size(); ++i) {
    auto const& before = result.timeline[i - 1];
    auto const& after = result.timeline[i];
    CHECK(before.stage <= after.stage);
    if (before.stage == after.stage) CHECK(before.end <= after.begin);
  }
  CHECK(simulate_pipeline(zb_h1{4, 6}, stage_time{3, 4, 2}).timeline.empty());
}

TEST_CASE("simulate_pipeline gives the same with a workspace that has been used") {
  omnibal::simulate_pipeline_workspace<> workspace;
  for (std::size_t const micro_batches : {9u, 3u, 12u}) {
    interleaved_1f1b const schedule{3, micro_batches, 2};
    auto const& result = simulate_pipeline(schedule, stage_time{3, 5}, 1, 7, recorded, workspace);
    CHECK(result == simulate_pipeline(schedule, stage_time{3, 5}, 1, 7, recorded));
    auto const& other =
        simulate_pipeline(gpipe{2, micro_batches}, stage_time{3, 5}, 1, 7, {}, workspace);
    CHECK(other == simulate_pipeline(gpipe{2, micro_batches}, stage_time{3, 5}, 1, 7));
  }
}

namespace {

/// Backward passes from the last micro-batch to the first.
struct last_first {
  std::size_t stages;
  std::size_t micro_batches;
  static constexpr bool splits_backward = false;
  [[nodiscard]] static std::size_t chunk_count() { return 1; }
  [[nodiscard]] operation_kind next(std::size_t, omnibal::stage_progress const& done) const {
    return done.forward < micro_batches ? operation_kind::forward : operation_kind::backward;
  }
  [[nodiscard]] omnibal::pipeline_unit unit(operation_kind kind, std::uint32_t index) const {
    auto const last = static_cast<std::uint32_t>(micro_batches) - 1;
    return {.micro_batch = kind == operation_kind::forward ? index : last - index};
  }
  void check() const {}
};

}  // namespace

TEST_CASE("simulate_pipeline takes schedules of its users") {
  auto const result = simulate_pipeline(last_first{3, 4}, stage_time{2, 3}, 0, 0, recorded);
  CHECK(result.makespan == 6 * 5);
  CHECK(result.timeline[4].micro_batch == 3);
}

TEST_CASE("estimate_makespan is near the simulation where stages are nearly balanced") {
  CHECK(omnibal::estimate_makespan(std::vector<int>{3, 5, 4}, 10) == 9 * 5 + 12);
  CHECK(omnibal::estimate_makespan(std::vector<double>{0.5, 0.25}, 3) == 1.75);
  omnibal::rng::engine random(5);
  double largest = 0;
  for (int round = 0; round != 200; ++round) {
    auto const stages = static_cast<std::size_t>(2 + below(random, 15));
    std::size_t const micro_batches = stages * static_cast<std::size_t>(2 + below(random, 15));
    std::vector<stage_time<>> times(stages);
    for (stage_time<>& time : times) {
      std::int64_t const forward = 10'000 + below(random, 500);
      time = {forward, 2 * forward + below(random, 200)};
    }
    auto const estimate = omnibal::estimate_makespan(
        times, micro_batches, [](stage_time<> const& t) { return t.forward + t.backward; });
    auto const makespan = simulate_pipeline(one_f_one_b{stages, micro_batches}, times).makespan;
    largest = std::max(largest, std::abs(static_cast<double>(estimate - makespan)) /
                                    static_cast<double>(makespan));
  }
  INFO("largest deviation " << largest);
  CHECK(largest < 0.01);
  CHECK(largest > 0.0);
}

namespace {

using algorithm = omnibal::simulate_pipeline_fn;

struct opaque {};

static_assert(omnibal::pipeline_schedule<gpipe> && omnibal::pipeline_schedule<one_f_one_b>);
static_assert(omnibal::pipeline_schedule<interleaved_1f1b> && omnibal::pipeline_schedule<zb_h1>);
static_assert(!omnibal::pipeline_schedule<int>);
static_assert(std::invocable<algorithm, gpipe, stage_time<>>);
static_assert(std::invocable<algorithm, gpipe, std::vector<stage_time<float>>, double, int>);
static_assert(!std::invocable<algorithm, gpipe>);
static_assert(!std::invocable<algorithm, gpipe, int>);
static_assert(!std::invocable<algorithm, gpipe, stage_time<>, opaque>);
static_assert(!std::invocable<algorithm, gpipe, stage_time<>, int, double>);
static_assert(!std::invocable<algorithm, int, stage_time<>>);

}  // namespace

TEST_CASE("peak_in_flight counts the units that a simulation keeps") {
  auto const compare = [](auto const& schedule) {
    auto const kept = omnibal::simulate_pipeline(schedule, omnibal::stage_time{2, 3, 1}, 0, 1);
    CHECK(omnibal::peak_in_flight(schedule) == kept.peak_bytes);
  };
  for (std::size_t stages = 1; stages != 6; ++stages) {
    for (std::size_t batches = 1; batches != 9; ++batches) {
      CAPTURE(stages, batches);
      compare(omnibal::gpipe{stages, batches});
      compare(omnibal::one_f_one_b{stages, batches});
      compare(omnibal::zb_h1{stages, batches});
      compare(omnibal::interleaved_1f1b{stages, stages * batches, 2});
    }
  }
  CHECK(omnibal::peak_in_flight(omnibal::one_f_one_b{3, 8}) == std::vector<std::int64_t>{3, 2, 1});
  CHECK_THROWS_AS(omnibal::peak_in_flight(omnibal::gpipe{0, 1}), std::invalid_argument);
}
