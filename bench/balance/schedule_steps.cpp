/// \file
/// Schedules of packed groups: the time, against `std::sort` of as many 64-bit keys, and the curve
/// between even and random steps.

#include "balancing.hpp"
#include "compare.hpp"
#include "samples.hpp"
#include "scheduling.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr bench::workload independent_18_8192{"independent 18/8192", bench::shape::independent, 18,
                                              8192};

/// Loads of so many groups of samples whose images and tokens do not depend on each other.
[[nodiscard]] bench::load_list loads_of_groups(std::size_t groups) {
  constexpr std::size_t samples_per_group = 8;
  auto const& work = independent_18_8192;
  auto loads = bench::pack_best_fit(work.make(samples_per_group * groups), work.capacity());
  loads.resize(groups);
  return loads;
}

template <class Schedule>
void time_schedule(benchmark::State& state, bench::load_list const& loads,
                   Schedule const& schedule) {
  bench::cost_batches batches(loads.size());
  std::uint64_t epoch = 0;
  bench::compare(state, bench::standard_sort(batches), [&] { return schedule(epoch++); });
  state.counters["milliseconds"] =
      1e-6 * state.counters["ns_per_item"] * static_cast<double>(loads.size());
}

/// What every size promises: a third of a second for 300,000 groups, in proportion.
void promise_time(benchmark::State& state, std::string const& name) {
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  std::string const at = ", " + std::to_string(state.range(0)) + " groups on " +
                         std::to_string(state.range(1)) + " ranks";
  bench::make_promises(state, {{name + ", milliseconds" + at, "milliseconds",
                                1e-3 * static_cast<double>(state.range(0))}});
}

void schedule_steps(benchmark::State& state) {
  auto const loads = loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  time_schedule(state, loads, [&](std::uint64_t epoch) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch});
  });
  promise_time(state, "schedule_steps");
}

/// As even as possible: every step is a cell.
void schedule_steps_evenest(benchmark::State& state) {
  auto const loads = loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  time_schedule(state, loads, [&](std::uint64_t epoch) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch, .tolerance = 0});
  });
  promise_time(state, "schedule_steps with tolerance 0");
}

void step_overlap(benchmark::State& state) {
  auto const loads = loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  auto const first = omnibal::schedule_steps(loads, ranks, {.epoch = 0});
  auto const second = omnibal::schedule_steps(loads, ranks, {.epoch = 1});
  time_schedule(state, loads, [&](std::uint64_t) { return omnibal::step_overlap(first, second); });
}

void schedule_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({10'000, 8});
  for (std::int64_t const ranks : {8, 64, 1024}) made->Args({300'000, ranks});
}

BENCHMARK(schedule_steps)->Apply(schedule_sizes);
BENCHMARK(schedule_steps_evenest)->Apply(schedule_sizes);
BENCHMARK(step_overlap)->Apply(schedule_sizes);

constexpr std::size_t curve_ranks = 8;

constexpr bench::workload curve_workloads[] = {
    {"real 9/4096", bench::shape::real, 9, 4096},
    bench::real_18_6016,
    {"mix 18/6016", bench::shape::mix, 18, 6016},
    {"independent 9/4096", bench::shape::independent, 9, 4096},
    {"independent 18/6016", bench::shape::independent, 18, 6016},
    independent_18_8192,
};

void curve(benchmark::State& state, bench::workload const& work, std::size_t samples,
           double tolerance) {
  auto const groups = bench::pack_groups(work.make(samples), work.capacity());
  bench::measure_curve(state, groups, curve_ranks, tolerance);
  if (samples != bench::size_of_test_runs) {
    bench::promise_curve(state, std::string(work.name), tolerance);
  }
}

void register_curve(bench::workload const& work, std::size_t samples, double tolerance) {
  std::string const name = "schedule_curve/" + std::string(work.name) +
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
