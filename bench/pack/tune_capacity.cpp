// SPDX-License-Identifier: Apache-2.0
/// \file
/// The choice of a capacity for a mean batch of 4, per sample, against one packing of all samples.

#include "compare.hpp"
#include "samples.hpp"
#include "tuning.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>

#include <string>

#include <benchmark/benchmark.h>

namespace {

using bench::shape;

/// About as many samples as the reference's lengths have.
constexpr std::int64_t reference_size = 70'000;

template <class Packer>
void tune(benchmark::State& state, std::string const& packer, shape from, Packer const& pack) {
  auto const demands = bench::demands_of(bench::make_samples(from, bench::size_of(state)));
  bench::tune(state, demands, pack);
  if (from == shape::real && state.range(0) == reference_size) {
    bench::make_tuning_promises(state, packer + ", real");
  }
}

template <class Packer>
bool register_tuning(std::string const& packer, Packer const& pack) {
  auto const add = [&](std::string const& name, shape from) {
    benchmark::RegisterBenchmark(("tune_capacity_" + packer + "/" + name).c_str(),
                                 [=](benchmark::State& state) { tune(state, packer, from, pack); })
        ->ArgName("n")
        ->Arg(10'000)
        ->Arg(reference_size)
        ->Arg(100'000)
        ->Arg(1'000'000)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  add("real", shape::real);
  add("mix", shape::mix);
  add("independent", shape::independent);
  return true;
}

[[maybe_unused]] bool const registered = register_tuning("isf", omnibal::isf) &&
                                         register_tuning("best_fit", omnibal::best_fit_decreasing);

}  // namespace
