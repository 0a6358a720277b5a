#pragma once

/// \file
/// How even and how random scheduled steps are.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

using load_list = std::vector<omnibal::resources<2>>;

/// The loads of packed groups and, to compare with, those of the groups of `isf`.
struct group_lists {
  load_list best_fit;
  load_list isf;
};

[[nodiscard]] inline load_list pack_best_fit(std::vector<sample> const& samples,
                                             omnibal::resources<2> const& capacity) {
  auto const packed = omnibal::best_fit_decreasing(samples, images_and_tokens, capacity);
  return omnibal::group_loads(packed.groups, samples, images_and_tokens);
}

[[nodiscard]] inline group_lists pack_groups(std::vector<sample> const& samples,
                                             omnibal::resources<2> const& capacity) {
  auto const by_isf = omnibal::isf(samples, images_and_tokens, capacity);
  return {pack_best_fit(samples, capacity),
          omnibal::group_loads(by_isf.groups, samples, images_and_tokens)};
}

/// Means over some epochs.
struct schedule_figures {
  double images = 0;
  double tokens = 0;
  double overlap = 0;
};

[[nodiscard]] inline schedule_figures measure_schedules(load_list const& loads, std::size_t ranks,
                                                        double tolerance) {
  constexpr std::uint64_t epochs = 5;
  auto const schedule = [&](std::uint64_t epoch) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch, .tolerance = tolerance});
  };
  schedule_figures result;
  omnibal::steps current = schedule(0);
  for (std::uint64_t epoch = 0; epoch != epochs; ++epoch) {
    auto const ratios = omnibal::dist_ratio(current, loads);
    result.images += ratios[0] / epochs;
    result.tokens += ratios[1] / epochs;
    omnibal::steps next = schedule(epoch + 1);
    result.overlap += omnibal::step_overlap(current, next) / epochs;
    current = std::move(next);
  }
  return result;
}

/// A point of the curve between even and random steps, and groups of `isf` dealt at random.
inline void measure_curve(benchmark::State& state, group_lists const& groups, std::size_t ranks,
                          double tolerance) {
  schedule_figures figures;
  schedule_figures random;
  for (auto _ : state) {
    figures = measure_schedules(groups.best_fit, ranks, tolerance);
    random = measure_schedules(groups.isf, ranks, 1.0);
  }
  state.counters["groups"] = static_cast<double>(groups.best_fit.size());
  state.counters["dist_images"] = figures.images;
  state.counters["dist_tokens"] = figures.tokens;
  state.counters["dist_worst"] = std::max(figures.images, figures.tokens);
  state.counters["overlap"] = figures.overlap;
  state.counters["isf_random_images"] = random.images;
  state.counters["isf_random_tokens"] = random.tokens;
  state.counters["isf_random_overlap"] = random.overlap;
}

/// The tolerances of a curve.
inline constexpr double curve_tolerances[] = {1.0,   0.05,  0.02,  0.01, 0.005,
                                              0.003, 0.002, 0.001, 0.0};
inline constexpr double usual_tolerance = omnibal::schedule_options{}.tolerance;

inline void promise_curve(benchmark::State& state, std::string const& name, double tolerance) {
  if (tolerance != usual_tolerance) return;
  make_promises(state, {{"schedule_steps, largest dist ratio, " + name, "dist_worst", 0.005},
                        {"schedule_steps, overlap, " + name, "overlap", 20}});
}

}  // namespace bench
