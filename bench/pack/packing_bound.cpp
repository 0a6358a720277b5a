// SPDX-License-Identifier: Apache-2.0
/// \file
/// The lower bound on the number of groups against one pass over the data.

#include "compare.hpp"
#include "samples.hpp"
#include "yardsticks.hpp"

#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/solve_status.hpp>

#include <benchmark/benchmark.h>

namespace {

void packing_bound(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  bench::compare(state, bench::one_pass(samples), [&] {
    return omnibal::packing_bound(samples, bench::images_and_tokens, work.capacity());
  });
}

void packing_bound_thorough(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  bench::compare(state, bench::one_pass(samples), [&] {
    return omnibal::packing_bound(samples, bench::images_and_tokens, work.capacity(),
                                  {.effort = omnibal::effort::thorough});
  });
}

BENCHMARK_CAPTURE(packing_bound, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(packing_bound_thorough, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(packing_bound, real_18_6016, bench::real_18_6016)->Apply(bench::sizes);
BENCHMARK_CAPTURE(packing_bound, mix_9_noise, bench::mix_9_noise)->Apply(bench::sizes);

}  // namespace
