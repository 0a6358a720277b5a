// SPDX-License-Identifier: Apache-2.0
/// \file
/// Local search on packings of the generated data sets: groups above the lower bound against time.

#include "improvement.hpp"
#include "samples.hpp"

#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

namespace {

using bench::shape;

void improve_packing(benchmark::State& state, shape from, omnibal::resources<2> const& capacity) {
  auto const samples = bench::make_samples(from, bench::size_of(state));
  bench::improve_best_fit(state, samples, bench::images_and_tokens, capacity);
}

void improve_tokens(benchmark::State& state, shape from, std::int64_t capacity) {
  auto const samples = bench::make_samples(from, bench::size_of(state));
  bench::improve_best_fit(state, samples, &bench::sample::tokens, capacity);
  if (bench::size_of(state) == bench::size_with_peers) {
    bench::make_promises(state, {{"improve_packing, tokens of the mix, percent above the bound",
                                  "percent_64", 0.3}});
  }
}

void once(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(improve_tokens, real / 4096, shape::real, 4096)->Apply(once)->Arg(100'000);
BENCHMARK_CAPTURE(improve_tokens, mix / 4096, shape::mix, 4096)
    ->Apply(once)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(static_cast<std::int64_t>(bench::size_with_peers));
BENCHMARK_CAPTURE(improve_tokens, long_text / 131072, shape::long_text, 131072)
    ->Apply(once)
    ->Arg(100'000);
BENCHMARK_CAPTURE(improve_packing, real / 12 / 4096, shape::real, {12, 4096})
    ->Apply(once)
    ->Arg(100'000);
BENCHMARK_CAPTURE(improve_packing, real / 18 / 4096, shape::real, {18, 4096})
    ->Apply(once)
    ->Arg(100'000);
BENCHMARK_CAPTURE(improve_packing, mix / 10 / 4096, shape::mix, {10, 4096})
    ->Apply(once)
    ->Arg(100'000);
BENCHMARK_CAPTURE(improve_packing, mix / 18 / 6016, shape::mix, {18, 6016})
    ->Apply(once)
    ->Arg(100'000);
BENCHMARK_CAPTURE(improve_packing, independent / 9 / 4096, shape::independent, {9, 4096})
    ->Apply(once)
    ->Arg(100'000);

}  // namespace
