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
                    .norm = omnibal::norm_kind::rms}};
  result.language = model;
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
