// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Calls with equal speeds in turn with the same calls without speeds.

#include "balancing.hpp"
#include "compare.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

/// Compares `call(batch, speeds)` with equal speeds of all parts and with an empty array, by result
/// and by time. Throws an exception if the results differ. The second of two calls for a batch has
/// an advantage, because the processor has learned the branches of the first one. Therefore an
/// iteration times one batch in each order. Counters: `milliseconds` of a call with speeds, and
/// `ratio`, the median of the ratios of the iterations, which is promised to be at most 1.1.
template <class Batches, class Call>
void compare_equal_speeds(benchmark::State& state, std::string const& name, Batches const& batches,
                          Call const& call) {
  std::vector<double> const none;
  std::vector<double> const speeds(static_cast<std::size_t>(state.range(1)), 1.5);
  std::vector<double> ratios;
  std::vector<double> milliseconds;
  auto batch = batches.begin();
  for (auto _ : state) {
    double seconds[2] = {};
    for (bool const is_first : {true, false}) {
      auto const timed = [&](bool has_speeds) {
        double const begin = processor_seconds();
        auto result = call(*batch, has_speeds ? speeds : none);
        benchmark::DoNotOptimize(&result);
        seconds[has_speeds] += processor_seconds() - begin;
        return result;
      };
      auto const result = timed(!is_first);
      if (timed(is_first) != result) {
        throw std::logic_error("equal speeds change the result of " + name);
      }
      if (++batch == batches.end()) batch = batches.begin();
    }
    state.SetIterationTime(seconds[1] / 2);
    ratios.push_back(seconds[1] / seconds[0]);
    milliseconds.push_back(1e3 * seconds[1] / 2);
  }
  state.counters["milliseconds"] = median(std::move(milliseconds));
  state.counters["ratio"] = median(std::move(ratios));
  if (size_of(state) == size_of_test_runs) return;
  std::string const at = ", " + std::to_string(state.range(0)) + " samples on " +
                         std::to_string(state.range(1)) + " parts";
  make_promises(state, {{name + " with equal speeds / " + name + at, "ratio", 1.1}});
}

}  // namespace bench
