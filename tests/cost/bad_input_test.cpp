// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/cost/audio_transformer.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/resampler.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::micro_batch_work;
using omnibal::transformer;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

constexpr transformer good{.hidden = 32, .heads = 8, .kv_heads = 4, .mlp = 24};

template <class Layer>
std::string error_of(Layer const& layer, micro_batch_work const& batch = {},
                     omnibal::parallel_degrees const& degrees = {},
                     omnibal::byte_sizes const& bytes = {}) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(layer(batch, degrees, bytes)); });
}

template <class Change>
std::string error_after(Change const& change) {
  transformer layer = good;
  change(layer);
  return error_of(layer);
}

}  // namespace

TEST_CASE("a wrong number of a configuration is named") {
  CHECK(error_of(good) == "no error");
  CHECK(error_of(transformer{}) == "omnibal::transformer: hidden is 0, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.heads = 0; }) ==
        "omnibal::transformer: heads is 0, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.heads = -8; }) ==
        "omnibal::transformer: heads is -8, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.heads = 12; }) ==
        "omnibal::transformer: hidden is 32, must be a multiple of heads, which is 12");
  CHECK(error_after([](auto& x) { x.kv_heads = 3; }) ==
        "omnibal::transformer: heads is 8, must be a multiple of kv_heads, which is 3");
  CHECK(error_after([](auto& x) { x.kv_heads = -1; }) ==
        "omnibal::transformer: kv_heads is -1, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.head_size = -4; }) ==
        "omnibal::transformer: head_size is -4, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.head_size = 1 << 24; }) ==
        "omnibal::transformer: heads * head_size is 134217728, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.mlp = 0; }) ==
        "omnibal::transformer: mlp is 0, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.mlp = largest; }) ==
        "omnibal::transformer: mlp is 9223372036854775807, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.latent.key_value_rank = -1; }) ==
        "omnibal::transformer: latent.key_value_rank is -1, must be from 0 to 16777216");
  CHECK(error_after([](auto& x) { x.latent.rope_size = largest; }) ==
        "omnibal::transformer: latent.rope_size is 9223372036854775807, must be from 0 to "
        "16777216");
  CHECK(error_after([](auto& x) { x.cross.context_width = -5; }) ==
        "omnibal::transformer: context_width is -5, must be from 1 to 16777216");
}

TEST_CASE("a wrong number of experts is named") {
  CHECK(error_after([](auto& x) { x.experts = {.routed = -8, .active = 2, .mlp = 4}; }) ==
        "omnibal::transformer: experts.routed is -8, must be from 1 to 16777216");
  CHECK(error_after([](auto& x) { x.experts = {.routed = 8, .active = 9, .mlp = 4}; }) ==
        "omnibal::transformer: experts.active is 9, must be from 1 to 8");
  CHECK(error_after([](auto& x) { x.experts = {.routed = 8, .active = 0, .mlp = 4}; }) ==
        "omnibal::transformer: experts.active is 0, must be from 1 to 8");
  CHECK(error_after([](auto& x) {
          x.experts = {.routed = 8, .active = 2, .shared = -1, .mlp = 4};
        }) == "omnibal::transformer: experts.shared is -1, must be from 0 to 16777216");
  CHECK(error_after([](auto& x) { x.experts = {.routed = 8, .active = 2}; }) ==
        "omnibal::transformer: experts.mlp is 0, must be from 1 to 16777216");
  transformer layer = good;
  layer.experts = {.routed = 8, .active = 2, .mlp = 4};
  CHECK(error_of(layer, {}, {.data = 3, .expert = 3}) ==
        "omnibal::transformer: experts.routed is 8, must be a multiple of expert, which is 3");
  CHECK(error_of(layer, {}, {.tensor = 8}) ==
        "omnibal::transformer: experts.mlp is 4, must be a multiple of tensor, which is 8");
}

