/// \file
/// Groups of ranks for steps of long and short samples, over the lower bound and beside what
/// trainers do: counters over three models and two mixtures of lengths.

#include "compare.hpp"
#include "long_context_mix.hpp"
#include "rivals.hpp"

#include <omnibal/context/context_groups.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// Shapes of language models, with the parameters that a token runs through.
struct model_shape {
  double parameters;
  double layers;
  double hidden;
  double keys;
};

/// Llama 3 8B and 70B, and a mixture of experts with 21 of 236 billion parameters active.
constexpr model_shape models[] = {
    {8e9, 32, 4096, 1024}, {70e9, 80, 8192, 1024}, {21e9, 60, 5120, 512}};

constexpr std::uint32_t ranks_per_node = 8;

/// Seconds at 400 TFLOP/s: forward and backward, causal attention, the all-to-all of queries, keys,
/// values and outputs both ways, at 200 GB/s within a node and 50 GB/s beyond, and what starting a
/// group takes.
omnibal::context_cost cost_of(model_shape const& model, std::uint32_t ranks) {
  constexpr double flops = 400e12;
  omnibal::context_cost cost{.micro_step = 2e-3};
  double const token_bytes = 2 * (2 * model.hidden + 2 * model.keys) * model.layers * 2;
  for (std::uint32_t degree = 1; degree <= ranks; ++degree) {
    double const link = degree <= ranks_per_node ? 200e9 : 50e9;
    double const fixed = degree == 1 ? 1e-3 : degree <= ranks_per_node ? 2e-3 : 3e-3;
    double const others = (degree - 1.0) / degree;
    cost.degrees.push_back({fixed,
                            (6 * model.parameters / flops + token_bytes * others / link) / degree,
                            6 * model.layers * model.hidden / flops / degree});
  }
  return cost;
}

enum class allowed_degrees { any, in_nodes, powers_of_two };

std::vector<bench::context_step> steps_of(benchmark::State const& state, allowed_degrees allowed) {
  std::vector<bench::context_step> steps;
  auto const count = static_cast<std::size_t>(state.range(0));
  auto const ranks = static_cast<std::uint32_t>(state.range(1));
  for (model_shape const& model : models) {
    for (auto const mix : {examples::length_mix::two_sources, examples::length_mix::broad}) {
      bench::context_step step{.lengths = {}, .ranks = ranks, .cost = cost_of(model, ranks)};
      for (auto const& sample : examples::long_context_mix(mix, count, count + 7).samples) {
        step.lengths.push_back(sample.tokens);
      }
      step.options.capacity = 16'384;
      if (allowed == allowed_degrees::in_nodes) step.options.ranks_per_node = ranks_per_node;
      if (allowed == allowed_degrees::powers_of_two) {
        step.options.degrees = omnibal::powers_of_two(ranks);
      }
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

void context_groups(benchmark::State& state, allowed_degrees allowed) {
  auto const steps = steps_of(state, allowed);
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
    double const rivals[] = {bench::best_degree(step, step.lengths), bench::two_levels(step),
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
  state.counters["two_levels"] = sums[1] / count;
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
