// SPDX-License-Identifier: Apache-2.0
/// \file
/// The curve between even and random steps on all length files in the folder that the environment
/// variable OMNIBAL_BENCH_LENGTHS names: at a capacity that the reference implementation's search
/// found, at one of its defaults, and at the one that `tune_capacity` finds for a mean batch of 4.

#include "length_files.hpp"
#include "samples.hpp"
#include "scheduling.hpp"
#include "tuning.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/tune_capacity.hpp>

#include <exception>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr std::size_t ranks = 8;

[[nodiscard]] omnibal::resources<2> tuned_capacity(std::vector<bench::sample> const& samples) {
  return omnibal::tune_capacity(samples, bench::images_and_tokens, 4.0,
                                omnibal::best_fit_decreasing, {.granularity = {1, 16}})
      .best.capacity;
}

template <class Capacity>
void register_curves(std::string const& capacity_name, Capacity const& capacity_for) {
  for (double const tolerance : bench::curve_tolerances) {
    std::string const name =
        "schedule_curve/all files/" + capacity_name + "/tolerance:" + std::to_string(tolerance);
    benchmark::RegisterBenchmark(
        name.c_str(),
        [=](benchmark::State& state) {
          try {
            auto const samples = bench::read_lengths(bench::length_files());
            auto const capacity = capacity_for(samples);
            bench::measure_curve(state, bench::pack_groups(samples, capacity), ranks, tolerance);
            state.counters["capacity_images"] = static_cast<double>(capacity[0]);
            state.counters["capacity_tokens"] = static_cast<double>(capacity[1]);
            bench::promise_curve(state, "all files, " + capacity_name, tolerance);
          } catch (std::exception const& error) {
            state.SkipWithError(error.what());
          }
        })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

[[maybe_unused]] bool const registered = [] {
  if (bench::length_files().empty()) return false;
  auto const given = [](omnibal::resources<2> const& capacity) {
    return [capacity](std::vector<bench::sample> const&) { return capacity; };
  };
  register_curves("9 4096", given({9, 4096}));
  register_curves("18 6016", given(bench::reference_capacity));
  register_curves("tuned", tuned_capacity);
  for (auto const& capacity : {omnibal::resources<2>{9, 4096}, omnibal::resources<2>{16, 4592}}) {
    bench::register_several(
        "several_groups/all files/" + std::to_string(capacity[0]),
        [=](benchmark::State& state, std::size_t of_step, std::uint32_t of_rank) {
          try {
            auto const samples = bench::read_lengths(bench::length_files());
            bench::measure_several(state, bench::pack_best_fit(samples, capacity), of_step,
                                   of_rank);
          } catch (std::exception const& error) {
            state.SkipWithError(error.what());
          }
        });
  }
  benchmark::RegisterBenchmark("even_packs/all files",
                               [](benchmark::State& state) {
                                 try {
                                   bench::measure_even_packs(
                                       state, bench::read_lengths(bench::length_files()));
                                   bench::promise_even_packs(state, "all files");
                                 } catch (std::exception const& error) {
                                   state.SkipWithError(error.what());
                                 }
                               })
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
