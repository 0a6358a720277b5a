// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the time of an algorithm grows when its input doubles: the counter `exponent` is the binary
/// logarithm of the time over that of half the size. 1 is linear; a bend would show in it.

#include "balancing.hpp"
#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// The least processor time of the iterations. The sizes of a benchmark come one after the other,
/// and each benchmark has a `Run` of its own. instructions.sh counts what is within it.
template <class Run>
[[gnu::noinline]] void time_growth(benchmark::State& state, Run const& run) {
  static double size_before = 0;
  static double seconds_before = 0;
  double least = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    double const begin = bench::processor_seconds();
    auto const result = run();
    double const seconds = bench::processor_seconds() - begin;
    benchmark::DoNotOptimize(&result);
    state.SetIterationTime(seconds);
    least = std::min(least, seconds);
  }
  auto const size = static_cast<double>(state.range(0));
  state.counters["ns_per_item"] = 1e9 * least / size;
  if (size == 2 * size_before) state.counters["exponent"] = std::log2(least / seconds_before);
  size_before = size;
  seconds_before = least;
}

void pack_tokens(benchmark::State& state) {
  auto const samples = bench::mix_9_4096.make(bench::size_of(state));
  time_growth(state, [&] {
    return omnibal::best_fit_decreasing(samples, &bench::sample::tokens, std::int64_t{4096});
  });
}

void pack_images_and_tokens(benchmark::State& state) {
  auto const samples = bench::mix_9_4096.make(bench::size_of(state));
  time_growth(state, [&] {
    return omnibal::best_packing(samples, bench::images_and_tokens, bench::mix_9_4096.capacity());
  });
}

void improve_pass(benchmark::State& state) {
  auto const samples = bench::mix_9_4096.make(bench::size_of(state));
  auto const capacity = bench::mix_9_4096.capacity();
  auto const start = omnibal::best_packing(samples, bench::images_and_tokens, capacity);
  time_growth(state, [&] {
    return omnibal::improve_packing(samples, bench::images_and_tokens, capacity, start,
                                    {.passes = 1});
  });
}

void lpt(benchmark::State& state) {
  auto const costs = bench::squares_with_tail(bench::size_of(state), 1);
  time_growth(state, [&] { return omnibal::lpt(costs, 512); });
}

void schedule_steps(benchmark::State& state) {
  omnibal::rng::engine random(1);
  std::vector<omnibal::resources<2>> loads(bench::size_of(state));
  for (auto& load : loads) {
    load = {bench::detail::uniform(random, 12, 18), bench::detail::uniform(random, 6000, 8192)};
  }
  time_growth(state, [&] { return omnibal::schedule_steps(loads, 64); });
}

std::vector<std::int64_t> layer_costs(std::size_t layers) {
  omnibal::rng::engine random(1);
  std::vector<std::int64_t> costs(layers);
  for (std::int64_t& cost : costs) cost = bench::detail::uniform(random, 800'000, 1'200'000);
  return costs;
}

void partition_minimax(benchmark::State& state) {
  auto const costs = layer_costs(bench::size_of(state));
  time_growth(state, [&] { return omnibal::partition_minimax(costs, 1024); });
}

/// A cut costs up to a hundredth of the mean stage.
void partition_layers(benchmark::State& state) {
  constexpr std::size_t stages = 16;
  auto const costs = layer_costs(bench::size_of(state));
  std::vector<std::int64_t> sums(costs.size() + 1, 0);
  std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
  omnibal::rng::engine random(2);
  std::int64_t const most = sums.back() / (100 * std::int64_t{stages});
  std::vector<std::int64_t> cuts(costs.size() + 1);
  for (std::int64_t& cut : cuts) cut = bench::detail::uniform(random, 0, most);
  auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
    return sums[last] - sums[first] + cuts[first];
  };
  time_growth(state, [&] {
    return omnibal::partition_layers(costs.size(), stages, cost, omnibal::fits_always{},
                                     {.base = costs});
  });
}

/// 10^4 to 10^7.
void doubled(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->RangeMultiplier(2)->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Iterations(3);
  for (std::int64_t size = 10'000; size <= 10'240'000; size *= 2) made->Arg(size);
}

/// No model has as many layers as the largest of them.
void doubled_layers(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(3);
  for (std::int64_t size = 625; size <= 40'000; size *= 2) made->Arg(size);
}

/// For memory too: one at a time under `/usr/bin/time -v`.
void hundred_million(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1);
  made->Arg(100'000'000);
}

BENCHMARK(pack_tokens)->Apply(doubled);
BENCHMARK(pack_images_and_tokens)->Apply(doubled);
BENCHMARK(improve_pass)->Apply(doubled);
BENCHMARK(lpt)->Apply(doubled);
BENCHMARK(schedule_steps)->Apply(doubled);
BENCHMARK(partition_minimax)->Apply(doubled);
BENCHMARK(partition_layers)->Apply(doubled_layers);
BENCHMARK(pack_tokens)->Name("large_pack_tokens")->Apply(hundred_million);
BENCHMARK(pack_images_and_tokens)->Name("large_pack_images_and_tokens")->Apply(hundred_million);

}  // namespace
