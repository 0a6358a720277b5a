// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what the models and fits of costs give for seeded integers.
// expected/cost.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/random_layers.hpp"
#include "digest.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/two_point_probe.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using golden::print;

/// Every number of the costs of a layer, and the nanoseconds of its choices.
void add_layer(test::fnv1a& hash, omnibal::layer_cost const& cost) {
  omnibal::device_model const device{.flops_per_second = 156'000'000'000'000,
                                     .bytes_per_second = 1'500'000'000'000};
  for (auto const& pass : {cost.forward, cost.backward}) {
    hash.add(static_cast<std::uint64_t>(pass.flops));
    hash.add(static_cast<std::uint64_t>(pass.moved_bytes));
  }
  for (std::int64_t const number : {cost.parameters, cost.active_parameters, cost.parameter_bytes,
                                    cost.gradient_bytes, cost.optimizer_bytes, cost.cut_bytes}) {
    hash.add(static_cast<std::uint64_t>(number));
  }
  for (auto const& choice : omnibal::timed_choices{device}(cost)) {
    for (std::int64_t const number : {choice.time, choice.bytes, choice.transient_bytes}) {
      hash.add(static_cast<std::uint64_t>(number));
    }
  }
}

/// Random layers on random ranks, costs of samples, tables and probes.
void print_costs(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a layers;
  test::fnv1a samples;
  test::fnv1a tables;
  for (int run = 0; run != 200; ++run) {
    auto const layer = test::random_transformer(random);
    auto const batch = test::random_documents(random);
    std::int64_t const tensor = std::int64_t{1} << random.between(0, 3);
    std::int64_t const expert = std::int64_t{1} << random.between(0, 3);
    omnibal::parallel_degrees const degrees{
        .tensor = tensor,
        .sequence = random.between(1, 7),
        .data = 8 * random.between(1, 9),
        .expert = expert,
        .norms = test::any_of<omnibal::norm_regions>(random, 2),
        .sharding = test::any_of<omnibal::sharded_state>(random, 4)};
    add_layer(layers, layer(batch, degrees));
    samples.add(static_cast<std::uint64_t>(layer.sample_cost()(random.between(0, 100'000))));

    std::vector<std::pair<std::int64_t, std::int64_t>> points;
    for (std::int64_t size = 1; size < 1000; size += random.between(1, 200)) {
      points.emplace_back(size, random.heavy_tail(std::int64_t{1} << 40));
    }
    using point = std::pair<std::int64_t, std::int64_t>;
    auto const table = omnibal::measured_table(points, &point::first, &point::second);
    tables.add(static_cast<std::uint64_t>(table(random.between(0, 1200))));
    omnibal::memory_reading const few{random.between(0, 9), random.between(0, 1 << 20)};
    omnibal::memory_reading const many{random.between(10, 60), random.between(1 << 21, 1 << 30)};
    auto const line = omnibal::two_point_probe(few, many);
    tables.add(static_cast<std::uint64_t>(line.checkpointed_for(80, 1 << 22).layers));
    tables.add(static_cast<std::uint64_t>(line.free_bytes(random.between(0, 80))));
  }
  std::string const suffix = ", seed " + std::to_string(seed);
  print("transformer" + suffix, layers.value());
  print("sample_cost" + suffix, samples.value());
  print("measured_table and two_point_probe" + suffix, tables.value());
}

/// Random layers with recurrent parts, spans and adapters, in bf16, FP8 and MXFP8.
void print_hybrids(std::uint64_t seed) {
  test::random_amounts random(seed);
  test::fnv1a layers;
  test::fnv1a samples;
  for (int run = 0; run != 300; ++run) {
    auto const layer = test::random_hybrid(random);
    auto const batch = test::random_documents(random, omnibal::attention_spans(layer));
    omnibal::parallel_degrees const degrees{
        .tensor = 4,
        .sequence = random.between(1, 7),
        .data = 8,
        .expert = 8,
        .norms = test::any_of<omnibal::norm_regions>(random, 2),
        .sharding = test::any_of<omnibal::sharded_state>(random, 4),
        .expert_tensor = std::int64_t{1} << random.between(0, 2)};
    add_layer(layers, layer(batch, degrees));
    add_layer(layers, layer(batch, degrees, omnibal::fp8_bytes));
    omnibal::prediction_layer const prediction{
        .layer = layer, .vocabulary = random.between(1, 100'000), .loss_chunk = run % 3};
    add_layer(layers, prediction(batch, degrees, omnibal::mxfp8_bytes));
    samples.add(static_cast<std::uint64_t>(layer.sample_cost()(random.between(0, 10'000))));
  }
  std::string const suffix = ", seed " + std::to_string(seed);
  print("hybrid layers" + suffix, layers.value());
  print("sample_cost of hybrid layers" + suffix, samples.value());
}

/// What the layers of a model cost, and its samples.
template <class Model>
void print_model(std::string const& name, Model const& model) {
  test::fnv1a hash;
  omnibal::micro_batch_work const batch{
      .tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})};
  model.for_each_layer([&](auto const& layer, std::int64_t count) {
    add_layer(hash, layer(batch, {.data = 8}));
    hash.add(static_cast<std::uint64_t>(count));
  });
  hash.add(static_cast<std::uint64_t>(omnibal::tile_cost(model)(7)));
  hash.add(static_cast<std::uint64_t>(omnibal::document_cost(model)(4096)));
  print("layer_costs of " + name, hash.value());
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{1}, std::uint64_t{2}}) print_costs(seed);
  print_model("internvl_6_20b", omnibal::internvl_6_20b);
  print_model("internvl_6_34b", omnibal::internvl_6_34b);
  print_model("llama3_8b", omnibal::llama3_8b);
  print_model("llama3_70b", omnibal::llama3_70b);
  print_model("deepseek_v2", omnibal::deepseek_v2);
  for (std::uint64_t const seed : {std::uint64_t{3}, std::uint64_t{4}}) print_hybrids(seed);
}
