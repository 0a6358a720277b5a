// SPDX-License-Identifier: Apache-2.0
/// \file
/// The choice of a capacity for a mean batch of 4 on all length files in the folder that the
/// environment variable OMNIBAL_BENCH_LENGTHS names.

#include "length_files.hpp"
#include "tuning.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>

#include <exception>
#include <string>

#include <benchmark/benchmark.h>

namespace {

template <class Packer>
bool register_tuning(std::string const& packer, Packer const& pack) {
  benchmark::RegisterBenchmark(("tune_capacity_" + packer + "/all files").c_str(),
                               [=](benchmark::State& state) {
                                 try {
                                   auto const samples = bench::read_lengths(bench::length_files());
                                   bench::tune(state, bench::demands_of(samples), pack);
                                   bench::make_tuning_promises(state, packer + ", all files");
                                 } catch (std::exception const& error) {
                                   state.SkipWithError(error.what());
                                 }
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  return true;
}

[[maybe_unused]] bool const registered = !bench::length_files().empty() &&
                                         register_tuning("isf", omnibal::isf) &&
                                         register_tuning("best_fit", omnibal::best_fit_decreasing);

}  // namespace
