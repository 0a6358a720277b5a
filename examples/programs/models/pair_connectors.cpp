// SPDX-License-Identifier: Apache-2.0
#include "pair_connectors.hpp"

#include "public_parts.hpp"
#include "tower_connector.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::norm_kind;

/// Layers behind the one whose output is taken do not run. The norm behind them runs only if the
/// class takes the output of the whole tower.
void keep_layers(pair_draft& draft, std::int64_t kept, bool keeps_norm) {
  auto& tower = draft.vision.tower;
  std::int64_t const all = tower.layers();
  std::int64_t const before = omnibal::count_parameters(tower).total;
  std::int64_t dropped = all - kept;
  while (dropped > 0) {
    omnibal::vision_run& last = tower.runs.back();
    std::int64_t const here = std::min(dropped, last.count);
    last.count -= here;
    dropped -= here;
    // The first run stays: it has the sizes of the tower.
    if (last.count == 0 && tower.runs.size() > 1) tower.runs.pop_back();
  }
  tower.has_last_norm &= keeps_norm;
  draft.vision.idle_parameters += before - omnibal::count_parameters(tower).total;
}

void take_layer(pair_draft& draft, char const* name, std::int64_t otherwise, bool keeps_norm) {
  std::int64_t const all = draft.vision.tower.layers();
  std::int64_t const taken =
      draft.given.has(name) ? draft.given.integer(name, -all, all) : otherwise;
  keep_layers(draft, taken < 0 ? all + 1 + taken : taken, keeps_norm && taken == -1);
}

/// A token of `side * side` patches goes through the connector.
omnibal::projector connector_of_side(pair_draft const& draft, json_fields const& given,
                                     std::int64_t side) {
  auto result = connector_of(given, draft.vision.tower, side);
  result.output = draft.width;
  return result;
}

/// The square of patches that becomes one token, each patch at a ratio.
std::int64_t side_of_ratio(pair_draft const& draft) {
  double const ratio =
      draft.given.has("downsample_ratio") ? draft.given.number("downsample_ratio", 0.01, 1) : 0.5;
  return std::llround(1 / ratio);
}

void check_sequence(pair_draft const& draft) {
  std::int64_t const tokens = draft.vision.connector.tile_tokens;
  if (!draft.given.has("image_seq_length") ||
      draft.given.integer("image_seq_length", 1, max_of_model) == tokens) {
    return;
  }
  draft.given.refuse("image_seq_length",
                     "but a tile of the tower becomes " + std::to_string(tokens) + " tokens");
}

void connect_internvl(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, side_of_ratio(draft));
  connector.hidden = draft.width;
  connector.has_norm = true;
  check_activation(draft.given, "projector_hidden_act");
  check_sequence(draft);
}

void connect_llava_at(pair_draft& draft, std::int64_t layer) {
  take_layer(draft, "vision_feature_layer", layer, false);
  bool const takes_class = draft.given.has("vision_feature_select_strategy") &&
                           draft.given.text("vision_feature_select_strategy") == "full" &&
                           draft.vision.tower.layer().class_tokens != 0;
  if (takes_class) {
    draft.given.refuse("vision_feature_select_strategy",
                       "but class tokens in documents are not modeled");
  }
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, 1);
  connector.hidden = draft.width;
  connector.has_norm = false;
  connector.has_bias = draft.given.flag_or("multimodal_projector_bias", true);
  check_activation(draft.given, "projector_hidden_act");
}

}  // namespace

void connect_internvl_class(pair_draft& draft) {
  take_layer(draft, "vision_feature_layer", -1, true);
  connect_internvl(draft);
}

void connect_internvl_chat(pair_draft& draft) {
  if (draft.given.has("force_image_size")) {
    std::int64_t const size = draft.given.integer("force_image_size", 1, max_of_model);
    for (omnibal::vision_run& run : draft.vision.tower.runs) run.layer.image_size = size;
    complete_patches(draft.given, draft.vision.tower);
  }
  take_layer(draft, "select_layer", -1, true);
  connect_internvl(draft);
}

void connect_llava(pair_draft& draft) {
  connect_llava_at(draft, -2);
  check_sequence(draft);
}

/// Tiles of several sizes: their number is given. A learned token ends each line of an image.
void connect_llava_next(pair_draft& draft) {
  connect_llava_at(draft, -2);
  draft.vision.connector.other_parameters = draft.width;
}

void connect_llava_onevision(pair_draft& draft) {
  connect_llava_at(draft, -1);
  draft.vision.connector.other_parameters = draft.width;
}

namespace {

/// The patches of a token become one by a matrix before the connector, behind a norm.
void connect_merged(pair_draft& draft, bool has_bias) {
  std::int64_t const side = draft.given.integer_or("spatial_merge_size", 2, 1, max_of_model);
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, side);
  std::int64_t const hidden = draft.vision.tower.layer().hidden;
  auto merger = connector;
  merger.output = hidden;
  merger.has_norm = true;
  merger.norm = norm_kind::rms;
  merger.norm_width = hidden;
  merger.has_bias = false;
  draft.vision.further.push_back({1, merger});
  connector.input = hidden;
  connector.hidden = draft.width;
  connector.has_norm = false;
  connector.has_bias = has_bias;
}

/// Two matrices with a gate between them, which halves the width.
void connect_gated(pair_draft& draft, std::int64_t otherwise, bool has_norm) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given,
                                draft.given.integer_or("downsample_factor", 2, 1, max_of_model));
  std::int64_t const width =
      draft.given.integer_or("alignment_intermediate_size", otherwise, 1, max_of_model);
  if (width % 2 != 0) draft.given.refuse("alignment_intermediate_size", "must be even");
  connector.hidden = width / 2;
  connector.feed_forward = omnibal::mlp_kind::gated;
  connector.has_norm = has_norm;
}

}  // namespace

