// SPDX-License-Identifier: Apache-2.0
// Connectors of audio towers with layers of their own.
#include "config_fields.hpp"
#include "pair_connectors.hpp"
#include "public_parts.hpp"
#include "text_draft.hpp"

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace examples {

/// A Q-Former makes a few tokens of each window, and a matrix leads to the language model.
void connect_granite_speech(json_fields const& given, std::int64_t width, audio_part& audio) {
  auto const object = given.object("projector_config");
  std::string const family = stated_family(object, "blip_2_qformer");
  if (family != "blip_2_qformer") fail_family(object, family);
  config_fields const fields(object, nlohmann::json::parse(R"({"hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "cross_attention_frequency": 2, "encoder_hidden_size": 1408})"),
                             {});
  std::int64_t const hidden = fields.integer("hidden_size");
  check_activation(fields, "hidden_act");
  if (fields.flag("use_qformer_text_input")) {
    fields.refuse("use_qformer_text_input", "but a second feed-forward part is not read");
  }
  std::int64_t const seen = fields.integer("encoder_hidden_size");
  if (seen != audio.tower.layer.hidden) {
    fields.refuse("encoder_hidden_size",
                  "must be the width of the tower, " + std::to_string(audio.tower.layer.hidden));
  }
  std::int64_t const rate = given.integer_or("downsample_rate", 5, 1, max_of_model);
  std::int64_t const window = given.integer_or("window_size", 15, 1, max_of_model);
  if (window % rate != 0) {
    given.refuse("window_size", "must be a multiple of downsample_rate, " + std::to_string(rate));
  }
  audio.resampler = {.queries = window / rate,
                     .window = window,
                     .layers = fields.integer("num_hidden_layers"),
                     .layer = {.hidden = hidden,
                               .heads = fields.integer("num_attention_heads"),
                               .mlp = fields.integer("intermediate_size"),
                               .feed_forward = omnibal::mlp_kind::plain,
                               .norm = omnibal::norm_kind::layer,
                               .placement = omnibal::norm_placement::after,
                               .cross = {.context_width = seen},
                               .mask = omnibal::attention_mask::full,
                               .qkv_bias = true,
                               .output_bias = true,
                               .mlp_bias = true},
                     .cross_every = fields.integer("cross_attention_frequency")};
  fields.skip({"vocab_size"});
  field_rules rules{
      .ignored = {{"dropout", {"hidden_dropout_prob", "attention_probs_dropout_prob"}}}};
  rules.add(common_rules());
  fields.check_all_read("blip_2_qformer", rules);
  // The queries, and the norm before the layers.
  audio.connectors.push_back({1,
                              {.input = hidden,
                               .output = width,
                               .patches_per_token = rate,
                               .other_parameters = (window / rate + 2) * hidden,
                               .source = omnibal::projector_source::clips}});
}

}  // namespace examples
