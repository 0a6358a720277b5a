#pragma once

/// \file
/// How even and how random scheduled steps are.

#include "balancing.hpp"
#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_packing.hpp>
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
  auto const packed = omnibal::best_packing(samples, images_and_tokens, capacity);
  return omnibal::group_loads(packed.groups, samples, images_and_tokens);
}

[[nodiscard]] inline group_lists pack_groups(std::vector<sample> const& samples,
                                             omnibal::resources<2> const& capacity) {
  auto const by_isf = omnibal::isf(samples, images_and_tokens, capacity);
  return {pack_best_fit(samples, capacity),
          omnibal::group_loads(by_isf.groups, samples, images_and_tokens)};
}

inline constexpr workload independent_18_8192{"independent 18/8192", shape::independent, 18, 8192};

/// Loads of so many groups of samples whose images and tokens do not depend on each other.
[[nodiscard]] inline load_list loads_of_groups(std::size_t groups) {
  constexpr std::size_t samples_per_group = 8;
  auto const& work = independent_18_8192;
  auto loads = pack_best_fit(work.make(samples_per_group * groups), work.capacity());
  loads.resize(groups);
  return loads;
}

/// Groups on ranks.
inline void schedule_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({10'000, 8});
  for (std::int64_t const ranks : {8, 64, 1024}) made->Args({300'000, ranks});
}

/// Means over some epochs.
struct schedule_figures {
  double images = 0;
  double tokens = 0;
  double overlap = 0;

  /// The larger dist ratio.
  [[nodiscard]] double worst() const { return std::max(images, tokens); }
};

/// Of what `schedule(epoch)` makes.
template <class Schedule>
[[nodiscard]] schedule_figures measure_schedules(load_list const& loads, Schedule const& schedule) {
  constexpr std::uint64_t epochs = 5;
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

/// Of `schedule_steps`.
[[nodiscard]] inline schedule_figures measure_steps(load_list const& loads, std::size_t ranks,
                                                    double tolerance) {
  return measure_schedules(loads, [&](std::uint64_t epoch) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch, .max_dist_ratio = tolerance});
  });
}

/// A point of the curve between even and random steps, and groups of `isf` dealt at random.
inline void measure_curve(benchmark::State& state, group_lists const& groups, std::size_t ranks,
                          double tolerance) {
  schedule_figures figures;
  schedule_figures random;
  for (auto _ : state) {
    figures = measure_steps(groups.best_fit, ranks, tolerance);
    random = measure_steps(groups.isf, ranks, 1.0);
  }
  state.counters["groups"] = static_cast<double>(groups.best_fit.size());
  state.counters["dist_images"] = figures.images;
  state.counters["dist_tokens"] = figures.tokens;
  state.counters["dist_worst"] = figures.worst();
  state.counters["overlap"] = figures.overlap;
  state.counters["isf_random_images"] = random.images;
  state.counters["isf_random_tokens"] = random.tokens;
  state.counters["isf_random_overlap"] = random.overlap;
}

/// The tolerances of a curve.
inline constexpr double curve_tolerances[] = {1.0,   0.05,  0.02,  0.01, 0.005,
                                              0.003, 0.002, 0.001, 0.0};
inline constexpr double usual_tolerance = omnibal::schedule_steps_options{}.max_dist_ratio;

inline constexpr std::size_t curve_ranks = 8;

inline constexpr workload curve_workloads[] = {
    {"real 9/4096", shape::real, 9, 4096},
    real_18_6016,
    {"mix 18/6016", shape::mix, 18, 6016},
    {"independent 9/4096", shape::independent, 9, 4096},
    {"independent 18/6016", shape::independent, 18, 6016},
    independent_18_8192,
};

/// Registers `curve(state, workload, samples, tolerance)`: a run for tests of each workload, then
/// all points of its curve.
template <class Curve>
void register_curves_of_workloads(std::string const& name, Curve const& curve) {
  auto const point = [&](workload const& work, std::size_t samples, double tolerance) {
    std::string const of_point = name + "/" + std::string(work.name) +
                                 "/n:" + std::to_string(samples) +
                                 "/tolerance:" + std::to_string(tolerance);
    benchmark::RegisterBenchmark(of_point.c_str(), curve, work, samples, tolerance)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  };
  for (workload const& work : curve_workloads) {
    point(work, size_of_test_runs, usual_tolerance);
    for (double const tolerance : curve_tolerances) point(work, 100'000, tolerance);
  }
}

inline void promise_curve(benchmark::State& state, std::string const& name, double tolerance) {
  if (tolerance != usual_tolerance) return;
  make_promises(state, {{"schedule_steps, largest dist ratio, " + name, "dist_worst", 0.005},
                        {"schedule_steps, overlap, " + name, "overlap", 20}});
}

}  // namespace bench
