// SPDX-License-Identifier: Apache-2.0
/// \file
/// Choices for recomputation. The yardstick is the usual dynamic program over a budget in slots,
/// which rounds bytes and has no bound.

#include "compare.hpp"

#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using layers_type = std::vector<std::array<omnibal::activation_option<>, 3>>;

struct problem {
  layers_type layers;
  std::int64_t budget;
};

/// Layers of so many kinds, with nothing, the attention or everything recomputed, all numbers off
/// by up to `per_mille` thousandths. The budgets lie anywhere between the least and the most.
std::vector<problem> make_problems(std::size_t count, std::size_t kinds, std::int64_t per_mille) {
  // Nanoseconds and kilobytes of four kinds of layers.
  constexpr std::int64_t times[4][3]{{0, 1'300'000, 3'980'000},
                                     {0, 900'000, 3'247'000},
                                     {0, 1'500'000, 4'630'000},
                                     {0, 500'000, 894'000}};
  constexpr std::int64_t bytes[4][3]{{1'968'000, 1'181'000, 98'000},
                                     {721'000, 487'000, 50'000},
                                     {872'000, 587'000, 58'000},
                                     {291'000, 200'000, 98'000}};
  std::vector<problem> problems;
  for (std::uint64_t seed = 0; seed != 24; ++seed) {
    omnibal::rng::engine random(seed);
    auto const noisy = [&](std::int64_t value) {
      auto const off =
          static_cast<std::int64_t>(omnibal::rng::below(random, 2'000'001)) - 1'000'000;
      return value * 1000 + value * per_mille * off / 1'000'000;
    };
    problem one{layers_type(count), 0};
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (std::size_t i = 0; i != count; ++i) {
      std::size_t const kind = i * kinds / count;
      for (std::size_t j = 0; j != 3; ++j) {
        one.layers[i][j] = {noisy(times[kind][j]), noisy(bytes[kind][j])};
      }
      least += one.layers[i][2].bytes;
      most += one.layers[i][0].bytes;
    }
    one.budget = least + (most - least) / 25 * static_cast<std::int64_t>(seed + 1);
    problems.push_back(std::move(one));
  }
  return problems;
}

/// The least time for every number of slots, layer by layer.
class slots_program {
 public:
  explicit slots_program(std::vector<problem> const& problems) : problems_(&problems) {}

  void prepare() { turn_ = (turn_ + 1) % problems_->size(); }
  void operator()() {
    constexpr std::int64_t slots = 1000;
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 2;
    problem const& one = (*problems_)[turn_];
    std::int64_t const slot = one.budget / slots + 1;
    least_.assign(slots, 0);
    for (auto const& layer : one.layers) {
      next_.assign(slots, never);
      for (auto const& way : layer) {
        auto const taken = static_cast<std::size_t>(way.bytes / slot);
        for (std::size_t s = taken; s < static_cast<std::size_t>(slots); ++s) {
          next_[s] = std::min(next_[s], least_[s - taken] + way.time);
        }
      }
      least_.swap(next_);
    }
    benchmark::DoNotOptimize(least_.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return problems_->front().layers.size(); }

 private:
  std::vector<problem> const* problems_;
  std::size_t turn_ = 0;
  std::vector<std::int64_t> least_;
  std::vector<std::int64_t> next_;
};

/// Of the slowest problem; of each the least of several runs.
double slowest_milliseconds(std::vector<problem> const& problems) {
  double slowest = 0;
  for (problem const& one : problems) {
    double least = std::numeric_limits<double>::max();
    for (int run = 0; run != 5; ++run) {
      double const begin = bench::processor_seconds();
      benchmark::DoNotOptimize(omnibal::select_recompute(one.layers, one.budget).time);
      least = std::min(least, bench::processor_seconds() - begin);
    }
    slowest = std::max(slowest, least);
  }
  return 1000 * slowest;
}

/// Counters: the milliseconds of the slowest problem, the mean and the largest gap between time and
/// lower bound, and the share without proof.
void compare_with_slots(benchmark::State& state, std::size_t kinds, std::int64_t per_mille) {
  auto const problems = make_problems(bench::size_of(state), kinds, per_mille);
  std::size_t turn = 0;
  bench::compare(state, slots_program(problems), [&] {
    turn = (turn + 1) % problems.size();
    return omnibal::select_recompute(problems[turn].layers, problems[turn].budget).time;
  });
  if (bench::size_of(state) == 10'000) return;
  state.counters["milliseconds"] = slowest_milliseconds(problems);
  double sum = 0;
  double most = 0;
  double proven = 0;
  for (problem const& one : problems) {
    auto const result = omnibal::select_recompute(one.layers, one.budget);
    double const gap = static_cast<double>(result.time - result.lower_bound) /
                       static_cast<double>(std::max<std::int64_t>(result.time, 1));
    sum += gap;
    most = std::max(most, gap);
    proven += result.proven ? 1 : 0;
  }
  auto const count = static_cast<double>(problems.size());
  state.counters["mean_gap"] = sum / count;
  state.counters["largest_gap"] = most;
  state.counters["unproven"] = 1 - proven / count;
}

void equal_layers(benchmark::State& state) {
  compare_with_slots(state, static_cast<std::size_t>(state.range(1)), 0);
  if (bench::size_of(state) == 10'000) return;
  std::string const name =
      "select_recompute, " + std::to_string(state.range(1)) + " kinds of layers";
  bench::make_promises(state, {{name + " / 1000 slots", "ratio", 1.0},
                               {name + ", milliseconds", "milliseconds", 0.5},
                               {name + ": share without proof", "unproven", 0.0}});
}

/// As a share of what recomputation adds, for layers that are off by so many thousandths.
double largest_gap(std::int64_t per_mille) {
  if (per_mille == 1) return 0.001;
  return per_mille == 30 ? 0.006 : 0.0025;
}

void nearly_equal_layers(benchmark::State& state) {
  compare_with_slots(state, static_cast<std::size_t>(state.range(1)), state.range(2));
  if (bench::size_of(state) == 10'000) return;
  std::string const name = "select_recompute, " + std::to_string(state.range(1)) +
                           " kinds of layers, noise " + std::to_string(state.range(2)) +
                           " per mille";
  bench::make_promises(state,
                       {{name + " / 1000 slots", "ratio", 2.5},
                        {name + ", milliseconds", "milliseconds", 0.5},
                        {name + ": largest gap", "largest_gap", largest_gap(state.range(2))}});
}

BENCHMARK(equal_layers)
    ->ArgNames({"n", "kinds"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Args({93, 1})
    ->Args({93, 2})
    ->Args({93, 4})
    ->Args({10'000, 2});
BENCHMARK(nearly_equal_layers)
    ->ArgNames({"n", "kinds", "per_mille"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->ArgsProduct({{93}, {1, 2, 4}, {1, 10, 30, 100}});

}  // namespace
