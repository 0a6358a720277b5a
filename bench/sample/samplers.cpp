// SPDX-License-Identifier: Apache-2.0
/// \file
/// Samplers and mixtures. The yardstick of those that make no array is the plain shuffle of one:
/// the time per sample to have an epoch in random order. That of step_sampler is its scheduler.

#include "balancing.hpp"
#include "compare.hpp"
#include "samples.hpp"
#include "yardsticks.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

void promise_ratio(benchmark::State& state, std::string const& name, double most) {
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  bench::make_promises(state, {{name, "ratio", most}});
}

void epoch_in_batches(benchmark::State& state) {
  std::size_t const samples = bench::size_of(state);
  std::uint64_t seed = 0;
  bench::compare(state, bench::plain_shuffle(samples), [&] {
    omnibal::epoch_sampler sampler(samples, {}, {.seed = ++seed, .batch = 64});
    std::uint64_t sum = 0;
    while (!sampler.done()) {
      for (std::uint64_t const sample : sampler.next()) sum += sample;
    }
    return sum;
  });
  promise_ratio(state, "epoch_sampler / plain shuffle, " + std::to_string(samples) + " samples",
                samples > 1'000'000 ? 1.2 : 5.0);
}

void epoch_one_by_one(benchmark::State& state) {
  std::size_t const samples = bench::size_of(state);
  std::uint64_t seed = 0;
  bench::compare(state, bench::plain_shuffle(samples), [&] {
    omnibal::epoch_sampler sampler(samples, {}, {.seed = ++seed});
    std::uint64_t sum = 0;
    while (!sampler.done()) sum += sampler.next()[0];
    return sum;
  });
}

void epoch_at_random(benchmark::State& state) {
  std::size_t const samples = bench::size_of(state);
  omnibal::epoch_sampler const sampler(samples, {});
  omnibal::rng::engine random(1);
  bench::compare(state, bench::plain_shuffle(samples), [&] {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != samples; ++i) {
      sum += sampler(omnibal::rng::below(random, samples))[0];
    }
    return sum;
  });
}

/// A checkpoint is resumed at a random step for each sample that is taken.
void epoch_resumed(benchmark::State& state) {
  std::size_t const samples = bench::size_of(state);
  omnibal::epoch_sampler const begin(samples, {});
  omnibal::rng::engine random(1);
  bench::compare(state, bench::plain_shuffle(samples), [&] {
    std::uint64_t sum = 0;
    omnibal::sampler_state checkpoint = begin.state();
    for (std::size_t i = 0; i != samples; ++i) {
      checkpoint.segments[0] = {1, 1, 1 + omnibal::rng::below(random, samples - 1)};
      omnibal::epoch_sampler resumed(samples, {}, {}, checkpoint);
      sum += resumed.next()[0];
    }
    return sum;
  });
}

struct data_set {
  std::uint64_t samples;
  std::int64_t weight;
};

/// Sources with weights of 1, 4, 9, ...
std::vector<data_set> make_sources(std::size_t count) {
  std::vector<data_set> sources;
  for (std::size_t i = 1; i <= count; ++i) {
    sources.push_back({10'000 * i, static_cast<std::int64_t>(i * i)});
  }
  return sources;
}

void mixture(benchmark::State& state, std::uint64_t window) {
  std::size_t const draws = bench::size_of(state);
  auto const sources = make_sources(static_cast<std::size_t>(state.range(1)));
  omnibal::mixture const mixed(sources, &data_set::samples, &data_set::weight, {.window = window});
  bench::compare(state, bench::plain_shuffle(draws), [&] {
    std::uint64_t sum = 0;
    for (std::uint64_t position = 0; position != draws; ++position) sum += mixed(position).sample;
    return sum;
  });
  if (sources.size() == 8) {
    std::string const order = window == 1 ? "even order" : "windows of 64";
    promise_ratio(state, "mixture of 8 sources, " + order + " / plain shuffle",
                  window == 1 ? 30.0 : 70.0);
  }
}

std::vector<omnibal::resources<2>> make_loads(std::size_t groups) {
  std::vector<omnibal::resources<2>> loads;
  for (auto const& sample : bench::make_samples(bench::shape::mix, groups)) {
    loads.push_back(bench::images_and_tokens(sample));
  }
  return loads;
}

/// Makes the schedule of the same groups and ranks.
class schedule {
 public:
  schedule(std::vector<omnibal::resources<2>> const& loads, std::size_t ranks)
      : loads_(&loads), ranks_(ranks) {}

  void prepare() {}
  void operator()() {
    auto const made = omnibal::schedule_steps(*loads_, ranks_);
    benchmark::DoNotOptimize(&made);
  }
  [[nodiscard]] std::size_t items() const { return loads_->size(); }

 private:
  std::vector<omnibal::resources<2>> const* loads_;
  std::size_t ranks_;
};

void step_sampler_of_an_epoch(benchmark::State& state) {
  auto const loads = make_loads(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  bench::compare(state, schedule(loads, ranks),
                 [&] { return omnibal::step_sampler(loads, {.ranks = ranks, .rank = ranks - 1}); });
  promise_ratio(state, "step_sampler / schedule_steps", 1.5);
}

/// With half as many ranks in the middle of an epoch: one schedule of all and one of half.
void step_sampler_with_other_ranks(benchmark::State& state) {
  auto const loads = make_loads(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  omnibal::sampler_state checkpoint = omnibal::step_sampler(loads, {.ranks = ranks}).state();
  checkpoint.segments[0] = {static_cast<std::uint32_t>(ranks), 1, loads.size() / ranks / 2};
  bench::compare(state, schedule(loads, ranks), [&] {
    return omnibal::step_sampler(loads, {.ranks = ranks / 2}, {}, checkpoint);
  });
  promise_ratio(state, "step_sampler with other ranks / schedule_steps", 2.5);
}

void group_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({10'000, 8})->Args({300'000, 8})->Args({300'000, 64})->Args({300'000, 1024});
}

void draw_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "sources"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({10'000, 2})->Args({100'000, 2})->Args({100'000, 8})->Args({100'000, 64});
}

void sample_counts(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Arg(10'000)->Arg(1'000'000)->Arg(10'000'000);
}

BENCHMARK(epoch_in_batches)->Apply(sample_counts);
BENCHMARK(epoch_one_by_one)->Apply(sample_counts);
BENCHMARK(epoch_at_random)->Apply(sample_counts);
BENCHMARK(epoch_resumed)->Apply(sample_counts);
BENCHMARK_CAPTURE(mixture, even, 1)->Apply(draw_sizes);
BENCHMARK_CAPTURE(mixture, shuffled, 64)->Apply(draw_sizes);
BENCHMARK(step_sampler_of_an_epoch)->Apply(group_sizes);
BENCHMARK(step_sampler_with_other_ranks)->Apply(group_sizes);

}  // namespace
