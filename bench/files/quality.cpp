// SPDX-License-Identifier: Apache-2.0
/// \file
/// Groups over the lower bound on the length files in the folder that the environment variable
/// OMNIBAL_BENCH_LENGTHS names: on all of them together and on each by itself.

#include "quality.hpp"

#include "length_files.hpp"
#include "samples.hpp"

#include <omnibal/resources.hpp>

#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// Capacities at which the lower bound of all files is nearly reached.
[[nodiscard]] bool has_tight_bound(omnibal::resources<2> const& capacity) {
  return capacity == omnibal::resources{9, 4096} || capacity == omnibal::resources{10, 4096} ||
         capacity == omnibal::resources{18, 6016} || capacity == omnibal::resources{24, 8192};
}

void quality(benchmark::State& state, std::vector<std::filesystem::path> const& files,
             omnibal::resources<2> const& capacity) {
  try {
    bench::count_groups(state, bench::read_lengths(files), capacity);
    if (files.size() > 1 && has_tight_bound(capacity)) {
      bench::make_promises(
          state, {bench::not_above_isf(),
                  {"best fit above the lower bound, percent, all files", "best_fit_percent", 1.0}});
    } else {
      bench::make_promises(state, {bench::not_above_isf()});
    }
  } catch (std::exception const& error) {
    state.SkipWithError(error.what());
  }
}

void register_quality(std::string const& name, std::vector<std::filesystem::path> const& files) {
  for (auto const& capacity : bench::capacities) {
    benchmark::RegisterBenchmark(("quality/" + name + "/" + bench::text_of(capacity)).c_str(),
                                 quality, files, capacity)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

[[maybe_unused]] bool const registered = [] {
  auto const files = bench::length_files();
  if (files.empty()) return false;
  register_quality("all files", files);
  for (auto const& file : files) register_quality(file.stem().string(), {file});
  return true;
}();

}  // namespace
