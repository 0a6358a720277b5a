// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Models of several kinds of layers, and some published models.

#include <omnibal/cost/audio_stem.hpp>
#include <omnibal/cost/audio_transformer.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// `count` consecutive equal layers.
struct layer_run {
  std::int64_t count = 0;
  transformer layer{};
};

/// The place of the layers of multi-token prediction in the model.
enum class prediction_order {
  behind_head,  ///< whole layers behind the head
  /// Layers before the head; the head computes all losses, as in Megatron-LM. A separate stage may
  /// run the layers.
  before_head,
};

/// A language model whose layers may differ in any order. Examples are linear attention in three of
/// four layers, windows in five of six layers, and dense layers among sparse layers. The model may
/// have layers of multi-token prediction.
struct mixed_language_model {
  embedding input{};
  /// The layers from the first to the last.
  std::vector<layer_run> runs{};
  language_head output{};
  std::int64_t prediction_layers = 0;
  prediction_layer prediction{};
  prediction_order order = prediction_order::behind_head;

  /// Returns the number of layers between the embedding and the head, without multi-token
  /// prediction.
  [[nodiscard]] std::int64_t layers() const {
    std::int64_t sum = 0;
    for (layer_run const& run : runs) sum += run.count;
    return sum;
  }

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(input, std::int64_t{1});
    for (layer_run const& run : runs) visit(run.layer, run.count);
    visit_output(visit);
  }

  /// Visits the head and the layers of multi-token prediction, in their order.
  template <class Visit>
  void visit_output(Visit&& visit) const {
    if (prediction_layers == 0) return visit(output, std::int64_t{1});
    if (order == prediction_order::behind_head) {
      visit(output, std::int64_t{1});
      visit(prediction, prediction_layers);
      return;
    }
    prediction_layer before = prediction;
    before.part = prediction_part::before_loss;
    visit(before, prediction_layers);
    language_head head = output;
    head.predictions = {.count = prediction_layers,
                        .norm = prediction.layer.norm,
                        .loss_chunk = prediction.loss_chunk,
                        .owns_matrices = prediction.owns_embeddings};
    visit(head, std::int64_t{1});
  }
};

/// A language model of an embedding, layers of up to two kinds, and a head.
struct language_model {
  embedding input{};
  /// The number of layers of the first kind, such as the dense layers of a mixture of experts. They
  /// precede the others.
  std::int64_t first_layers = 0;
  transformer first_layer{};
  std::int64_t layers = 0;
  transformer layer{};
  language_head output{};

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(input, std::int64_t{1});
    if (first_layers != 0) visit(first_layer, first_layers);
    visit(layer, layers);
    visit(output, std::int64_t{1});
  }

  /// Returns the same model as a list of runs.
  [[nodiscard]] operator mixed_language_model() const {
    mixed_language_model result{.input = input, .output = output};
    if (first_layers != 0) result.runs.push_back({first_layers, first_layer});
    if (layers != 0) result.runs.push_back({layers, layer});
    return result;
  }
};

/// `count` consecutive equal layers of a vision tower.
struct vision_run {
  std::int64_t count = 0;
  vision_transformer layer{};
};

/// A vision tower whose layers differ, such as windows in seven of eight layers (Qwen2.5-VL).
struct mixed_vision_model {
  patch_embedding patches{};
  /// The layers from the first to the last.
  std::vector<vision_run> runs{};
  bool has_last_norm = false;

  /// Returns the number of layers.
  [[nodiscard]] std::int64_t layers() const {
    std::int64_t sum = 0;
    for (vision_run const& run : runs) sum += run.count;
    return sum;
  }

  /// Returns the first layer; all layers have its tiles, width and norms. Precondition: the tower
  /// has layers.
  [[nodiscard]] vision_transformer const& layer() const { return runs.front().layer; }

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(patches, std::int64_t{1});
    for (vision_run const& run : runs) visit(run.layer, run.count);
    if (has_last_norm) visit(last_norm(), std::int64_t{1});
  }

  /// Returns the norm after the layers, with the same configuration as the layers.
  [[nodiscard]] tower_norm last_norm() const {
    return {.hidden = layer().hidden,
            .image_size = layer().image_size,
            .patch_size = layer().patch_size,
            .class_tokens = layer().class_tokens,
            .norm = layer().norm,
            .training = layer().training};
  }
};

/// A vision tower of a patch embedding, equal layers and optionally a norm after the layers.
struct vision_model {
  patch_embedding patches{};
  std::int64_t layers = 0;
  vision_transformer layer{};
  bool has_last_norm = false;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(patches, std::int64_t{1});
    visit(layer, layers);
    if (has_last_norm) visit(last_norm(), std::int64_t{1});
  }

  /// Returns the norm after the layers, with their configuration.
  [[nodiscard]] constexpr tower_norm last_norm() const {
    return {.hidden = layer.hidden,
            .image_size = layer.image_size,
            .patch_size = layer.patch_size,
            .class_tokens = layer.class_tokens,
            .norm = layer.norm,
            .training = layer.training};
  }

  /// Returns the same tower as a list of runs.
  [[nodiscard]] operator mixed_vision_model() const {
    return {.patches = patches, .runs = {{layers, layer}}, .has_last_norm = has_last_norm};
  }
};