TEST_CASE("ranks that do not divide are named") {
  CHECK(error_of(good, {}, {.tensor = 0}) ==
        "omnibal::transformer: tensor is 0, must be from 1 to 16777216");
  CHECK(error_of(good, {}, {.data = -1}) ==
        "omnibal::transformer: data is -1, must be from 1 to 16777216");
  CHECK(error_of(good, {}, {.sequence = largest}) ==
        "omnibal::transformer: sequence is 9223372036854775807, must be from 1 to 16777216");
  CHECK(error_of(good, {}, {.tensor = 3}) ==
        "omnibal::transformer: heads is 8, must be a multiple of tensor, which is 3");
  CHECK(error_of(transformer{.hidden = 24, .heads = 24, .kv_heads = 6, .mlp = 24}, {},
                 {.tensor = 4}) ==
        "omnibal::transformer: kv_heads is 6, must be a multiple of tensor, which is 4");
  CHECK(error_of(transformer{.hidden = 24, .heads = 24, .kv_heads = 6, .mlp = 24}, {},
                 {.tensor = 8}) ==
        "omnibal::transformer: tensor is 8, must be a multiple of kv_heads, which is 6");
  CHECK(error_of(transformer{.hidden = 32, .heads = 8, .mlp = 25}, {}, {.tensor = 2}) ==
        "omnibal::transformer: mlp is 25, must be a multiple of tensor, which is 2");
  CHECK(error_of(good, {}, {.pipeline = 0}) ==
        "omnibal::transformer: pipeline is 0, must be from 1 to 16777216");
  CHECK(error_of(good, {}, {.sequence = 2, .data = 3, .expert = 4}) ==
        "omnibal::transformer: data * sequence is 6, must be a multiple of expert, which is 4");
  CHECK(error_of(omnibal::internvit_6b.layer, {}, {.tensor = 2}) ==
        "omnibal::vision_transformer: heads is 25, must be a multiple of tensor, which is 2");
  auto padded = omnibal::internvit_6b.layer;
  padded.heads = 26;
  padded.head_size = 128;
  CHECK(error_of(padded, {}, {.tensor = 2}) == "no error");
}

TEST_CASE("wrong sizes of numbers are named") {
  CHECK(error_of(good, {}, {}, {.activation = 0}) ==
        "omnibal::transformer: activation bytes is 0, must be from 1 to 64");
  CHECK(error_of(good, {}, {}, {.gradient = -1}) ==
        "omnibal::transformer: gradient bytes is -1, must be from 0 to 64");
}

TEST_CASE("impossible micro-batches are named") {
  CHECK(error_of(good, {.documents = {.tokens = 10}}) ==
        "omnibal::transformer: documents.squares is 0, must be between the tokens, 10, and their "
        "square");
  CHECK(error_of(good, {.documents = {.tokens = 10, .squares = 101}}) ==
        "omnibal::transformer: documents.squares is 101, must be between the tokens, 10, and their "
        "square");
  CHECK(error_of(good, {.documents = {.count = 2, .tokens = 10, .squares = 49}}) ==
        "omnibal::transformer: documents.squares is 49, less than 2 sequences of 10 tokens can "
        "have");
  CHECK(error_of(good, {.documents = {.count = 2, .tokens = 10, .squares = 50}}) == "no error");
  CHECK(error_of(good, {.documents = {.count = 11, .tokens = 10, .squares = 10}}) ==
        "omnibal::transformer: documents.count is 11, must be from 0 to the tokens, 10");
  CHECK(error_of(good, {.documents = {.tokens = -1}}) ==
        "omnibal::transformer: documents.tokens is -1, must be from 0 to 1099511627776");
  CHECK(error_of(good, {.context = {.tokens = -1}}) ==
        "omnibal::transformer: context.tokens is -1, must be from 0 to 1099511627776");
  CHECK(error_of(good, {.documents = {.tokens = 2, .squares = 4},
                        .context = {.tokens = 3, .pairs = 7}}) ==
        "omnibal::transformer: context.pairs is 7, must be from 0 to the tokens of the documents "
        "times those of the context");
  omnibal::audio_transformer const audio{.hidden = 32, .heads = 8, .mlp = 20};
  CHECK(error_of(audio, {.clips = {.tokens = 3}}) ==
        "omnibal::audio_transformer: clips.squares is 0, must be between the tokens, 3, and their "
        "square");
  omnibal::vision_transformer vision{.hidden = 32, .heads = 8, .mlp = 20};
  CHECK(error_of(vision, {.tiles = 1}) ==
        "omnibal::vision_transformer: tiles is 1, but the layer has no size of tiles");
  CHECK(error_of(vision, {.images = {.tokens = 3}}) ==
        "omnibal::vision_transformer: images.squares is 0, must be between the tokens, 3, and "
        "their square");
  vision.image_size = 30;
  CHECK(error_of(vision, {.tiles = 1}) ==
        "omnibal::vision_transformer: image_size is 30, must be a multiple of patch_size, which is "
        "14");
  vision.image_size = 28;
  CHECK(error_of(vision, {.tiles = -1}) ==
        "omnibal::vision_transformer: tiles is -1, must be from 0 to 16777216");
  vision.patch_size = 0;
  CHECK(error_of(vision, {.tiles = 1}) ==
        "omnibal::vision_transformer: patch_size is 0, must be from 1 to 65536");
}

