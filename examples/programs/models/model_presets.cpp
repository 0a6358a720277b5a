// SPDX-License-Identifier: Apache-2.0
#include "model_file.hpp"

#include <omnibal/cost/models.hpp>

#include <utility>

namespace examples {

namespace {

using omnibal::internvit_6b;

/// A tower of plain layers on tiles of `image_size` with a class token.
omnibal::vision_model plain_tower(std::int64_t layers, std::int64_t image_size,
                                  omnibal::vision_transformer layer) {
  layer.image_size = image_size;
  layer.class_tokens = 1;
  return {.patches = {.hidden = layer.hidden,
                      .image_size = image_size,
                      .class_tokens = 1,
                      .positions = layer.tile_tokens()},
          .layers = layers,
          .layer = layer};
}

/// Four patches of a square become a token, as in InternVL-Chat.
model_description tower(std::string name, omnibal::vision_model const& vision) {
  model_description result;
  result.name = std::move(name);
  std::int64_t const patches = vision.layer.tile_tokens() - vision.layer.class_tokens;
  result.vision = {vision,
                   {.input = 4 * vision.layer.hidden,
                    .tile_tokens = patches / 4,
                    .patches_per_token = 4,
                    .has_norm = true}};
  return result;
}

model_description language(std::string name, omnibal::language_model const& model) {
  model_description result;
  result.name = std::move(name);
  result.language = model;
  return result;
}

omnibal::language_model dense(std::int64_t layers, omnibal::transformer const& layer,
                              std::int64_t vocabulary) {
  return {.input = {.vocabulary = vocabulary, .hidden = layer.hidden},
          .layers = layers,
          .layer = layer,
          .output = {.vocabulary = vocabulary, .hidden = layer.hidden}};
}

/// Images of their own size, here as tiles of 448 pixels; attention within windows is counted as
/// attention of all patches of a tile, frames of two images as one.
model_description qwen2_5_vl(std::string name, omnibal::language_model const& model) {
  omnibal::vision_model const vision{
      .patches = {.hidden = 1280, .image_size = 448, .channels = 6, .has_bias = false},
      .layers = 32,
      .layer = {.hidden = 1280,
                .heads = 16,
                .mlp = 3420,
                .image_size = 448,
                .feed_forward = omnibal::mlp_kind::gated,
                .norm = omnibal::norm_kind::rms}};
  model_description result;
  result.name = std::move(name);
  result.vision = {vision,
                   {.input = 5120,
                    .hidden = 5120,
                    .output = model.layer.hidden,
                    .tile_tokens = 256,
                    .patches_per_token = 4,
                    .has_norm = true,
                    .norm = omnibal::norm_kind::rms,
                    .norm_width = 1280}};
  result.language = model;
  return result;
}

/// What is not trained, and what is in front of all that is.
template <class Layer>
Layer frozen(Layer layer, omnibal::training_mode mode) {
  layer.training = mode;
  return layer;
}

/// Both ends of a language model as its layers are trained, tied.
omnibal::language_model frozen_language(std::int64_t layers, omnibal::transformer const& layer,
                                        std::int64_t vocabulary) {
  constexpr auto mode = omnibal::training_mode::input_gradients;
  auto model = dense(layers, frozen(layer, mode), vocabulary);
  model.input.training = mode;
  model.output.norm = layer.norm;
  model.output.weights = omnibal::head_weights::tied;
  model.output.training = mode;
  return model;
}

/// Layers of 128 numbers a head. A matrix for relative positions in each layer of the language
/// model counts as half its width in the feed-forward part. The tower stands in for NFNet-F6, a
/// convolution net: with its width, parameters and, at 320 pixels, multiplications.
model_description flamingo(std::string name, std::int64_t layers, std::int64_t width,
                           std::int64_t every) {
  constexpr std::int64_t tower_width = 1536;
  auto const tower = frozen(
      omnibal::vision_transformer{
          .hidden = tower_width, .heads = 12, .mlp = 6144, .image_size = 320, .patch_size = 20},
      omnibal::training_mode::forward_only);
  model_description result;
  result.name = std::move(name);
  result.vision = {
      .tower = omnibal::vision_model{.patches = {.hidden = tower_width,
                                                 .image_size = 320,
                                                 .patch_size = 20,
                                                 .positions = 256,
                                                 .training = tower.training},
                                     .layers = 15,
                                     .layer = tower},
      .connector = {.input = tower_width, .output = width, .tile_tokens = 64, .has_bias = false},
      .resampler =
          query_tower{.queries = 64,
                      .layers = 6,
                      .layer = {.hidden = tower_width,
                                .heads = 16,
                                .head_size = 128,
                                .mlp = 6144,
                                .feed_forward = omnibal::mlp_kind::plain,
                                .norm = omnibal::norm_kind::layer,
                                .cross = {tower_width, omnibal::cross_placement::instead_self},
                                .mask = omnibal::attention_mask::full}}};
  omnibal::transformer layer{.hidden = width,
                             .heads = width / 128,
                             .mlp = 4 * width,
                             .feed_forward = omnibal::mlp_kind::plain};
  result.cross = {.layer = layer, .every = every};
  result.cross->layer.cross = {width, omnibal::cross_placement::instead_self};
  layer.mlp += width / 2;
  result.language = frozen_language(layers, layer, 32000);
  return result;
}

/// The first 39 layers of EVA-CLIP-g, a Q-Former of BERT's size and OPT.
model_description blip2_opt(std::string name, std::int64_t width) {
  auto vision =
      plain_tower(39, 224,
                  frozen(omnibal::vision_transformer{.hidden = 1408, .heads = 16, .mlp = 6144},
                         omnibal::training_mode::forward_only));
  vision.patches.training = vision.layer.training;
  auto const with_biases = [](omnibal::transformer layer) {
    layer.feed_forward = omnibal::mlp_kind::plain;
    layer.norm = omnibal::norm_kind::layer;
    layer.qkv_bias = true;
    layer.output_bias = true;
    layer.mlp_bias = true;
    return layer;
  };
  model_description result;
  result.name = std::move(name);
  result.vision = {.tower = vision,
                   .connector = {.input = 768, .output = width, .tile_tokens = 32},
                   .resampler = query_tower{
                       .queries = 32,
                       .layers = 12,
                       .layer = with_biases({.hidden = 768,
                                             .heads = 12,
                                             .mlp = 3072,
                                             .cross = {1408, omnibal::cross_placement::after_self},
                                             .mask = omnibal::attention_mask::full}),
                       .cross_every = 2}};
  result.language =
      frozen_language(32, with_biases({.hidden = width, .heads = 32, .mlp = 4 * width}), 50272);
  result.language->input.positions = 2050;
  return result;
}

std::vector<model_description> all_models() {
  auto const qwen2_5_7b = dense(
      28, {.hidden = 3584, .heads = 28, .kv_heads = 4, .mlp = 18944, .qkv_bias = true}, 152064);
  auto const qwen2_5_72b = dense(
      80, {.hidden = 8192, .heads = 64, .kv_heads = 8, .mlp = 29568, .qkv_bias = true}, 152064);
  return {
      {"6+20B", omnibal::internvl_6_20b},
      {"6+34B", omnibal::internvl_6_34b},
      qwen2_5_vl("qwen2.5-vl-7b", qwen2_5_7b),
      qwen2_5_vl("qwen2.5-vl-72b", qwen2_5_72b),
      flamingo("flamingo-3b", 24, 2048, 1),
      flamingo("flamingo-80b", 80, 8192, 7),
      blip2_opt("blip2-opt-2.7b", 2560),
      blip2_opt("blip2-opt-6.7b", 4096),
      tower("internvit-6b", internvit_6b),
      tower("internvit-300m",
            plain_tower(24, 448, {.hidden = 1024, .heads = 16, .mlp = 4096, .layer_scale = true})),
      tower("clip-l-336", plain_tower(24, 336, {.hidden = 1024, .heads = 16, .mlp = 4096})),
      tower("eva-clip-g", plain_tower(40, 448, {.hidden = 1408, .heads = 16, .mlp = 6144})),
      tower("eva-clip-e", plain_tower(64, 448, {.hidden = 1792, .heads = 16, .mlp = 15360})),
      tower("eva-clip-8b", plain_tower(32, 448, {.hidden = 4096, .heads = 32, .mlp = 20480})),
      tower("eva-clip-18b", plain_tower(48, 448, {.hidden = 5120, .heads = 40, .mlp = 25600})),
      language("internlm2-7b",
               dense(32, {.hidden = 4096, .heads = 32, .kv_heads = 8, .mlp = 14336}, 92544)),
      language("internlm2-20b", omnibal::internlm2_20b),
      language("llama3-8b", omnibal::llama3_8b),
      language("llama3-70b", omnibal::llama3_70b),
      language("yi-34b", omnibal::yi_34b),
      language(
          "qwen1.5-110b",
          dense(80, {.hidden = 8192, .heads = 64, .kv_heads = 8, .mlp = 49152, .qkv_bias = true},
                152064)),
      language("qwen2.5-7b", qwen2_5_7b),
      language("qwen2.5-72b", qwen2_5_72b),
      language("deepseek-v2", omnibal::deepseek_v2)};
}

}  // namespace

std::vector<model_description> const& known_models() {
  static std::vector<model_description> const models = all_models();
  return models;
}

}  // namespace examples
