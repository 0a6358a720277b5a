// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How even and how random scheduled steps are.

#include "balancing.hpp"
#include "compare.hpp"
#include "mix_bound.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/step_spread.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
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

inline constexpr std::uint64_t epochs_of_figures = 5;

/// Means over some epochs.
struct schedule_figures {
  double images = 0;
  double tokens = 0;
  double overlap = 0;
  /// The larger ones of both resources: how much the totals of steps vary, over random order and by
  /// themselves.
  double mix = 0;
  double variation = 0;

  /// The larger dist ratio.
  [[nodiscard]] double worst() const { return std::max(images, tokens); }
};

/// Of what `schedule(epoch)` makes.
template <class Schedule>
[[nodiscard]] schedule_figures measure_schedules(load_list const& loads, Schedule const& schedule) {
  constexpr std::uint64_t epochs = epochs_of_figures;
  schedule_figures result;
  omnibal::steps current = schedule(0);
  for (std::uint64_t epoch = 0; epoch != epochs; ++epoch) {
    auto const ratios = omnibal::dist_ratio(current, loads);
    result.images += ratios[0] / epochs;
    result.tokens += ratios[1] / epochs;
    auto const mix = omnibal::step_spread(current, loads);
    result.mix += std::max(mix.totals[0], mix.totals[1]) / epochs;
    result.variation += std::max(mix.variation[0], mix.variation[1]) / epochs;
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
  state.counters["mix"] = figures.mix;
  state.counters["mix_cv"] = figures.variation;
  state.counters["isf_random_images"] = random.images;
  state.counters["isf_random_tokens"] = random.tokens;
  state.counters["isf_random_overlap"] = random.overlap;
}

/// Packs that are alike to begin with: a capacity that both resources fill, for a mean batch of 4,
/// and a quarter of a percent more groups than `improve_packing` finds. Counters: the capacity, the
/// groups above the fewest in percent, the coefficient of variation of groups and, on 8 and 64
/// ranks, how long they wait and how much the totals of steps vary: at random, and even within
/// 0.005.
inline void measure_even_packs(benchmark::State& state, std::vector<sample> const& samples) {
  auto const capacity =
      omnibal::tune_capacity(samples, images_and_tokens, 4.0, omnibal::best_fit_decreasing,
                             {.granularity = {1, 16}})
          .best.capacity;
  auto const packed = omnibal::best_packing(samples, images_and_tokens, capacity);
  auto const improve_packing = [&](omnibal::improve_packing_options const& options) {
    return omnibal::improve_packing(samples, images_and_tokens, capacity, packed, options);
  };
  omnibal::packing even;
  for (auto _ : state) even = improve_packing({.even_passes = 96, .spare_groups = 0.0025});
  auto const fewest = static_cast<double>(improve_packing({.even_passes = 0}).groups.size());
  auto const loads = omnibal::group_loads(even.groups, samples, images_and_tokens);
  auto const alone = omnibal::schedule_steps(loads, 1, {.max_dist_ratio = 1.0});
  auto const of_groups = omnibal::step_spread(alone, loads).variation;
  state.counters["images"] = static_cast<double>(capacity[0]);
  state.counters["tokens"] = static_cast<double>(capacity[1]);
  state.counters["more_percent"] = 100 * (static_cast<double>(loads.size()) / fewest - 1);
  state.counters["cv_images"] = of_groups[0];
  state.counters["cv_tokens"] = of_groups[1];
  for (std::size_t const ranks : {8u, 64u}) {
    std::string const suffix = std::string("_").append(std::to_string(ranks));
    auto const random = measure_steps(loads, ranks, 1.0);
    auto const scheduled = measure_steps(loads, ranks, 0.005);
    state.counters["random_waits" + suffix] = random.worst();
    state.counters["random_cv" + suffix] = random.variation;
    state.counters["even_waits" + suffix] = scheduled.worst();
    state.counters["even_cv" + suffix] = scheduled.variation;
  }
}

inline void promise_even_packs(benchmark::State& state, std::string const& name) {
  make_promises(state,
                {{"even packs, groups above the fewest, percent, " + name, "more_percent", 1},
                 {"even packs, dist ratio on 8 ranks, " + name, "even_waits_8", 0.005},
                 {"even packs, dist ratio on 64 ranks, " + name, "even_waits_64", 0.005},
                 {"even packs, variation of steps on 8 ranks, " + name, "even_cv_8", 0.03},
                 {"even packs, variation of steps on 64 ranks, " + name, "even_cv_64", 0.03}});
}

/// How little the totals of the full steps of a schedule can vary where these wait for no longer.
[[nodiscard]] inline double min_mix_of_full_steps(omnibal::steps const& schedule,
                                                  load_list const& loads,
                                                  std::uint32_t groups_per_rank) {
  omnibal::steps full(schedule.ranks());
  load_list full_loads;
  std::size_t const count = loads.size() / (schedule.ranks() * groups_per_rank);
  for (std::size_t step = 0; step != count; ++step) {
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      for (std::uint32_t const group : schedule(step, rank)) {
        full.push(group);
        full_loads.push_back(loads[group]);
      }
      full.close();
    }
  }
  auto const ratios = omnibal::dist_ratio(full, loads);
  return min_mix(full_loads, schedule.ranks(), groups_per_rank, std::max(ratios[0], ratios[1]));
}

/// Several groups for each rank in a step. Counters: how long ranks wait, for the resource where
/// that is longer, how much the totals of steps vary over random order and cannot vary less where
/// full steps wait for as long, the overlap, and the milliseconds of processor time of a schedule
/// over those of one with a group for each rank.
inline void measure_several(benchmark::State& state, load_list const& loads, std::size_t ranks,
                            std::uint32_t groups_per_rank) {
  auto const schedule = [&](std::uint64_t epoch, std::uint32_t of_rank) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch, .groups_per_rank = of_rank});
  };
  auto const milliseconds = [&](std::uint32_t of_rank) {
    double least = 1e9;
    for (std::uint64_t epoch = 0; epoch != 5; ++epoch) {
      std::clock_t const begin = std::clock();
      benchmark::DoNotOptimize(schedule(epoch, of_rank));
      least = std::min(least, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
  };
  schedule_figures figures;
  double bound = 0;
  for (auto _ : state) {
    figures = measure_schedules(loads, [&](std::uint64_t epoch) {
      auto made = schedule(epoch, groups_per_rank);
      if (epoch != epochs_of_figures) {
        bound += min_mix_of_full_steps(made, loads, groups_per_rank) / epochs_of_figures;
      }
      return made;
    });
  }
  state.counters["groups"] = static_cast<double>(loads.size());
  state.counters["dist_images"] = figures.images;
  state.counters["dist_tokens"] = figures.tokens;
  state.counters["dist_worst"] = figures.worst();
  state.counters["mix"] = figures.mix;
  state.counters["mix_bound"] = bound;
  state.counters["overlap"] = figures.overlap;
  state.counters["milliseconds"] = milliseconds(groups_per_rank);
  state.counters["times_single"] = state.counters["milliseconds"] / milliseconds(1);
}

/// Registers `several(state, ranks, groups_per_rank)` for all numbers that are compared.
template <class Several>
void register_several(std::string const& name, Several const& several) {
  for (std::size_t const ranks : {8u, 64u}) {
    for (std::uint32_t const of_rank : {1u, 2u, 4u, 8u, 16u}) {
      std::string const point =
          name + "/ranks:" + std::to_string(ranks) + "/of_rank:" + std::to_string(of_rank);
      benchmark::RegisterBenchmark(point.c_str(), several, ranks, of_rank)
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
    }
  }
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