void connect_mistral3(pair_draft& draft) {
  take_layer(draft, "vision_feature_layer", -1, false);
  connect_merged(draft, draft.given.flag_or("multimodal_projector_bias", false));
  check_activation(draft.given, "projector_hidden_act");
}

void connect_lighton(pair_draft& draft) { connect_merged(draft, false); }

void connect_aya(pair_draft& draft) {
  take_layer(draft, "vision_feature_layer", -1, false);
  connect_gated(draft, draft.width, true);
}

void connect_cohere2(pair_draft& draft) { connect_gated(draft, 36864, false); }

/// The outputs of several layers stand side by side. The layers behind the last of them do not run.
void connect_vipllava(pair_draft& draft) {
  std::int64_t const all = draft.vision.tower.layers();
  std::int64_t outputs = 5;
  std::int64_t last = all - 1;
  if (draft.given.has("vision_feature_layer")) {
    if (draft.given.at("vision_feature_layer").is_array()) {
      outputs = 0;
      last = 0;
      for (auto const& element : draft.given.at("vision_feature_layer")) {
        std::int64_t const l = element.is_number_integer() ? element.get<std::int64_t>() : all + 1;
        if (l < -all || l > all) {
          draft.given.refuse(
              "vision_feature_layer",
              "must have layers from -" + std::to_string(all) + " to " + std::to_string(all));
        }
        last = std::max(last, l < 0 ? all + 1 + l : l);
        ++outputs;
      }
    } else {
      outputs = 1;
      last = draft.given.integer("vision_feature_layer", -all, all);
      if (last < 0) last += all + 1;
    }
  }
  keep_layers(draft, last, false);
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, 1);
  connector.input *= outputs;
  connector.hidden = draft.width;
  connector.has_norm = true;
  check_activation(draft.given, "projector_hidden_act");
}

/// Tokens are means of squares of patches.
void connect_gemma3(pair_draft& draft) {
  std::int64_t const tokens = draft.given.integer_or("mm_tokens_per_image", 256, 1, max_of_model);
  auto const& layer = draft.vision.tower.layer();
  auto const side = std::llround(std::sqrt(static_cast<double>(tokens)));
  std::int64_t const patches = layer.image_size / layer.patch_size;
  if (side * side != tokens || patches % side != 0) {
    draft.given.refuse("mm_tokens_per_image", "must be the square of a divisor of the " +
                                                  std::to_string(patches) +
                                                  " patches on the side of a tile");
  }
  draft.vision.connector = {.input = layer.hidden,
                            .output = draft.width,
                            .tile_tokens = tokens,
                            .patches_per_token = patches / side * (patches / side),
                            .has_norm = true,
                            .norm = norm_kind::rms,
                            .has_bias = false};
}

void connect_paligemma(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, 1);
  connector.has_norm = false;
  connector.output = draft.given.integer_or("projection_dim", 2048, 1, max_of_model);
}

void connect_idefics(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given,
                                draft.given.integer_or("scale_factor", 2, 1, max_of_model));
  connector.has_norm = false;
  connector.has_bias = false;
}

void connect_lfm2(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given,
                                draft.given.integer_or("downsample_factor", 2, 1, max_of_model));
  connector.hidden = draft.given.integer_or("projector_hidden_size", 2560, 1, max_of_model);
  connector.has_norm = draft.given.flag_or("projector_use_layernorm", true);
  connector.has_bias = draft.given.flag_or("projector_bias", true);
  check_activation(draft.given, "projector_hidden_act");
}

/// The table of the visual vocabulary has the width that stands beside it.
void connect_ovis2(pair_draft& draft) {
  draft.vision.connector.output = draft.given.integer_or("hidden_size", 1536, 1, max_of_model);
}

void connect_llama4(pair_draft& draft) { draft.vision.connector.output = draft.width; }

void connect_mllama(pair_draft& draft) {
  draft.vision.connector.output = draft.width;
  if (!draft.given.flag_or("tie_word_embeddings", false)) return;
  draft.given.refuse("tie_word_embeddings",
                     "but the class has 8 more embeddings than logits, and ties none");
}

void connect_step(pair_draft& draft) {
  draft.vision.connector.output = draft.width;
  draft.vision.connector.has_bias = draft.given.flag_or("projector_bias", false);
}

void connect_kimi(pair_draft& draft) {
  draft.vision.connector.output = draft.width;
  draft.vision.connector.norm_width =
      draft.given.integer_or("projection_hidden_size", 1152, 1, max_of_model);
  check_activation(draft.given, "projection_hidden_act");
}

/// Two matrices for each patch, then two for the patches of a token.
void connect_minimax(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  auto const hidden = draft.given.has("projector_hidden_size")
                          ? draft.given.integer("projector_hidden_size", 1, max_of_model)
                          : draft.width;
  std::int64_t const patches = connector.patches_per_token;
  draft.vision.further.push_back({1,
                                  {.input = draft.vision.tower.layer().hidden,
                                   .hidden = hidden,
                                   .output = draft.width,
                                   .tile_tokens = draft.patches_of_tile()}});
  connector.input = patches * draft.width;
  connector.hidden = draft.width;
  connector.output = draft.width;
  check_activation(draft.given, "projector_hidden_act");
}

/// Versions of Qwen that train on the width of another language model are no models.
void connect_qwen2(pair_draft& draft) {
  if (draft.vision.connector.output == draft.width) return;
  json_fields const vision = draft.given.object("vision_config");
  char const* const name = vision.has("out_hidden_size") ? "out_hidden_size" : "hidden_size";
  if (!vision.has(name)) return;
  vision.refuse(name, "must be the width of the language model, " + std::to_string(draft.width));
}

}  // namespace examples
