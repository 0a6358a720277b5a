// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/order_micro_batches.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::order_micro_batches;
using omnibal::simulate_pipeline;
using omnibal::stage_time;
using omnibal::transfer_time;

using indices = std::vector<std::uint32_t>;

template <class Value>
using table = std::vector<std::vector<Value>>;

std::int64_t below(omnibal::rng::engine& random, std::uint64_t count) {
  return static_cast<std::int64_t>(omnibal::rng::below(random, count));
}

/// Times and transfers for each virtual stage and micro-batch.
struct step_times {
  table<stage_time<>> times;
  table<transfer_time<>> transfers;

  step_times(omnibal::rng::engine& random, std::size_t stages, std::size_t micro_batches)
      : times(stages), transfers(stages - 1) {
    for (std::size_t m = 0; m != micro_batches; ++m) {
      for (auto& stage : times) {
        stage.push_back({below(random, 9), below(random, 9), below(random, 5)});
      }
      for (auto& cut : transfers) cut.push_back({below(random, 3), below(random, 3)});
    }
  }

  template <class Schedule>
  [[nodiscard]] std::int64_t makespan(Schedule const& schedule, indices const& order) const {
    auto const of = [&order](auto const& rows) {
      auto result = rows;
      for (std::size_t v = 0; v != rows.size(); ++v) {
        for (std::size_t m = 0; m != order.size(); ++m) result[v][m] = rows[v][order[m]];
      }
      return result;
    };
    return simulate_pipeline(schedule, of(times), of(transfers)).makespan;
  }
};

indices given_order(std::size_t count) {
  indices result(count);
  std::iota(result.begin(), result.end(), std::uint32_t{0});
  return result;
}

/// Compares an order with all orders, and returns whether it is the best.
template <class Schedule>
bool check_order(omnibal::rng::engine& random, Schedule const& schedule) {
  step_times const step(random, schedule.stages * schedule.chunk_count(), schedule.micro_batches);
  auto const found = order_micro_batches(schedule, step.times, step.transfers);
  indices order = given_order(schedule.micro_batches);
  CHECK(found.given_makespan == step.makespan(schedule, order));
  std::int64_t best = found.given_makespan;
  do {
    best = std::min(best, step.makespan(schedule, order));
  } while (std::ranges::next_permutation(order).found);
  CHECK(std::ranges::is_permutation(found.order, order));
  CHECK(found.makespan == step.makespan(schedule, found.order));
  CHECK(found.makespan >= best);
  CHECK(found.lower_bound <= best);
  return found.makespan == best;
}

}  // namespace

// The bound holds for every order, and the search finds the best order of few micro-batches in nine
// of ten cases.
TEST_CASE("order_micro_batches: against all orders of small steps") {
  omnibal::rng::engine random(47);
  std::size_t best = 0;
  std::size_t count = 0;
  for (std::size_t stages = 1; stages != 5; ++stages) {
    for (std::size_t micro_batches = 1; micro_batches != 6; ++micro_batches) {
      for (int i = 0; i != 5; ++i) {
        best += check_order(random, omnibal::one_f_one_b{stages, micro_batches});
        best += check_order(random, omnibal::zb_h1{stages, micro_batches});
        best += check_order(random, omnibal::gpipe{stages, micro_batches});
        count += 3;
      }
    }
    if (stages > 3) continue;
    for (int i = 0; i != 10; ++i) {
      best += check_order(random, omnibal::interleaved_1f1b{stages, 5, 2});
      ++count;
    }
  }
  CHECK(10 * best >= 9 * count);
}