TEST_CASE("wrong numbers of small layers are named") {
  CHECK(error_of(omnibal::projector{}) ==
        "omnibal::projector: input is 0, must be from 1 to 16777216");
  CHECK(error_of(omnibal::projector{.input = 8, .hidden = 9, .output = 8}, {}, {.tensor = 2}) ==
        "omnibal::projector: hidden is 9, must be a multiple of tensor, which is 2");
  CHECK(error_of(omnibal::projector{.input = 8, .output = 8, .patches_per_token = 0}) ==
        "omnibal::projector: patches_per_token is 0, must be from 1 to 16777216");
  CHECK(error_of(omnibal::projector{.input = 8, .output = 8}, {.tiles = 2}) ==
        "omnibal::projector: tiles is 2, but the layer has no size of tiles");
  CHECK(error_of(omnibal::resampler{.input = 8, .hidden = 8, .heads = 2}) ==
        "omnibal::resampler: queries is 0, must be from 1 to 16777216");
  CHECK(error_of(omnibal::resampler{.input = 8, .hidden = 8, .heads = 2, .queries = 4},
                 {.images = {.tokens = 3, .squares = 9}}) ==
        "omnibal::resampler: images.count is 0, but the images have patches");
  CHECK(error_of(omnibal::embedding{.hidden = 8}) ==
        "omnibal::embedding: vocabulary is 0, must be from 1 to 16777216");
  CHECK(error_of(omnibal::language_head{.vocabulary = 8}) ==
        "omnibal::language_head: hidden is 0, must be from 1 to 16777216");
  CHECK(error_of(omnibal::patch_embedding{.hidden = 8, .channels = 0}) ==
        "omnibal::patch_embedding: channels is 0, must be from 1 to 4096");
}

TEST_CASE("a model cannot have a negative number of layers") {
  auto model = omnibal::llama3_8b;
  model.layers = -1;
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::layer_costs(model, {}));
        }) == "omnibal::layer_costs: layers is -1, must be from 0 to 1048576");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::count_parameters(model));
        }) == "omnibal::count_parameters: layers is -1, must be from 0 to 1048576");
}

TEST_CASE("numbers beyond 64 bits are errors and never wrap") {
  constexpr std::int64_t width = 1 << 24;
  transformer const wide{.hidden = width, .heads = 1, .mlp = width};
  constexpr std::int64_t tokens = std::int64_t{1} << 40;
  auto const overflow = [](auto const& call) {
    return test::error_text<std::overflow_error>([&] { static_cast<void>(call()); });
  };
  CHECK(overflow([&] { return wide({.documents = {.tokens = tokens, .squares = largest}}); }) ==
        "omnibal::transformer: the sum of the forward FLOPs exceeds the largest value of its type");
  // Forward passes, but not forward and backward and forward again.
  transformer const narrow{.hidden = 1, .heads = 1, .mlp = 1};
  micro_batch_work const long_batch{
      .documents = {.tokens = std::int64_t{1} << 40, .squares = largest / 5}};
  CHECK(overflow([&] { return narrow(long_batch); }) ==
        "omnibal::transformer: the sum of all FLOPs exceeds the largest value of its type");
  transformer crowded = wide;
  crowded.experts = {.routed = width, .active = 1, .mlp = width};
  CHECK(overflow([&] { return crowded({}); }) ==
        "omnibal::transformer: the number of parameters exceeds the largest value of its type");
  std::vector<std::int64_t> const lengths{std::int64_t{1} << 32};
  CHECK(overflow([&] { return omnibal::sequences_of(lengths); }) ==
        "omnibal::sequences_of: the square of length[0] exceeds the largest value of its type");
  std::vector<std::int64_t> const many(3, std::int64_t{1} << 31);
  CHECK(overflow([&] { return omnibal::sequences_of(many); }) ==
        "omnibal::sequences_of: the sum of the squares exceeds the largest value of its type");
  CHECK(overflow([&] {
          return omnibal::equal_sequences({.count = 4, .length = std::int64_t{1} << 31});
        }) ==
        "omnibal::equal_sequences: the sum of the squares exceeds the largest value of its "
        "type");
}

