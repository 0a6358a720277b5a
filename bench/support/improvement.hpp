// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How close to the lower bound `improve_packing` comes, and in which time.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

/// Improves the packing of best fit once. Counters: by how many percent its groups exceed the lower
/// bound, `percent_p` the same after p passes, p a power of four, `ns_p` the time until then for
/// each sample, and `gap_left` the share of best fit's groups above the bound that remains.
template <class Demand, class Capacity>
void improve_best_fit(benchmark::State& state, std::vector<sample> const& samples,
                      Demand const& demand, Capacity const& capacity) {
  constexpr std::size_t max_passes = 64;
  auto const start = omnibal::best_packing(samples, demand, capacity);
  auto const percent = [&](std::size_t groups) {
    auto const bound = static_cast<double>(start.report.lower_bound);
    return 100 * (static_cast<double>(groups) / bound - 1);
  };
  omnibal::packing improved;
  for (auto _ : state) {
    double const begin = processor_seconds();
    double seconds = 0;
    std::size_t groups = start.groups.size();
    auto const note = [&](std::size_t passes) {
      state.counters["percent_" + std::to_string(passes)] = percent(groups);
      state.counters["ns_" + std::to_string(passes)] =
          1e9 * seconds / static_cast<double>(samples.size());
    };
    std::size_t next = 1;
    improved = omnibal::improve_packing(samples, demand, capacity, start, {.passes = max_passes},
                                        [&](omnibal::improve_packing_progress const& progress) {
                                          groups = progress.groups;
                                          seconds = processor_seconds() - begin;
                                          if (progress.passes == next) {
                                            note(next);
                                            next *= 4;
                                          }
                                          return true;
                                        });
    // Passes that were not needed.
    for (; next <= max_passes; next *= 4) note(next);
    state.SetIterationTime(processor_seconds() - begin);
  }
  double const gap = percent(start.groups.size());
  state.counters["best_fit_percent"] = gap;
  state.counters["gap_left"] = gap == 0 ? 0 : percent(improved.groups.size()) / gap;
}

}  // namespace bench
