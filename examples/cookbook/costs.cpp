// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <iostream>
#include <vector>

namespace cookbook {

void what_a_layer_takes() {
  omnibal::transformer const layer{.hidden = 4096, .heads = 32, .kv_heads = 8, .mlp = 14336};
  std::vector<std::int64_t> const documents{3000, 1000, 96};
  auto const cost = layer({.documents = omnibal::sequences_of(documents)}, {.tensor = 2});
  using enum omnibal::recompute_choice;
  std::cout << cost.flops() / 1'000'000'000 << " GFLOP forward and backward on one of two ranks\n"
            << cost.parameters / 1'000'000 << " million parameters, "
            << cost.state_bytes() / 1'000'000 << " MB with gradients and optimizer\n"
            << cost[none].kept_bytes / 1'000'000 << " MB kept, "
            << cost[full].kept_bytes / 1'000'000 << " MB where all is recomputed\n";
}

void what_a_document_costs() {
  auto const flops = omnibal::document_cost(omnibal::llama3_8b);
  std::vector<std::int64_t> const lengths{64'000, 32'000, 32'000, 16'000, 16'000, 16'000, 16'000};
  // Halves that are even by tokens are not even by work.
  auto const show = [&](omnibal::grouping const& halves) {
    print(halves);
    for (auto const& load : omnibal::group_loads(halves, lengths, flops)) {
      std::cout << "  " << load[0] / 1'000'000'000'000 << " TFLOP\n";
    }
  };
  show(omnibal::lpt(lengths, 2));
  show(omnibal::lpt(lengths, 2, flops));
  std::cout << omnibal::count_parameters(omnibal::llama3_8b).total << " parameters\n";
}

void a_model_of_your_own() {
  omnibal::vision_language_model const model{.vision = omnibal::internvit_6b,
                                             .connector = {.input = 12'800,
                                                           .hidden = 4096,
                                                           .output = 4096,
                                                           .tile_tokens = 256,
                                                           .patches_per_token = 4},
                                             .language = omnibal::llama3_8b};
  omnibal::micro_batch_work const batch{
      .tiles = 12, .documents = {.count = 3, .tokens = 4096, .squares = 6'000'000}};
  auto const layers = omnibal::layer_costs(model, batch);
  std::cout << layers.size() << " layers, " << omnibal::count_parameters(model).total
            << " parameters\n"
            << omnibal::tile_cost(model)(12) / 1'000'000'000 << " GFLOP for the tiles, "
            << omnibal::document_cost(model)(4096) / 1'000'000'000 << " for 4096 tokens\n";
}

void layers_that_differ() {
  // The products of Gemma 3 12B, with windows in five of six layers.
  omnibal::transformer const whole{
      .hidden = 3840, .heads = 16, .kv_heads = 8, .head_size = 256, .mlp = 15'360};
  omnibal::transformer windowed = whole;
  windowed.span = {omnibal::span_kind::window, 1024};
  omnibal::mixed_language_model model{
      .input = {.vocabulary = 262'208, .hidden = 3840},
      .output = {.vocabulary = 262'208, .hidden = 3840, .weights = omnibal::head_weights::tied}};
  for (int i = 0; i != 8; ++i) model.runs.insert(model.runs.end(), {{5, windowed}, {1, whole}});
  std::vector<std::int64_t> const lengths{30'000, 2'000, 768};
  auto const flops = omnibal::document_cost(model);
  std::cout << flops(30'000) / 1'000'000'000'000 << " TFLOP for 30,000 tokens\n";
  // Layers with windows need the squares of the lengths within them.
  auto const spans = omnibal::attention_spans(model);
  auto const layers =
      omnibal::layer_costs(model, {.documents = omnibal::sequences_of(lengths, {}, spans)});
  std::cout << layers[1].flops() / 1'000'000'000 << " GFLOP with a window, "
            << layers[6].flops() / 1'000'000'000 << " without\n";
}

void how_a_layer_runs() {
  omnibal::micro_batch_work const batch{.documents =
                                            omnibal::equal_sequences({.count = 1, .length = 8192})};
  auto const show = [](char const* text, omnibal::layer_cost const& cost) {
    std::cout << text << ": " << cost.choices[0].kept_bytes / 1'000'000 << " MB kept, "
              << cost.state_bytes() / 1'000'000 << " MB of state\n";
  };
  omnibal::transformer layer = omnibal::llama3_8b.layer;
  show("bf16", layer(batch));
  show("MXFP8", layer(batch, {}, omnibal::mxfp8_bytes));
  layer.training = omnibal::training_mode::input_gradients;
  layer.adapters = {.rank = 16};
  show("LoRA", layer(batch));
  omnibal::language_head head = omnibal::llama3_8b.output;
  show("head", head(batch));
  head.loss_chunk = 1024;
  show("head, chunked loss", head(batch));
  omnibal::transformer const sparse{
      .hidden = 4096, .heads = 32, .experts = {.routed = 64, .active = 4, .mlp = 1536}};
  show("experts", sparse(batch, {.tensor = 4, .data = 16, .expert = 16}));
  show("whole experts", sparse(batch, {.tensor = 4, .data = 16, .expert = 64, .expert_tensor = 1}));
}

/// A pair of matrices around a bottleneck, with no kernel of its own.
struct bottleneck {
  std::int64_t hidden, width;

  omnibal::layer_cost operator()(omnibal::micro_batch_work const& batch,
                                 omnibal::parallel_degrees const& degrees,
                                 omnibal::byte_sizes const& bytes) const {
    std::int64_t const tokens = batch.documents.tokens / degrees.sequence;
    std::int64_t const numbers = 2 * hidden * width / degrees.tensor;
    std::int64_t const input = bytes.activation * tokens * hidden;
    std::int64_t const inner = bytes.activation * tokens * width / degrees.tensor;
    return {.forward = {.flops = 2 * tokens * numbers},
            .backward = {.flops = 4 * tokens * numbers},
            .parameters = numbers,
            .active_parameters = numbers,
            .parameter_bytes = bytes.parameter * numbers,
            .gradient_bytes = bytes.gradient * numbers,
            .optimizer_bytes = bytes.optimizer * numbers / degrees.data,
            .choices = {{{input + inner, input},
                         {input + inner, input},
                         {input, input + inner, {.flops = 2 * tokens * numbers}}}},
            .cut_bytes = input};
  }
};

void a_layer_of_your_own() {
  bottleneck const layer{.hidden = 4096, .width = 512};
  auto const costs = omnibal::layer_costs(
      layer, {.documents = omnibal::equal_sequences({.count = 4, .length = 1024})});
  std::cout << costs.size() << " layer, " << omnibal::count_parameters(layer).total
            << " parameters, " << omnibal::document_cost(layer)(1024) / 1'000'000'000
            << " GFLOP for a document\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"what_a_layer_takes", what_a_layer_takes},
       {"what_a_document_costs", what_a_document_costs},
       {"a_model_of_your_own", a_model_of_your_own},
       {"layers_that_differ", layers_that_differ},
       {"how_a_layer_runs", how_a_layer_runs},
       {"a_layer_of_your_own", a_layer_of_your_own}});
}
