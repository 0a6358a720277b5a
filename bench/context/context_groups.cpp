/// \file
/// Groups of ranks for steps of long and short samples, over the lower bound and beside what
/// trainers do: counters over three models and two mixtures of lengths.

#include "compare.hpp"
#include "context_rivals.hpp"
#include "model_steps.hpp"
#include "rivals.hpp"

#include <omnibal/context/context_groups.hpp>

#include <algorithm>
#include <cstddef>
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
                             bench::largest_first(step).makespan()};
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
  state.counters["largest_first"] = sums[2] / count;
  state.counters["least_rival"] = *std::min_element(least, least + 3);
}

void step_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (int const count : {512, 1024, 2048, 4096}) {
    for (int const ranks : {64, 256, 1024}) made->Args({count, ranks});
  }
}

BENCHMARK_CAPTURE(context_groups, any, allowed_degrees::any)->Apply(step_sizes);
BENCHMARK_CAPTURE(context_groups, in_nodes, allowed_degrees::in_nodes)->Apply(step_sizes);
BENCHMARK_CAPTURE(context_groups, powers_of_two, allowed_degrees::powers_of_two)->Apply(step_sizes);

}  // namespace