TEST_CASE("negative lengths and counts are named") {
  std::vector<int> const lengths{3, -2};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::sequences_of(lengths));
        }) == "omnibal::sequences_of: length[1] is -2, must be finite and not negative");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::equal_sequences({.count = -1, .length = 3}));
        }) == "omnibal::equal_sequences: count is -1, must be from 0 to 1099511627776");
}

TEST_CASE("wrong numbers of recurrent parts are named") {
  auto const text = [](std::string const& rest) { return "omnibal::transformer: " + rest; };
  auto const recurrent = [](auto const& change) {
    transformer layer{.hidden = 32, .parts = omnibal::layer_parts::mixer};
    change(layer);
    return error_of(layer);
  };
  CHECK(recurrent([](auto& x) { x.delta = {.key_heads = 2}; }) ==
        text("delta.key_size is 0, must be from 1 to 16777216"));
  CHECK(recurrent([](auto& x) { x.delta = {.key_heads = -2, .key_size = 8}; }) ==
        text("delta.key_heads is -2, must be from 1 to 16777216"));
  CHECK(recurrent([](auto& x) { x.delta = {.key_heads = 2, .value_heads = 3, .key_size = 8}; }) ==
        text("delta.value_heads is 3, must be a multiple of delta.key_heads, which is 2"));
  CHECK(recurrent([](auto& x) { x.delta = {.key_heads = 2, .key_size = 8, .convolution = -1}; }) ==
        text("delta.convolution is -1, must be from 0 to 16777216"));
  CHECK(recurrent([](auto& x) { x.delta = {.key_heads = 1 << 13, .key_size = 1 << 13}; }) ==
        text("delta.key_heads * delta.key_size is 67108864, must be from 1 to 16777216"));
  CHECK(recurrent([](auto& x) { x.space = {.heads = 8}; }) ==
        text("space.state is 0, must be from 1 to 16777216"));
  CHECK(recurrent([](auto& x) { x.space = {.heads = 8, .state = 4, .groups = 3}; }) ==
        text("space.heads is 8, must be a multiple of space.groups, which is 3"));
  CHECK(recurrent([](auto& x) { x.space = {.heads = 8, .state = 4, .step_rank = -1}; }) ==
        text("space.step_rank is -1, must be from 0 to 16777216"));
  CHECK(recurrent([](auto& x) { x.convolution.tokens = -3; }) ==
        text("convolution.tokens is -3, must be from 1 to 16777216"));
  transformer const delta{.hidden = 32, .mlp = 24, .delta = {.key_heads = 2, .key_size = 8}};
  CHECK(error_of(delta, {}, {.tensor = 4}) ==
        text("delta.key_heads is 2, must be a multiple of tensor, which is 4"));
  transformer const space{.hidden = 32, .mlp = 24, .space = {.heads = 24, .state = 4, .groups = 6}};
  CHECK(error_of(space, {}, {.tensor = 4}) ==
        text("space.groups is 6, must be a multiple of tensor, which is 4"));
  CHECK(error_of(space, {}, {.tensor = 8}) ==
        text("tensor is 8, must be a multiple of space.groups, which is 6"));
}

