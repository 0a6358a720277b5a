// SPDX-License-Identifier: Apache-2.0
/// \file
/// Local search on packings of all length files in the folder that the environment variable
/// OMNIBAL_BENCH_LENGTHS names.

#include "improvement.hpp"
#include "length_files.hpp"
#include "quality.hpp"
#include "samples.hpp"

#include <omnibal/resources.hpp>

#include <cstdint>
#include <exception>
#include <string>

#include <benchmark/benchmark.h>

namespace {

/// `improve_all(state, samples)` improves a packing and makes its promises.
template <class Improve>
void register_improvement(std::string const& capacity, Improve const& improve_all) {
  benchmark::RegisterBenchmark(("improve_packing/all files/" + capacity).c_str(),
                               [=](benchmark::State& state) {
                                 try {
                                   improve_all(state, bench::read_lengths(bench::length_files()));
                                 } catch (std::exception const& error) {
                                   state.SkipWithError(error.what());
                                 }
                               })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

[[maybe_unused]] bool const registered = [] {
  if (bench::length_files().empty()) return false;
  register_improvement("tokens/4096", [](benchmark::State& state, auto const& samples) {
    bench::improve_best_fit(state, samples, &bench::sample::tokens, std::int64_t{4096});
    bench::make_promises(state, {{"improve_packing, tokens of all files, percent above the bound",
                                  "percent_64", 1.5}});
  });
  for (auto const& capacity : bench::capacities) {
    register_improvement(bench::text_of(capacity), [=](benchmark::State& state,
                                                       auto const& samples) {
      bench::improve_best_fit(state, samples, bench::images_and_tokens, capacity);
      if (capacity == omnibal::resources{18, 4096}) {
        bench::make_promises(
            state,
            {{"improve_packing, all files at 18/4096, share of the gap left", "gap_left", 0.5}});
      }
    });
  }
  return true;
}();

}  // namespace
