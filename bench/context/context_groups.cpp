// SPDX-License-Identifier: Apache-2.0
/// \file
/// Groups of ranks for steps of long and short samples, over the lower bound and beside what
/// trainers do: counters over three models and two mixtures of lengths.

#include "compare.hpp"
#include "context_model.hpp"
#include "context_rivals.hpp"
#include "equal_speeds.hpp"
#include "model_steps.hpp"
#include "rivals.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using bench::allowed_degrees;

void context_groups(benchmark::State& state, allowed_degrees allowed) {
  auto const steps = bench::model_steps(state, allowed);
  std::vector<std::vector<double>> milliseconds(steps.size());
  omnibal::context_groups_workspace workspace;
  for (auto _ : state) {
    double const begin = bench::processor_seconds();
    for (std::size_t k = 0; k != steps.size(); ++k) {
      double const before = bench::processor_seconds();
      benchmark::DoNotOptimize(&omnibal::context_groups(steps[k].lengths, steps[k].ranks,
                                                        steps[k].cost, bench::context_step::memory,
                                                        steps[k].options, workspace));
      milliseconds[k].push_back(1e3 * (bench::processor_seconds() - before));
    }
    state.SetIterationTime(bench::processor_seconds() - begin);
  }
  omnibal::context_groups_workspace rival;
  double const infinity = std::numeric_limits<double>::infinity();
  double slowest = 0;
  double sum_of_gaps = 0;
  double largest_gap = 0;
  double least[3] = {infinity, infinity, infinity};
  double sums[3] = {};
  for (std::size_t k = 0; k != steps.size(); ++k) {
    bench::context_step const& step = steps[k];
    slowest = std::max(slowest, bench::median(milliseconds[k]));
    auto const& plan = omnibal::context_groups(
        step.lengths, step.ranks, step.cost, bench::context_step::memory, step.options, workspace);
    double const gap = plan.makespan / plan.lower_bound - 1;
    sum_of_gaps += gap;
    largest_gap = std::max(largest_gap, gap);
    double const rivals[] = {examples::best_degree(step, step.lengths, rival).makespan,
                             examples::best_levels(step, rival).makespan,
                             bench::megatron_groups(step).makespan()};
    for (std::size_t r = 0; r != 3; ++r) {
      least[r] = std::min(least[r], rivals[r] / plan.makespan);
      sums[r] += rivals[r] / plan.makespan;
    }
  }
  auto const count = static_cast<double>(steps.size());
  state.counters["ms_at_most"] = slowest;
  state.counters["mean_gap"] = sum_of_gaps / count;
  state.counters["largest_gap"] = largest_gap;
  state.counters["one_degree"] = sums[0] / count;
  state.counters["levels"] = sums[1] / count;
  state.counters["megatron"] = sums[2] / count;
  state.counters["min_rival"] = *std::min_element(least, least + 3);
}

