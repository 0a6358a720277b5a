// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what plans of pipelines give for seeded integers.
// expected/plan.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/cost/machines.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/plan/offload_links.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_configuration.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/predict_step.hpp>
#include <omnibal/plan/stage_chunks.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using golden::print;

/// Layers of similar times and bytes, with a heavy tail of states.
std::vector<omnibal::plan_layer<>> similar_layers(test::random_amounts& random,
                                                  std::int64_t count) {
  std::vector<omnibal::plan_layer<>> layers(static_cast<std::size_t>(count));
  for (auto& layer : layers) {
    std::int64_t const time = random.between(1000, 1100);
    std::int64_t const bytes = random.between(500, 520);
    layer.state_bytes = random.heavy_tail(2000);
    layer.choices = {{3 * time, bytes, bytes / 4},
                     {3 * time + time / 7, bytes / 2, bytes / 2},
                     {4 * time, bytes / 16, bytes}};
  }
  return layers;
}

void add(omnibal::pipeline_plan<std::int64_t> const& plan, test::fnv1a& hash) {
  for (std::uint32_t const boundary : plan.boundaries) hash.add(boundary);
  for (std::uint32_t const choice : plan.choices) hash.add(choice);
  for (std::int64_t const number : {plan.step_time, plan.lower_bound, plan.missing_bytes}) {
    hash.add(static_cast<std::uint64_t>(number));
  }
}

