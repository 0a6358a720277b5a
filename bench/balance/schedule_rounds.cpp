/// \file
/// Schedules of packed groups in rounds, as a GPU makes them, against those of `schedule_steps`.

#include "compare.hpp"
#include "samples.hpp"
#include "scheduling.hpp"

#include <omnibal/balance/schedule_rounds.hpp>
#include <omnibal/balance/schedule_steps.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

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
      state, greedy{&loads, ranks, &epoch},
      [&] {
        auto const made = schedule(epoch++);
        return made.cells().item_count();
      },
      [](std::size_t groups) { return groups; });
}

void schedule_rounds(benchmark::State& state) {
  auto const loads = bench::loads_of_groups(bench::size_of(state));
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

BENCHMARK(schedule_rounds)->Apply(bench::schedule_sizes);

/// Points of the curves of both schedules.
void curve(benchmark::State& state, bench::workload const& work, std::size_t samples,
           double tolerance) {
  auto const loads = bench::pack_best_fit(work.make(samples), work.capacity());
  bench::schedule_figures in_rounds;
  bench::schedule_figures in_turn;
  for (auto _ : state) {
    in_rounds = bench::measure_schedules(loads, [&](std::uint64_t epoch) {
      return omnibal::schedule_rounds(loads, bench::curve_ranks,
                                      {.epoch = epoch, .max_dist_ratio = tolerance});
    });
    in_turn = bench::measure_steps(loads, bench::curve_ranks, tolerance);
  }
  state.counters["groups"] = static_cast<double>(loads.size());
  state.counters["dist_worst"] = in_rounds.worst();
  state.counters["overlap"] = in_rounds.overlap;
  state.counters["schedule_steps_dist_worst"] = in_turn.worst();
  state.counters["schedule_steps_overlap"] = in_turn.overlap;
  state.counters["overlap_ratio"] = in_rounds.overlap / in_turn.overlap;
  if (samples == bench::size_of_test_runs || tolerance != bench::usual_tolerance) return;
  std::string const name(work.name);
  bench::make_promises(
      state,
      {{"schedule_rounds, largest dist ratio, " + name, "dist_worst", 0.005},
       {"schedule_rounds, overlap / that of schedule_steps, " + name, "overlap_ratio", 1.3}});
}

[[maybe_unused]] bool const registered = [] {
  bench::register_curves_of_workloads("schedule_rounds_curve", curve);
  return true;
}();

}  // namespace
