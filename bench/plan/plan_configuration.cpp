// SPDX-License-Identifier: Apache-2.0
/// \file
/// The search for the fastest configuration of a training step, over all degrees, micro-batches,
/// chunks, cuts, recomputation and sharding.

#include <omnibal/cost/machines.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/plan/plan_configuration.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>

#include <benchmark/benchmark.h>

namespace {

using omnibal::language_model;
using omnibal::plan_configuration_options;
using omnibal::step_data;

language_model gpt3_175b() {
  return {.input = {.vocabulary = 51'200, .hidden = 12'288},
          .layers = 96,
          .layer = {.hidden = 12'288,
                    .heads = 96,
                    .mlp = 49'152,
                    .feed_forward = omnibal::mlp_kind::plain},
          .output = {.vocabulary = 51'200, .hidden = 12'288}};
}

language_model llama_405b() {
  return {.input = {.vocabulary = 128'256, .hidden = 16'384},
          .layers = 126,
          .layer = {.hidden = 16'384, .heads = 128, .kv_heads = 8, .mlp = 53'248},
          .output = {.vocabulary = 128'256, .hidden = 16'384}};
}

/// Samples of 1 to 12 tiles of 256 tokens, and up to 1,024 tokens of text.
step_data samples_of_tiles() {
  constexpr std::size_t count = 60'000;
  step_data result{.sequences = 1024};
  omnibal::rng::engine random(1);
  for (std::size_t i = 0; i != count; ++i) {
    auto const tiles = static_cast<std::int64_t>(1 + omnibal::rng::below(random, 12));
    result.tiles.push_back(tiles);
    result.lengths.push_back(256 * tiles +
                             static_cast<std::int64_t>(64 + omnibal::rng::below(random, 960)));
  }
  return result;
}

template <class Model>
void search(benchmark::State& state, Model const& model, omnibal::machine const& machine,
            step_data const& data, plan_configuration_options const& options) {
  omnibal::configuration_plan plan;
  for (auto _ : state) plan = omnibal::plan_configuration(model, machine, data, options);
  state.counters["configurations"] = static_cast<double>(plan.configurations);
  state.counters["predictions"] = static_cast<double>(plan.predictions);
  state.counters["step_seconds"] = plan.best.prediction.total();
  state.counters["proven"] = plan.proven ? 1 : 0;
}

plan_configuration_options devices_of(std::int64_t count) {
  return {.devices = count, .memory_bytes = 80'000'000'000, .reserve_bytes = 6'000'000'000};
}

BENCHMARK_CAPTURE(search, gpt3_175b_on_512_a100, gpt3_175b(), omnibal::machines::a100_infiniband,
                  {.sequences = 1536, .tokens = 2048}, devices_of(512))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, llama_405b_on_1024_h100, llama_405b(), omnibal::machines::h100,
                  {.sequences = 2048, .tokens = 8192}, devices_of(1024))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, internvl_6_20b_on_64_a100, omnibal::internvl_6_20b,
                  omnibal::machines::a100_infiniband, samples_of_tiles(), devices_of(64))
    ->Unit(benchmark::kMillisecond);

}  // namespace