/// An audio tower of convolutions, equal layers and optionally a norm after the layers.
struct audio_model {
  audio_stem stem{};
  std::int64_t layers = 0;
  audio_transformer layer{};
  bool has_last_norm = false;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(stem, std::int64_t{1});
    visit(layer, layers);
    if (has_last_norm) visit(last_norm(), std::int64_t{1});
  }

  /// Returns the norm after the layers, with their configuration.
  [[nodiscard]] constexpr audio_norm last_norm() const {
    return {.hidden = layer.hidden, .norm = layer.norm, .training = layer.training};
  }
};

/// A vision tower, a projector and a language model, in the order of the pipeline.
struct vision_language_model {
  vision_model vision{};
  projector connector{};
  language_model language{};

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    vision.for_each_layer(visit);
    visit(connector, std::int64_t{1});
    language.for_each_layer(visit);
  }
};

/// InternViT-6B-448px as in InternVL-Chat V1.2 and later: the first 45 of 48 layers, and 1025
/// tokens per tile. The model has 5.54 billion parameters; with all 48 layers and tiles of 224
/// pixels it has 5.9 billion. Pad its 25 heads for tensor parallelism: with two ranks, use `heads =
/// 26, head_size = 128`. Source: huggingface.co/OpenGVLab/InternViT-6B-448px-V1-5, config.json.
inline constexpr vision_model internvit_6b{
    .patches = {.hidden = 3200, .image_size = 448, .class_tokens = 1, .positions = 1025},
    .layers = 45,
    .layer = {.hidden = 3200,
              .heads = 25,
              .mlp = 12800,
              .image_size = 448,
              .class_tokens = 1,
              .norm = norm_kind::rms,
              .head_norm = query_key_norm::whole_width,
              .qkv_bias = false,
              .layer_scale = true}};

namespace detail {

/// Returns a model of equal dense layers with grouped keys and values. Embedding and head have
/// separate matrices.
[[nodiscard]] constexpr language_model dense_model(std::int64_t layers, transformer const& layer,
                                                   std::int64_t vocabulary) {
  return {.input = {.vocabulary = vocabulary, .hidden = layer.hidden},
          .layers = layers,
          .layer = layer,
          .output = {.vocabulary = vocabulary, .hidden = layer.hidden}};
}

/// Returns the attention of DeepSeek-V2 without a feed-forward part.
[[nodiscard]] constexpr transformer deepseek_v2_attention() {
  return {
      .hidden = 5120,
      .heads = 128,
      .head_size = 128,
      .latent = {.key_value_rank = 512, .query_rank = 1536, .rope_size = 64, .value_size = 128}};
}

[[nodiscard]] constexpr language_model deepseek_v2_model() {
  language_model model = dense_model(59, deepseek_v2_attention(), 102400);
  model.layer.experts = {.routed = 160, .active = 6, .shared = 2, .mlp = 1536};
  model.first_layers = 1;
  model.first_layer = deepseek_v2_attention();
  model.first_layer.mlp = 12288;
  return model;
}

/// Returns the projector of InternVL-Chat, which joins the four patches of a square into one token:
/// 256 tokens for each tile.
[[nodiscard]] constexpr projector internvl_projector(std::int64_t output) {
  return {.input = 12800,
          .hidden = output,
          .output = output,
          .tile_tokens = 256,
          .patches_per_token = 4,
          .has_norm = true};
}

}  // namespace detail

/// InternLM2-20B with the vocabulary of InternVL-Chat, with 19.86 billion parameters. Source:
/// huggingface.co/OpenGVLab/InternVL-Chat-V1-5, config.json.
inline constexpr language_model internlm2_20b =
    detail::dense_model(48, {.hidden = 6144, .heads = 48, .kv_heads = 8, .mlp = 16384}, 92553);

/// Yi-34B with 34.39 billion parameters. Source: huggingface.co/01-ai/Yi-34B, config.json.
inline constexpr language_model yi_34b =
    detail::dense_model(60, {.hidden = 7168, .heads = 56, .kv_heads = 8, .mlp = 20480}, 64000);

/// Llama 3 8B with 8,030,261,248 parameters. Source: huggingface.co/meta-llama/Meta-Llama-3-8B,
/// config.json; Grattafiori et al., "The Llama 3 herd of models", 2024 (arXiv 2407.21783).
inline constexpr language_model llama3_8b =
    detail::dense_model(32, {.hidden = 4096, .heads = 32, .kv_heads = 8, .mlp = 14336}, 128256);

/// Llama 3 70B with 70,553,706,496 parameters. Source: huggingface.co/meta-llama/Meta-Llama-3-70B,
/// config.json.
inline constexpr language_model llama3_70b =
    detail::dense_model(80, {.hidden = 8192, .heads = 64, .kv_heads = 8, .mlp = 28672}, 128256);

/// DeepSeek-V2 with 236 billion parameters, 21 billion of them active. Source: DeepSeek-AI,
/// "DeepSeek-V2", 2024 (arXiv 2405.04434); huggingface.co/deepseek-ai/DeepSeek-V2, config.json.
inline constexpr language_model deepseek_v2 = detail::deepseek_v2_model();

/// InternVL-Chat 6+20B as in OmniBal, with InternViT-6B and InternLM2-20B.
inline constexpr vision_language_model internvl_6_20b{.vision = internvit_6b,
                                                      .connector = detail::internvl_projector(6144),
                                                      .language = internlm2_20b};

/// InternVL-Chat 6+34B as in OmniBal, with InternViT-6B and Yi-34B.
inline constexpr vision_language_model internvl_6_34b{
    .vision = internvit_6b, .connector = detail::internvl_projector(7168), .language = yi_34b};

}  // namespace omnibal::inline v0
