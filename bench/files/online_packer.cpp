// SPDX-License-Identifier: Apache-2.0
/// \file
/// The streaming packer on the length files in the folder that the environment variable
/// OMNIBAL_BENCH_LENGTHS names, all of them together in random order.

#include "length_files.hpp"
#include "quality.hpp"
#include "streams.hpp"

#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

void online_quality(benchmark::State& state, std::vector<std::filesystem::path> const& files,
                    omnibal::resources<2> const& capacity) {
  try {
    auto samples = bench::read_lengths(files);
    omnibal::rng::fisher_yates{1}(std::span(samples), 0);
    bench::count_stream_groups(state, samples, capacity);
  } catch (std::exception const& error) {
    state.SkipWithError(error.what());
  }
}

[[maybe_unused]] bool const registered = [] {
  auto const files = bench::length_files();
  if (files.empty()) return false;
  for (auto const& capacity : bench::capacities) {
    benchmark::RegisterBenchmark(("online_quality/all files/" + bench::text_of(capacity)).c_str(),
                                 online_quality, files, capacity)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
