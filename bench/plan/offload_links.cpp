// SPDX-License-Identifier: Apache-2.0
/// \file
/// Plans of pipelines whose devices offload over links. The yardstick has no links.

#include "compare.hpp"

#include <omnibal/plan/offload_links.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

struct linked_pipeline {
  std::vector<omnibal::offload_layer> layers;
  omnibal::pipeline_machine machine;
};

/// Layers with a required input and the six modules of bench/rivals/offload.py, off by up to
/// `per_mille` thousandths, and eight stages whose memory has 30, 50 or 70 % of all bytes each.
std::vector<linked_pipeline> make_pipelines(std::size_t count, std::int64_t per_mille) {
  constexpr std::int64_t bytes[]{58'720'256, 58'720'256,  469'762'048, 134'217'728,
                                 58'720'256, 301'989'888, 150'994'944};
  constexpr std::int64_t times[]{0, 60'000, 1'130'000, 1'720'000, 2'400'000, 5'410'000, 210'000};
  omnibal::rng::engine random(1);
  auto const noisy = [&](std::int64_t value) {
    auto const off = static_cast<std::int64_t>(omnibal::rng::below(random, 2'000'001)) - 1'000'000;
    return value + value / 1000 * per_mille * off / 1'000'000;
  };
  std::vector<linked_pipeline> result;
  for (std::int64_t const percent : {30, 50, 70}) {
    linked_pipeline one;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i != count; ++i) {
      auto& layer = one.layers.emplace_back();
      auto& activations = layer.activations;
      for (std::size_t j = 0; j != std::size(bytes); ++j) {
        activations.modules.push_back(
            {noisy(bytes[j]), noisy(times[j]),
             j == 0 ? omnibal::module_need::required : omnibal::module_need::optional});
        sum += activations.modules.back().bytes;
      }
      activations.forward_time = noisy(12'000'000);
      activations.backward_time = noisy(24'000'000);
      layer.time = activations.forward_time + activations.backward_time;
    }
    one.machine = {.stages = 8, .memory_bytes = sum / 100 * percent};
    result.push_back(std::move(one));
  }
  return result;
}

omnibal::offload_plan plan(linked_pipeline const& one, double bytes_per_time) {
  return omnibal::plan_pipeline(one.layers, one.machine,
                                omnibal::offload_links{.bytes_per_time = bytes_per_time},
                                {.micro_batches = 32});
}

/// The same pipelines without links.
class no_links {
 public:
  explicit no_links(std::vector<linked_pipeline> const& pipelines) : pipelines_(&pipelines) {}

  void prepare() { turn_ = (turn_ + 1) % pipelines_->size(); }
  void operator()() const { benchmark::DoNotOptimize(plan((*pipelines_)[turn_], 0).step_time); }
  [[nodiscard]] std::size_t items() const { return pipelines_->front().layers.size(); }

 private:
  std::vector<linked_pipeline> const* pipelines_;
  std::size_t turn_ = 0;
};

/// Counter: the largest gap between the step and its lower bound.
void plan_with_links(benchmark::State& state) {
  auto const pipelines = make_pipelines(bench::size_of(state), state.range(1));
  std::size_t turn = 0;
  bench::compare(state, no_links(pipelines), [&] {
    turn = (turn + 1) % pipelines.size();
    return plan(pipelines[turn], 25).step_time;
  });
  double gap = 0;
  for (linked_pipeline const& one : pipelines) {
    auto const found = plan(one, 25);
    gap = std::max(gap, static_cast<double>(found.step_time - found.lower_bound) /
                            static_cast<double>(found.step_time));
  }
  state.counters["largest_gap"] = gap;
  bench::make_promises(state, {{"plan_pipeline with links, 61 layers on 8 stages, noise " +
                                    std::to_string(state.range(1)) + " per mille: largest gap",
                                "largest_gap", 0.001}});
}

BENCHMARK(plan_with_links)
    ->ArgNames({"n", "per_mille"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->ArgsProduct({{61}, {0, 10, 100}});

}  // namespace