/// Plans of random layers on random machines, feasible or not.
void print_plan(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a hash;
  for (int run = 0; run != 200; ++run) {
    auto const layers = similar_layers(random, random.between(4, 40));
    omnibal::pipeline_machine const machine{
        .stages = static_cast<std::size_t>(random.between(1, 4)),
        .memory_bytes = {random.between(1, 30'000)}};
    auto const plan = omnibal::plan_pipeline(
        layers, machine, {.micro_batches = static_cast<std::size_t>(random.between(1, 20))});
    add(plan, hash);
    hash.add(plan.stage);
  }
  print("plan_pipeline, seed " + std::to_string(seed), hash.value());
}

/// Plans of random layers on machines with several chunks on each stage.
void print_chunks(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a hash;
  for (int run = 0; run != 50; ++run) {
    auto const layers = similar_layers(random, random.between(12, 40));
    omnibal::pipeline_machine const machine{
        .stages = static_cast<std::size_t>(random.between(2, 4)),
        .memory_bytes = {random.between(10'000, 60'000)}};
    auto const micro_batches = static_cast<std::size_t>(random.between(1, 20));
    omnibal::stage_chunks const chunks{.count = static_cast<std::size_t>(random.between(2, 3))};
    auto const plan =
        omnibal::plan_pipeline(layers, machine, chunks, {.micro_batches = micro_batches});
    add(plan, hash);
  }
  print("plan_pipeline with chunks, seed " + std::to_string(seed), hash.value());
}

/// Plans of layers with an input and two modules, over links that one or two stages use.
void print_links(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a hash;
  for (int run = 0; run != 50; ++run) {
    std::vector<omnibal::offload_layer> layers(static_cast<std::size_t>(random.between(8, 30)));
    for (auto& layer : layers) {
      layer.activations.modules = {{random.between(1, 50), 0, omnibal::module_need::required},
                                   {random.between(100, 500), random.between(1, 50)},
                                   {random.between(100, 500), random.between(50, 400)}};
      layer.activations.forward_time = random.between(300, 500);
      layer.activations.backward_time = 2 * layer.activations.forward_time;
      layer.time = 3 * layer.activations.forward_time;
      layer.state_bytes = random.between(0, 200);
    }
    omnibal::pipeline_machine const machine{
        .stages = static_cast<std::size_t>(random.between(2, 4)),
        .memory_bytes = {random.between(5'000, 30'000)}};
    omnibal::offload_links const links{
        .bytes_per_time = static_cast<double>(random.between(0, 4)) / 4,
        .stages_per_link = static_cast<std::size_t>(random.between(1, 2))};
    auto const plan = omnibal::plan_pipeline(layers, machine, links, {.micro_batches = 12});
    hash.add(static_cast<std::uint64_t>(plan.step_time));
    hash.add(static_cast<std::uint64_t>(plan.lower_bound));
    hash.add(static_cast<std::uint64_t>(plan.missing_bytes));
    for (auto const boundary : plan.boundaries) hash.add(boundary);
    for (auto const& row : plan.choices) {
      for (auto const choice : row) hash.add(static_cast<std::uint64_t>(choice));
    }
  }
  print("plan_pipeline with links, seed " + std::to_string(seed), hash.value());
}

/// Steps of random degrees in nanoseconds, and their bytes.
void print_step(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a hash;
  for (int run = 0; run != 100; ++run) {
    std::int64_t const heads = 8 * random.between(1, 8);
    omnibal::language_model model{.input = {.vocabulary = 32'000, .hidden = 128 * heads},
                                  .layers = random.between(4, 40),
                                  .layer = {.hidden = 128 * heads, .heads = heads},
                                  .output = {.vocabulary = 32'000, .hidden = 128 * heads}};
    model.layer.mlp = random.between(0, 1) == 0 ? 512 * heads : 0;
    if (model.layer.mlp == 0) model.layer.experts = {.routed = 16, .active = 2, .mlp = 64 * heads};
    omnibal::training_step step{.sequences = random.between(1, 3),
                                .tokens = 1024 * random.between(1, 8),
                                .micro_batches = random.between(1, 20)};
    step.degrees = {.tensor = std::int64_t{1} << random.between(0, 3),
                    .sequence = random.between(1, 2),
                    .data = 8 * random.between(1, 9),
                    .expert = 8,
                    .norms = static_cast<omnibal::norm_regions>(random.between(0, 1)),
                    .sharding = static_cast<omnibal::sharded_state>(random.between(0, 3)),
                    .pipeline = random.between(1, 4),
                    .expert_tensor = 1};
    if (model.layer.mlp != 0) step.degrees.expert = 1;
    step.chunks = step.degrees.pipeline == 1 ? 1 : random.between(1, 2);
    if (model.layers < step.chunks * step.degrees.pipeline) step.chunks = 1;
    step.recomputed = static_cast<omnibal::recompute_choice>(random.between(0, 2));
    step.precision = static_cast<omnibal::matmul_precision>(random.between(0, 1));
    step.layer_communication = static_cast<omnibal::communication>(random.between(0, 1));
    if (run % 2 == 0) {
      step.offload = {0.25 * static_cast<double>(random.between(0, 4)), 50e9};
    }
    auto const found = omnibal::predict_step(model, step, omnibal::machines::h100);
    for (auto const part : omnibal::step_seconds::parts()) {
      hash.add(static_cast<std::uint64_t>(1e9 * (found.seconds.*part)));
    }
    for (std::int64_t const bytes : found.peak_bytes) hash.add(static_cast<std::uint64_t>(bytes));
    for (std::int64_t const bytes : found.host_bytes) hash.add(static_cast<std::uint64_t>(bytes));
  }
  print("predict_step, seed " + std::to_string(seed), hash.value());
}

/// Best, runners-up and families of small spaces.
void print_configurations(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a hash;
  auto const add = [&](omnibal::planned_configuration const& found) {
    for (std::int64_t const value :
         {found.step.degrees.tensor, found.step.degrees.pipeline, found.step.degrees.sequence,
          found.step.degrees.data, found.step.chunks, found.step.sequences,
          found.step.micro_batches}) {
      hash.add(static_cast<std::uint64_t>(value));
    }
    hash.add(static_cast<std::uint64_t>(1e9 * found.prediction.total()));
  };
  for (int i = 0; i != 10; ++i) {
    omnibal::language_model const model{
        .input = {.vocabulary = 32'000, .hidden = 1024},
        .layers = random.between(2, 12),
        .layer = {.hidden = 1024, .heads = 16, .kv_heads = 8, .mlp = 2816},
        .output = {.vocabulary = 32'000, .hidden = 1024}};
    omnibal::step_data const data{.sequences = 8 * random.between(1, 4),
                                  .tokens = 1024 * random.between(1, 4)};
    auto const plan = omnibal::plan_configuration(
        model, omnibal::machines::h100, data,
        {.devices = 8 * random.between(1, 2), .memory_bytes = std::int64_t{1} << 34});
    add(plan.best);
    for (auto const& other : plan.runners_up) add(other);
    for (auto const& family : plan.families) {
      hash.add(static_cast<std::uint64_t>(family.reason));
      if (family.reason != omnibal::loss_reason::memory) add(family.best);
    }
  }
  print("plan_configuration, seed " + std::to_string(seed), hash.value());
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{1}, std::uint64_t{2}}) print_plan(seed);
  print_chunks(1);
  print_links(1);
  print_step(1);
  print_configurations(1);
}
