// SPDX-License-Identifier: Apache-2.0
/// \file
/// Schedules of packed groups: the time, against `std::sort` of as many 64-bit keys, and the curve
/// between even and random steps.

#include "balancing.hpp"
#include "compare.hpp"
#include "equal_speeds.hpp"
#include "samples.hpp"
#include "scheduling.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

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
  auto const loads = bench::loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  time_schedule(state, loads, [&](std::uint64_t epoch) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch});
  });
  promise_time(state, "schedule_steps");
}

/// As even as possible: every step is a cell.
void schedule_steps_evenest(benchmark::State& state) {
  auto const loads = bench::loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  time_schedule(state, loads, [&](std::uint64_t epoch) {
    return omnibal::schedule_steps(loads, ranks, {.epoch = epoch, .max_dist_ratio = 0});
  });
  promise_time(state, "schedule_steps with tolerance 0");
}

void schedule_steps_with_equal_speeds(benchmark::State& state) {
  auto const loads = bench::loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  std::vector<std::uint64_t> const epochs{0, 1, 2};
  bench::compare_equal_speeds(
      state, "schedule_steps", epochs, [&](std::uint64_t epoch, std::vector<double> const& speeds) {
        return omnibal::schedule_steps(loads, ranks, {.epoch = epoch, .speeds = speeds});
      });
}

void step_overlap(benchmark::State& state) {
  auto const loads = bench::loads_of_groups(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  auto const first = omnibal::schedule_steps(loads, ranks, {.epoch = 0});
  auto const second = omnibal::schedule_steps(loads, ranks, {.epoch = 1});
  time_schedule(state, loads, [&](std::uint64_t) { return omnibal::step_overlap(first, second); });
}

BENCHMARK(schedule_steps)->Apply(bench::schedule_sizes);
BENCHMARK(schedule_steps_evenest)->Apply(bench::schedule_sizes);
BENCHMARK(schedule_steps_with_equal_speeds)->Apply(bench::schedule_sizes);
BENCHMARK(step_overlap)->Apply(bench::schedule_sizes);

void curve(benchmark::State& state, bench::workload const& work, std::size_t samples,
           double tolerance) {
  auto const groups = bench::pack_groups(work.make(samples), work.capacity());
  bench::measure_curve(state, groups, bench::curve_ranks, tolerance);
  if (samples != bench::size_of_test_runs) {
    bench::promise_curve(state, std::string(work.name), tolerance);
  }
}

void even_packs(benchmark::State& state, bench::shape from, std::string const& promised) {
  bench::measure_even_packs(state, bench::make_samples(from, bench::size_of(state)));
  if (promised.empty() || bench::size_of(state) == bench::size_of_test_runs) return;
  bench::promise_even_packs(state, promised);
}

void once(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Iterations(1)->Unit(benchmark::kMillisecond)->Arg(10'000)->Arg(100'000);
}

BENCHMARK_CAPTURE(even_packs, real, bench::shape::real, "real")->Apply(once);
// Long texts leave no room for images beside them.
BENCHMARK_CAPTURE(even_packs, mix, bench::shape::mix, "")->Apply(once);
BENCHMARK_CAPTURE(even_packs, independent, bench::shape::independent, "independent")->Apply(once);

constexpr bench::workload several_workloads[] = {
    {"real 16/4592", bench::shape::real, 16, 4592},
    {"mix 16/4592", bench::shape::mix, 16, 4592},
    {"independent 9/4096", bench::shape::independent, 9, 4096}};

[[maybe_unused]] bool const registered = [] {
  bench::register_curves_of_workloads("schedule_curve", curve);
  for (auto const& work : several_workloads) {
    for (std::size_t const samples : {bench::size_of_test_runs, std::size_t{100'000}}) {
      bench::register_several(
          "several_groups/" + std::string(work.name) + "/n:" + std::to_string(samples),
          [=](benchmark::State& state, std::size_t ranks, std::uint32_t of_rank) {
            auto const loads = bench::pack_best_fit(work.make(samples), work.capacity());
            bench::measure_several(state, loads, ranks, of_rank);
          });
    }
  }
  return true;
}();

}  // namespace
