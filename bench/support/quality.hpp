// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How close packers come to the lower bound on the number of groups.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

inline constexpr omnibal::resources<2> capacities[] = {
    {9, 4096}, {10, 4096}, {12, 4096}, {18, 4096}, {18, 6016}, {24, 8192}, {30, 8192}};

[[nodiscard]] inline std::string text_of(omnibal::resources<2> const& capacity) {
  return std::to_string(capacity[0]) + "/" + std::to_string(capacity[1]);
}

/// Packs once with each packer; `isf` runs 50 rounds with its default rule. Counters: the lower
/// bound, the groups of best fit, by how many percent the groups of each packer exceed the bound,
/// and the groups of best fit over those of `isf`.
inline void count_groups(benchmark::State& state, std::vector<sample> const& samples,
                         omnibal::resources<2> const& capacity) {
  double bound = 0;
  double best_fit = 0;
  double isf = 0;
  double next_fit = 0;
  for (auto _ : state) {
    auto const packed = omnibal::best_packing(samples, images_and_tokens, capacity);
    auto const groups_of = [&](auto const& pack) {
      return static_cast<double>(pack(samples, images_and_tokens, capacity).groups.size());
    };
    bound = static_cast<double>(packed.report.lower_bound);
    best_fit = static_cast<double>(packed.groups.size());
    isf = groups_of(omnibal::isf);
    next_fit = groups_of(omnibal::next_fit);
  }
  state.counters["lower_bound"] = bound;
  state.counters["best_fit"] = best_fit;
  state.counters["best_fit_percent"] = 100 * (best_fit / bound - 1);
  state.counters["isf_percent"] = 100 * (isf / bound - 1);
  state.counters["next_fit_percent"] = 100 * (next_fit / bound - 1);
  state.counters["best_fit_over_isf"] = best_fit / isf;
}

/// Best fit never takes more groups than `isf`.
inline promise not_above_isf() {
  return {"groups of best fit / groups of isf", "best_fit_over_isf", 1.0};
}

}  // namespace bench
