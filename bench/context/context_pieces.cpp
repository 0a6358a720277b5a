// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pieces of steps of context groups and their exchange: times beside that of the plan, how
/// even causal attention is and what is padded.

#include "compare.hpp"
#include "context_rivals.hpp"
#include "model_steps.hpp"

#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using omnibal::context_padding;

/// Over all groups the causal pairs of the busiest rank, without padding, and those of an even
/// share.
struct pair_counts {
  double busiest = 0;
  double even = 0;

  void add(omnibal::context_plan const& plan, omnibal::context_layout const& layout) {
    for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
      for (auto const& group : plan.groups_of(k)) {
        double most = 0;
        double sum = 0;
        for (std::size_t place = 0; place != group.degree; ++place) {
          double pairs = 0;
          for (auto const number : layout.pieces_of(k, group.first_rank + place)) {
            auto const& piece = layout.pieces()[number];
            pairs += piece.tokens * (piece.first + (piece.tokens + 1) / 2.0);
          }
          most = std::max(most, pairs);
          sum += pairs;
        }
        busiest += most * group.degree;
        even += sum;
      }
    }
  }
};

void context_pieces(benchmark::State& state, omnibal::context_pieces_options const& options) {
  auto const steps = bench::model_steps(state, bench::allowed_degrees::any);
  omnibal::context_groups_workspace grouper;
  omnibal::context_pieces_workspace cutter;
  omnibal::context_exchange_workspace planner;
  std::vector<double> plan_ms;
  std::vector<double> pieces_ms;
  std::vector<double> exchange_ms;
  for (auto _ : state) {
    double const begin = bench::processor_seconds();
    for (examples::context_step const& step : steps) {
      std::vector<std::uint64_t> offsets;
      for (std::size_t rank = 0; rank <= step.ranks; ++rank) {
        offsets.push_back(step.lengths.size() * rank / step.ranks);
      }
      double const start = bench::processor_seconds();
      auto const& plan =
          omnibal::context_groups(step.lengths, step.ranks, step.cost,
                                  examples::context_step::memory, step.options, grouper);
      double const planned = bench::processor_seconds();
      auto const& layout = omnibal::context_pieces(plan, step.lengths, step.ranks, options, cutter);
      double const cut = bench::processor_seconds();
      benchmark::DoNotOptimize(&omnibal::context_exchange(layout, offsets, 4, planner));
      double const end = bench::processor_seconds();
      plan_ms.push_back(1e3 * (planned - start));
      pieces_ms.push_back(1e3 * (cut - planned));
      exchange_ms.push_back(1e3 * (end - cut));
    }
    state.SetIterationTime(bench::processor_seconds() - begin);
  }
  pair_counts pairs;
  double tokens = 0;
  double padded = 0;
  std::size_t pieces = 0;
  for (examples::context_step const& step : steps) {
    auto const& plan = omnibal::context_groups(
        step.lengths, step.ranks, step.cost, examples::context_step::memory, step.options, grouper);
    auto const& layout = omnibal::context_pieces(plan, step.lengths, step.ranks, options, cutter);
    pairs.add(plan, layout);
    pieces = std::max(pieces, layout.pieces().size());
    for (auto const& piece : layout.pieces()) {
      tokens += piece.tokens;
      padded += piece.padded_tokens;
    }
  }
  state.counters["plan_ms"] = bench::median(plan_ms);
  state.counters["pieces_ms"] = bench::median(pieces_ms);
  state.counters["exchange_ms"] = bench::median(exchange_ms);
  state.counters["pieces"] = static_cast<double>(pieces);
  state.counters["uneven"] = pairs.busiest / pairs.even - 1;
  state.counters["padding"] = padded / tokens - 1;
}

void step_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (int const count : {512, 4096}) {
    for (int const ranks : {64, 1024}) made->Args({count, ranks});
  }
}

BENCHMARK_CAPTURE(context_pieces, tokens, omnibal::context_pieces_options{})->Apply(step_sizes);
BENCHMARK_CAPTURE(context_pieces, blocks_of_8, omnibal::context_pieces_options{.multiple = 8})
    ->Apply(step_sizes);
BENCHMARK_CAPTURE(context_pieces, blocks_of_128, omnibal::context_pieces_options{.multiple = 128})
    ->Apply(step_sizes);
BENCHMARK_CAPTURE(context_pieces, equal_pieces_of_8,
                  omnibal::context_pieces_options{.multiple = 8,
                                                  .padding = context_padding::to_equal_pieces})
    ->Apply(step_sizes);

}  // namespace
