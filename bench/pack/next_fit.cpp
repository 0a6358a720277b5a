// SPDX-License-Identifier: Apache-2.0
/// \file
/// Next-fit against one pass over the data.

#include "compare.hpp"
#include "samples.hpp"
#include "yardsticks.hpp"

#include <omnibal/pack/next_fit.hpp>

#include <benchmark/benchmark.h>

namespace {

void next_fit(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  bench::compare(state, bench::one_pass(samples), [&] {
    return omnibal::next_fit(samples, bench::images_and_tokens, work.capacity());
  });
}

BENCHMARK_CAPTURE(next_fit, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(next_fit, real_18_6016, bench::real_18_6016)->Apply(bench::sizes);
BENCHMARK_CAPTURE(next_fit, mix_9_noise, bench::mix_9_noise)->Apply(bench::sizes);

}  // namespace
