// SPDX-License-Identifier: Apache-2.0
/// \file
/// Placements of an encoder in 1F1B: a tower of half the work of the language model, in four
/// pieces. The counters are the step over the lower bound, and over the step with the tower before
/// the pipeline.

#include "compare.hpp"

#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/place_encoder.hpp>

#include <cstddef>
#include <cstdint>

#include <benchmark/benchmark.h>

namespace {

void place_encoder(benchmark::State& state) {
  std::size_t const batches = bench::size_of(state);
  auto const stages = static_cast<std::size_t>(state.range(1));
  omnibal::encoder_work<> encoder{.times = {}, .pieces = 4};
  auto const forward = static_cast<std::int64_t>(500 * stages);
  encoder.times.assign(batches, {forward, 2 * forward});
  double over_bound = 0;
  double over_before = 0;
  for (auto _ : state) {
    auto const placed = omnibal::place_encoder(omnibal::one_f_one_b{stages, batches},
                                               omnibal::stage_time{1000, 2000}, 20, 1, encoder);
    auto const makespan = static_cast<double>(placed.step.makespan);
    over_bound = makespan / static_cast<double>(placed.lower_bound);
    over_before = makespan / static_cast<double>(placed.before_makespan);
  }
  state.counters["over bound"] = over_bound;
  state.counters["over before"] = over_before;
}

BENCHMARK(place_encoder)
    ->ArgNames({"n", "stages"})
    ->Unit(benchmark::kMillisecond)
    ->Args({16, 4})
    ->Args({32, 8})
    ->Args({64, 16});

}  // namespace