TEST_CASE("parts that contradict each other are named") {
  auto const text = [](std::string const& rest) { return "omnibal::transformer: " + rest; };
  using omnibal::layer_parts;
  CHECK(error_after([](auto& x) { x.parts = layer_parts::mixer; }) ==
        text("parts is mixer, but the layer has a feed-forward part"));
  CHECK(error_after([](auto& x) { x.parts = layer_parts::feed_forward; }) ==
        text("parts is feed_forward, but the layer mixes tokens"));
  CHECK(error_after([](auto& x) {
          x.heads = 0;
          x.parts = layer_parts::feed_forward;
          x.convolution.tokens = 3;
        }) == text("parts is feed_forward, but the layer mixes tokens"));
  CHECK(error_after([](auto& x) { x.heads = 0; }) ==
        text("heads is 0, must be from 1 to 16777216"));
  CHECK(error_after([](auto& x) { x.mlp = 0; }) == text("mlp is 0, must be from 1 to 16777216"));
  CHECK(error_of(transformer{.hidden = 32, .parts = layer_parts::mixer}) ==
        text("heads is 0, must be from 1 to 16777216"));
  CHECK(error_of(transformer{.hidden = 32, .parts = layer_parts::feed_forward}) ==
        text("mlp is 0, must be from 1 to 16777216"));
}

TEST_CASE("wrong kinds of attention are named") {
  auto const text = [](std::string const& rest) { return "omnibal::transformer: " + rest; };
  using omnibal::span_kind;
  CHECK(error_after([](auto& x) {
          x.span = {span_kind::window, 0};
        }) == text("span.tokens is 0, must be from 1 to 1099511627776"));
  CHECK(error_after([](auto& x) {
          x.span = {span_kind::window, 8};
          x.mask = omnibal::attention_mask::full;
        }) == text("span is a window, but the mask is not causal"));
  CHECK(error_after([](auto& x) { x.indexer.heads = 4; }) ==
        text("indexer.head_size is 0, must be from 1 to 16777216"));
  CHECK(error_after([](auto& x) { x.indexer.heads = -1; }) ==
        text("indexer.heads is -1, must be from 0 to 16777216"));
  CHECK(error_after([](auto& x) { x.value_size = -1; }) ==
        text("value_size is -1, must be from 0 to 16777216"));
  CHECK(error_after([](auto& x) {
          x.latent.key_value_rank = 8;
          x.source = omnibal::key_value_source::keys;
        }) == text("source must be own if the attention is latent"));
  CHECK(error_after([](auto& x) { x.other_parameters = -1; }) ==
        text("other_parameters is -1, must be from 0 to 16777216"));
}

TEST_CASE("wrong adapters are named") {
  auto const text = [](std::string const& rest) { return "omnibal::transformer: " + rest; };
  CHECK(error_after([](auto& x) { x.adapters.rank = 8; }) ==
        text("adapters.rank is 8, but training is not input_gradients"));
  CHECK(error_after([](auto& x) {
          x.adapters.rank = 8;
          x.training = omnibal::training_mode::forward_only;
        }) == text("adapters.rank is 8, but training is not input_gradients"));
  CHECK(error_after([](auto& x) {
          x.adapters.rank = -8;
          x.training = omnibal::training_mode::input_gradients;
        }) == text("adapters.rank is -8, must be from 0 to 16777216"));
}

