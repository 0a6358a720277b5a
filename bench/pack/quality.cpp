// SPDX-License-Identifier: Apache-2.0
/// \file
/// Groups over the lower bound on the generated data sets.

#include "quality.hpp"

#include "samples.hpp"

#include <string>

#include <benchmark/benchmark.h>

namespace {

using bench::shape;

void quality(benchmark::State& state, shape from, omnibal::resources<2> const& capacity) {
  bench::count_groups(state, bench::make_samples(from, static_cast<std::size_t>(state.range(0))),
                      capacity);
  bench::make_promises(state, {bench::not_above_isf()});
}

bool register_quality(std::string const& name, shape from, omnibal::resources<2> const& capacity) {
  benchmark::RegisterBenchmark(("quality/" + name + "/" + bench::text_of(capacity)).c_str(),
                               quality, from, capacity)
      ->ArgName("n")
      ->Arg(100'000)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  return true;
}

[[maybe_unused]] bool const registered = [] {
  for (auto const& capacity : bench::capacities) {
    register_quality("real", shape::real, capacity);
    register_quality("mix", shape::mix, capacity);
    register_quality("independent", shape::independent, capacity);
  }
  return register_quality("long_text", shape::long_text, {1, 131072});
}();

}  // namespace