/// Lengths that are no mixture of many short and few long samples.
std::vector<std::int64_t> other_lengths(std::size_t kind, std::size_t count, std::uint64_t seed) {
  constexpr std::uint64_t long_ones_in_thousand[] = {10, 50, 200, 500};
  omnibal::rng::engine random(seed);
  auto const between = [&random](std::int64_t low, std::int64_t high) {
    auto const range = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(omnibal::rng::below(random, range));
  };
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) {
    if (kind == 0) {
      length = 16'384;
    } else if (kind == 1) {
      length = between(1, 65'536);
    } else if (kind == 2) {
      length = between(60'000, 68'000);
    } else {
      bool const is_long = omnibal::rng::below(random, 1000) < long_ones_in_thousand[kind - 3];
      length = is_long ? between(65'536, 131'072) : between(100, 4'100);
    }
  }
  return lengths;
}

constexpr char const* other_names[] = {"all 16K",
                                       "1 to 64K",
                                       "60000 to 68000",
                                       "short and 1 % long",
                                       "short and 5 % long",
                                       "short and 20 % long",
                                       "short and 50 % long"};

void context_groups_of_other_lengths(benchmark::State& state) {
  auto const kind = static_cast<std::size_t>(state.range(0));
  omnibal::context_groups_workspace workspace;
  double sum_of_gaps = 0;
  double largest_gap = 0;
  double steps = 0;
  for (auto _ : state) {
    sum_of_gaps = largest_gap = steps = 0;
    double const begin = bench::processor_seconds();
    for (std::uint32_t const ranks : {8u, 16u, 64u, 256u}) {
      auto const cost = examples::context_cost_of(examples::known_shape("llama3-8b"),
                                                  {ranks, bench::ranks_per_node});
      for (std::size_t const count : {16u, 64u, 256u, 1024u, 4096u}) {
        for (std::uint64_t seed = 0; seed != 3; ++seed) {
          auto const lengths = other_lengths(kind, count, 16 * (count + ranks) + seed);
          auto const& plan =
              omnibal::context_groups(lengths, ranks, cost, examples::context_step::memory,
                                      {.capacity = 32'768}, workspace);
          double const gap = plan.makespan / plan.lower_bound - 1;
          sum_of_gaps += gap;
          largest_gap = std::max(largest_gap, gap);
          ++steps;
        }
      }
    }
    state.SetIterationTime(bench::processor_seconds() - begin);
  }
  state.SetLabel(other_names[kind]);
  state.counters["mean_gap"] = sum_of_gaps / steps;
  state.counters["largest_gap"] = largest_gap;
}

constexpr char const* speed_mixes[] = {"one rank at 0.7", "half at 1.5", "nodes at 0.8 and 1",
                                       "all from 1 to 1.2"};

std::vector<double> mixed_speeds(std::size_t mix, std::uint32_t ranks) {
  std::vector<double> speeds(ranks, 1.0);
  if (mix == 0) speeds[ranks / 3] = 0.7;
  if (mix == 1) std::fill_n(speeds.begin(), ranks / 2, 1.5);
  for (std::uint32_t rank = 0; rank != ranks; ++rank) {
    if (mix == 2 && rank / bench::ranks_per_node % 2 == 0) speeds[rank] = 0.8;
    if (mix == 3) speeds[rank] = 1 + 0.2 * (rank * 37 % ranks) / ranks;
  }
  return speeds;
}

/// The time of a plan that was made without these speeds.
double makespan_at(std::vector<double> const& speeds, omnibal::context_plan const& plan,
                   omnibal::context_cost const& cost) {
  double const fastest = *std::max_element(speeds.begin(), speeds.end());
  double makespan = 0;
  for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
    double longest = 0;
    for (omnibal::context_group const& group : plan.groups_of(k)) {
      auto const first = speeds.begin() + group.first_rank;
      double const slowest = *std::min_element(first, first + group.degree);
      double const fixed = cost.degrees[group.degree - 1].fixed;
      longest = std::max(longest, fixed + (group.time - fixed) * fastest / slowest);
    }
    makespan += cost.micro_step + longest;
  }
  return makespan;
}

/// The plans with speeds over their bounds, and the time of plans without speeds over theirs.
void context_groups_with_speeds(benchmark::State& state) {
  auto const mix = static_cast<std::size_t>(state.range(2));
  auto steps = bench::model_steps(state, allowed_degrees::in_nodes);
  for (auto& step : steps) {
    step.options.capacity = state.range(3);
    step.options.speeds = mixed_speeds(mix, step.ranks);
  }
  omnibal::context_groups_workspace workspace;
  auto const plan_of = [&](auto const& step) -> omnibal::context_plan const& {
    return omnibal::context_groups(step.lengths, step.ranks, step.cost,
                                   examples::context_step::memory, step.options, workspace);
  };
  for (auto _ : state) {
    double const begin = bench::processor_seconds();
    for (auto const& step : steps) benchmark::DoNotOptimize(&plan_of(step));
    state.SetIterationTime(bench::processor_seconds() - begin);
  }
  double sum_of_gaps = 0;
  double largest_gap = 0;
  double sum_without = 0;
  for (auto& step : steps) {
    auto const speeds = step.options.speeds;
    auto const& plan = plan_of(step);
    double const makespan = plan.makespan;
    double const gap = makespan / plan.lower_bound - 1;
    sum_of_gaps += gap;
    largest_gap = std::max(largest_gap, gap);
    step.options.speeds.clear();
    sum_without += makespan_at(speeds, plan_of(step), step.cost) / makespan;
  }
  auto const count = static_cast<double>(steps.size());
  state.SetLabel(speed_mixes[mix]);
  state.counters["mean_gap"] = sum_of_gaps / count;
  state.counters["largest_gap"] = largest_gap;
  state.counters["without"] = sum_without / count;
}

void context_groups_with_equal_speeds(benchmark::State& state) {
  auto const steps = bench::model_steps(state, allowed_degrees::in_nodes);
  omnibal::context_groups_workspace workspace;
  bench::compare_equal_speeds(
      state, "context_groups", steps,
      [&](bench::context_step const& step, std::vector<double> const& speeds) {
        auto options = step.options;
        options.speeds = speeds;
        return omnibal::context_groups(step.lengths, step.ranks, step.cost,
                                       bench::context_step::memory, options, workspace);
      });
}

void step_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (int const count : {512, 1024, 2048, 4096}) {
    for (int const ranks : {64, 256, 1024}) made->Args({count, ranks});
  }
}

BENCHMARK(context_groups_of_other_lengths)
    ->DenseRange(0, 6)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(context_groups_with_speeds)
    ->ArgNames({"n", "ranks", "speeds", "capacity"})
    ->ArgsProduct({{4096}, {64}, {0, 1, 2, 3}, {16'384, 131'072}})
    ->ArgsProduct({{16'384}, {256}, {0, 1, 2, 3}, {131'072}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(context_groups_with_equal_speeds)
    ->ArgNames({"n", "ranks"})
    ->Args({512, 64})
    ->Args({4096, 64})
    ->Args({16'384, 256})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(context_groups, any, allowed_degrees::any)->Apply(step_sizes);
BENCHMARK_CAPTURE(context_groups, in_nodes, allowed_degrees::in_nodes)->Apply(step_sizes);
BENCHMARK_CAPTURE(context_groups, powers_of_two, allowed_degrees::powers_of_two)->Apply(step_sizes);

}  // namespace