// A large micro-batch delays the others least if some run before it and some behind it.
TEST_CASE("order_micro_batches: one large micro-batch") {
  omnibal::one_f_one_b const schedule{4, 7};
  auto const times_in = [](indices const& order) {
    return [order](std::size_t, std::size_t m) {
      return order[m] == 0 ? stage_time<>{10, 20} : stage_time<>{1, 2};
    };
  };
  indices order = given_order(7);
  auto const found = order_micro_batches(schedule, times_in(order));
  std::int64_t best = found.given_makespan;
  do {
    best = std::min(best, simulate_pipeline(schedule, times_in(order)).makespan);
  } while (std::ranges::next_permutation(order).found);
  CHECK(found.makespan == best);
  CHECK(found.makespan < found.given_makespan);
  CHECK(found.order.front() != 0);
  CHECK(found.order.back() != 0);
}

// Equal micro-batches keep the given order, and the search ends at once because the bound is exact.
TEST_CASE("order_micro_batches: equal micro-batches") {
  omnibal::one_f_one_b const schedule{4, 12};
  auto const found = order_micro_batches(schedule, stage_time<>{1, 2}, 0,
                                         {.simulations = std::numeric_limits<std::size_t>::max()});
  CHECK(found.order == given_order(12));
  CHECK(found.makespan == 45);
  CHECK(found.lower_bound == 45);
}

// Unlike lengths lose a sixth of a step in random order, and a fiftieth in the order found.
TEST_CASE("order_micro_batches: what the order gains") {
  constexpr std::size_t micro_batches = 32;
  omnibal::one_f_one_b const schedule{8, micro_batches};
  omnibal::rng::engine random(1);
  double given = 0;
  double rule = 0;
  double found = 0;
  for (int step = 0; step != 8; ++step) {
    std::vector<std::int64_t> sizes;
    for (std::size_t m = 0; m != micro_batches; ++m) {
      double sum = 0;
      for (int i = 0; i != 12; ++i) sum += static_cast<double>(below(random, 1000)) / 1000;
      sizes.push_back(static_cast<std::int64_t>(10000 * std::exp(.1 * (sum - 6))));
    }
    auto const times = [&](std::size_t, std::size_t m) {
      return stage_time<>{sizes[m], 2 * sizes[m]};
    };
    auto const simple = order_micro_batches(schedule, times, 0, {.simulations = 0});
    auto const best = order_micro_batches(schedule, times);
    auto const bound = static_cast<double>(best.lower_bound);
    given += static_cast<double>(best.given_makespan) / bound / 8;
    rule += static_cast<double>(simple.makespan) / bound / 8;
    found += static_cast<double>(best.makespan) / bound / 8;
    CHECK(order_micro_batches(schedule, times) == best);
  }
  CHECK(given > 1.10);
  CHECK(rule < 1.04);
  CHECK(found < 1.025);
  CHECK(found < rule);
}

TEST_CASE("largest_in_middle: the order of costs") {
  CHECK(omnibal::largest_in_middle(std::vector{5, 1, 4, 2, 3}) == indices{1, 4, 0, 2, 3});
  CHECK(omnibal::largest_in_middle(std::vector{2.5, 2.5, 1.0, 2.5}) == indices{2, 1, 3, 0});
  CHECK(omnibal::largest_in_middle(std::vector<int>{}).empty());
  CHECK(test::error_text<std::invalid_argument>([] {
          return omnibal::largest_in_middle(std::vector{1, -2});
        }) == "omnibal::largest_in_middle: cost[1] is -2, must be finite and not negative");
}

TEST_CASE("order_micro_batches: errors are those of the simulation") {
  omnibal::one_f_one_b const schedule{2, 3};
  table<stage_time<>> const short_rows{{{1, 1}, {1, 1}, {1, 1}}, {{1, 1}, {1, 1}}};
  CHECK(test::error_text<std::invalid_argument>([&] {
          return order_micro_batches(schedule, short_rows);
        }) == "omnibal::simulate_pipeline: times[1] has 2 values for 3 micro-batches");
  CHECK(test::error_text<std::invalid_argument>([] {
          return order_micro_batches(omnibal::one_f_one_b{0, 1}, stage_time<>{1, 1});
        }) == "omnibal::one_f_one_b: stages is 0, must be positive");
}