TEST_CASE("wrong spans of documents are named") {
  using omnibal::span_kind;
  auto const text = [](std::string const& rest) { return "omnibal::transformer: " + rest; };
  transformer layer = good;
  layer.span = {span_kind::window, 3};
  auto const given = [&](omnibal::span_squares const& within) {
    micro_batch_work batch{.documents = {.count = 2, .tokens = 10, .squares = 16 + 36}};
    batch.documents.spans[0] = within;
    return error_of(layer, batch);
  };
  CHECK(given({{span_kind::window, 3}, 42}) == "no error");
  CHECK(given({}) == text("documents.spans has no squares for a window of 3 tokens; pass "
                          "attention_spans(model) to sequences_of"));
  CHECK(given({{span_kind::chunk, 3}, 42}) ==
        text("documents.spans has no squares for a window of 3 tokens; pass "
             "attention_spans(model) to sequences_of"));
  CHECK(given({{span_kind::window, 0}, 42}) ==
        text("documents.spans.span.tokens is 0, must be from 1 to 1099511627776"));
  CHECK(given({{span_kind::window, 3}, 9}) ==
        text("documents.spans.squares is 9, must be between the tokens, 10, and the squares, 52"));
  CHECK(given({{span_kind::window, 3}, 53}) ==
        text("documents.spans.squares is 53, must be between the tokens, 10, and the squares, 52"));
  layer.span = {span_kind::chunk, 4};
  CHECK(given({}) == text("documents.spans has no squares for a chunk of 4 tokens; pass "
                          "attention_spans(model) to sequences_of"));
  omnibal::vision_transformer tower{.hidden = 32, .heads = 8, .mlp = 24};
  tower.span = {span_kind::chunk, 4};
  CHECK(error_of(tower, {.images = {.count = 2, .tokens = 10, .squares = 16 + 36}}) ==
        "omnibal::vision_transformer: images.spans has no squares for a chunk of 4 tokens; pass "
        "attention_spans(model) to sequences_of");
}

TEST_CASE("wrong ranks and widths of experts are named") {
  auto const text = [](std::string const& rest) { return "omnibal::transformer: " + rest; };
  transformer layer = good;
  layer.experts = {.routed = 8, .active = 2, .mlp = 6};
  CHECK(error_of(layer, {}, {.tensor = 4, .expert_tensor = 2}) == "no error");
  CHECK(error_of(layer, {}, {.tensor = 4, .expert_tensor = 4}) ==
        text("experts.mlp is 6, must be a multiple of expert_tensor, which is 4"));
  CHECK(error_of(layer, {}, {.tensor = 4, .expert_tensor = 3}) ==
        text("tensor is 4, must be a multiple of expert_tensor, which is 3"));
  CHECK(error_of(layer, {}, {.tensor = 4, .expert_tensor = 8}) ==
        text("expert_tensor is 8, must be from 0 to 4"));
  CHECK(error_of(layer, {}, {.tensor = 4, .data = 3, .expert = 8, .expert_tensor = 1}) ==
        text("tensor * data * sequence is 12, must be a multiple of expert * expert_tensor, which "
             "is 8"));
  layer.experts.shared = 1;
  layer.experts.shared_mlp = 10;
  CHECK(error_of(layer, {}, {.tensor = 4, .expert_tensor = 1}) ==
        text("experts.shared * experts.shared_mlp is 10, must be a multiple of tensor, which is "
             "4"));
  layer.experts.shared_mlp = -1;
  CHECK(error_of(layer) == text("experts.shared_mlp is -1, must be from 0 to 16777216"));
  layer.experts.shared_mlp = 0;
  layer.experts.latent_width = -1;
  CHECK(error_of(layer) == text("experts.latent_width is -1, must be from 0 to 16777216"));
}

TEST_CASE("wrong bytes of FP8, heads and prediction layers are named") {
  CHECK(error_of(good, {}, {}, {.matrix_input = -1}) ==
        "omnibal::transformer: matrix_input bytes is -1, must be from 0 to 64");
  CHECK(error_of(good, {}, {}, {.matrix_copy = 65}) ==
        "omnibal::transformer: matrix_copy bytes is 65, must be from 0 to 64");
  CHECK(error_of(good, {}, {}, {.scale_block = -1}) ==
        "omnibal::transformer: scale_block is -1, must be from 0 to 16777216");
  CHECK(error_of(omnibal::language_head{.vocabulary = 9, .hidden = 32, .loss_chunk = -1}) ==
        "omnibal::language_head: loss_chunk is -1, must be from 0 to 1099511627776");
  omnibal::prediction_layer prediction{.layer = good};
  CHECK(error_of(prediction) ==
        "omnibal::prediction_layer: vocabulary is 0, must be from 1 to 16777216");
  prediction.vocabulary = 9;
  CHECK(error_of(prediction) == "no error");
  prediction.layer.heads = 12;
  CHECK(error_of(prediction) ==
        "omnibal::prediction_layer: hidden is 32, must be a multiple of heads, which is 12");
}
