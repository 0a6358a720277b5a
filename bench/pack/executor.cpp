// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls with an executor: two threads against the thread of the caller, in real time.

#include "executors.hpp"
#include "samples.hpp"
#include "tuning.hpp"

#include <omnibal/executor.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/pack/tune_capacity.hpp>

#include <cstddef>
#include <functional>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr std::identity itself{};

std::vector<omnibal::resources<2>> demands(benchmark::State const& state,
                                           bench::workload const& work) {
  return bench::demands_of(work.make(bench::size_of(state)));
}

void executor_count_samples(benchmark::State& state, bench::workload const& work) {
  auto const samples = demands(state, work);
  bench::compare_executors(
      state, [&](auto const& run) { return omnibal::count_samples(samples, itself, run); });
}

void executor_packing_bound(benchmark::State& state, bench::workload const& work) {
  auto const samples = demands(state, work);
  bench::compare_executors(state, [&](auto const& run) {
    return omnibal::packing_bound(samples, itself, work.capacity(),
                                  {.effort = omnibal::effort::thorough}, run);
  });
}

void executor_tune_capacity(benchmark::State& state, bench::workload const& work) {
  auto const samples = demands(state, work);
  bench::compare_executors(state, [&](auto const& run) {
    return omnibal::tune_capacity(samples, itself, 4.0, omnibal::best_fit_decreasing,
                                  {.granularity = {1, 16}}, run);
  });
}

void executor_even_passes(benchmark::State& state, bench::workload const& work) {
  auto const samples = demands(state, work);
  auto const start = omnibal::best_packing(samples, itself, work.capacity());
  bench::compare_executors(state, [&](auto const& run) {
    return omnibal::improve_packing(samples, itself, work.capacity(), start, {.passes = 0}, run);
  });
}

void sizes(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Arg(10'000)->Arg(1'000'000)->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(executor_count_samples, real_18_6016, bench::real_18_6016)->Apply(sizes);
BENCHMARK_CAPTURE(executor_count_samples, mix_9_noise, bench::mix_9_noise)->Apply(sizes);
BENCHMARK_CAPTURE(executor_packing_bound, real_18_6016, bench::real_18_6016)->Apply(sizes);
BENCHMARK_CAPTURE(executor_tune_capacity, real_18_6016, bench::real_18_6016)->Apply(sizes);
BENCHMARK_CAPTURE(executor_even_passes, real_18_6016, bench::real_18_6016)->Apply(sizes);

}  // namespace
