/// \file
/// What works in rounds, as a GPU does, on the host: refined parts against `std::sort` of the costs,
/// and schedules of packed groups against those of `schedule_steps`.

#include "balancing.hpp"
#include "compare.hpp"
#include "samples.hpp"
#include "scheduling.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/refine_rounds.hpp>
#include <omnibal/balance/schedule_rounds.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using costs_type = std::vector<std::int64_t>;

void deal_and_refine_rounds(benchmark::State& state) {
  bench::compare_with_sort(state, [](costs_type const& costs, std::size_t parts) {
    return omnibal::refine_rounds(costs, omnibal::deal(costs, parts));
  });
  bench::promise_balance(state, "deal and refine_rounds", 2.5, 1.0051);
}

/// To the last exchange.
void deal_and_refine_rounds_fully(benchmark::State& state) {
  bench::compare_with_sort(state, [](costs_type const& costs, std::size_t parts) {
    return omnibal::refine_rounds(costs, omnibal::deal(costs, parts), std::identity{},
                                  {.tolerance = 0});
  });
}

BENCHMARK(deal_and_refine_rounds)->Apply(bench::balance_sizes);
BENCHMARK(deal_and_refine_rounds_fully)->Apply(bench::balance_sizes);

/// Loads of so many groups of samples whose images and tokens do not depend on each other.
[[nodiscard]] bench::load_list loads_of_groups(std::size_t groups) {
  constexpr std::size_t samples_per_group = 8;
  bench::workload const work{"independent 18/8192", bench::shape::independent, 18, 8192};
  auto loads = bench::pack_best_fit(work.make(samples_per_group * groups), work.capacity());
  loads.resize(groups);
  return loads;
}

/// Times `schedule(epoch)` in turn with `schedule_steps`; both keep to the usual tolerance.
template <class Schedule>
void time_schedule(benchmark::State& state, bench::load_list const& loads, std::size_t ranks,
                   Schedule const& schedule) {
  std::uint64_t epoch = 0;
  struct greedy {
    bench::load_list const* loads;
    std::size_t ranks;
    std::uint64_t* epoch;
    void prepare() {}
    void operator()() const {
      auto const made = omnibal::schedule_steps(*loads, ranks, {.epoch = *epoch});
      benchmark::DoNotOptimize(made.size());
    }
    [[nodiscard]] std::size_t items() const { return loads->size(); }
  };
  bench::compare(
      state, greedy{&loads, ranks, &epoch}, [&] { return schedule(epoch++).cells().item_count(); },
      [](std::size_t groups) { return groups; });
}

void schedule_rounds(benchmark::State& state) {
  auto const loads = loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  time_schedule(state, loads, ranks, [&](std::uint64_t epoch) {
    return omnibal::schedule_rounds(loads, ranks, {.epoch = epoch});
  });
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  bench::make_promises(state,
                       {{"schedule_rounds / schedule_steps, " + std::to_string(state.range(0)) +
                             " groups on " + std::to_string(ranks) + " ranks",
                         "ratio", 2.5}});
}

void schedule_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({10'000, 8});
  for (std::int64_t const ranks : {8, 64, 1024}) made->Args({300'000, ranks});
}

BENCHMARK(schedule_rounds)->Apply(schedule_sizes);

/// Means over some epochs.
struct figures {
  double worst = 0;
  double overlap = 0;
};

template <class Schedule>
figures measure(bench::load_list const& loads, Schedule const& schedule) {
  constexpr std::uint64_t epochs = 5;
  figures result;
  double images = 0;
  double tokens = 0;
  omnibal::steps current = schedule(0);
  for (std::uint64_t epoch = 0; epoch != epochs; ++epoch) {
    auto const ratios = omnibal::dist_ratio(current, loads);
    images += ratios[0] / epochs;
    tokens += ratios[1] / epochs;
    omnibal::steps next = schedule(epoch + 1);
    result.overlap += omnibal::step_overlap(current, next) / epochs;
    current = std::move(next);
  }
  result.worst = std::max(images, tokens);
  return result;
}

constexpr std::size_t curve_ranks = 8;

constexpr bench::workload curve_workloads[] = {
    {"real 9/4096", bench::shape::real, 9, 4096},
    bench::real_18_6016,
    {"mix 18/6016", bench::shape::mix, 18, 6016},
    {"independent 9/4096", bench::shape::independent, 9, 4096},
    {"independent 18/6016", bench::shape::independent, 18, 6016},
    {"independent 18/8192", bench::shape::independent, 18, 8192},
};

/// Points of the curves of both schedules.
void curve(benchmark::State& state, bench::workload const& work, std::size_t samples,
           double tolerance) {
  auto const loads = bench::pack_best_fit(work.make(samples), work.capacity());
  figures in_rounds;
  figures in_turn;
  for (auto _ : state) {
    in_rounds = measure(loads, [&](std::uint64_t epoch) {
      return omnibal::schedule_rounds(loads, curve_ranks, {.epoch = epoch, .tolerance = tolerance});
    });
    in_turn = measure(loads, [&](std::uint64_t epoch) {
      return omnibal::schedule_steps(loads, curve_ranks, {.epoch = epoch, .tolerance = tolerance});
    });
  }
  state.counters["groups"] = static_cast<double>(loads.size());
  state.counters["dist_worst"] = in_rounds.worst;
  state.counters["overlap"] = in_rounds.overlap;
  state.counters["schedule_steps_dist_worst"] = in_turn.worst;
  state.counters["schedule_steps_overlap"] = in_turn.overlap;
  state.counters["overlap_ratio"] = in_rounds.overlap / in_turn.overlap;
  if (samples == bench::size_of_test_runs || tolerance != bench::usual_tolerance) return;
  std::string const name(work.name);
  bench::make_promises(
      state,
      {{"schedule_rounds, largest dist ratio, " + name, "dist_worst", 0.005},
       {"schedule_rounds, overlap / that of schedule_steps, " + name, "overlap_ratio", 1.3}});
}

void register_curve(bench::workload const& work, std::size_t samples, double tolerance) {
  std::string const name = "schedule_rounds_curve/" + std::string(work.name) +
                           "/n:" + std::to_string(samples) +
                           "/tolerance:" + std::to_string(tolerance);
  benchmark::RegisterBenchmark(name.c_str(), curve, work, samples, tolerance)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

[[maybe_unused]] bool const registered = [] {
  for (bench::workload const& work : curve_workloads) {
    register_curve(work, bench::size_of_test_runs, bench::usual_tolerance);
    for (double const tolerance : bench::curve_tolerances) {
      register_curve(work, 100'000, tolerance);
    }
  }
  return true;
}();

}  // namespace
