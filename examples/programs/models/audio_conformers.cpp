// SPDX-License-Identifier: Apache-2.0
// Audio towers with a convolution in each layer: Conformers.
#include "audio_families.hpp"
#include "text_draft.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::norm_kind;
using omnibal::projector;
using omnibal::projector_source;
using omnibal::relative_positions;

/// Convolutions over time and bands, each of which halves both, and a matrix of the bands that are
/// left. All but the first work on each channel, with a product of the channels behind them.
omnibal::audio_stem halving_stem(std::int64_t count, std::int64_t channels, std::int64_t bands,
                                 std::int64_t hidden, std::int64_t kernel = 3,
                                 std::int64_t stride = 2) {
  omnibal::audio_stem stem{};
  std::size_t at = 0;
  std::int64_t const area = kernel * kernel;
  stem.convolutions[at++] = {
      .inputs = 1, .outputs = channels, .kernel = area, .stride = stride * stride};
  for (std::int64_t i = 1; i < count; ++i) {
    stem.convolutions[at++] = {.inputs = channels,
                               .outputs = channels,
                               .kernel = area,
                               .stride = stride * stride,
                               .has_activation = false,
                               .groups = channels};
    stem.convolutions[at++] = {.inputs = channels, .outputs = channels};
  }
  stem.convolutions[at] = {.inputs = channels,
                           .outputs = hidden,
                           .kernel = bands,
                           .stride = bands,
                           .has_activation = false};
  return stem;
}

/// The number of convolutions that reduce the frames by a factor.
std::int64_t halvings(config_fields const& fields, std::string_view name) {
  std::int64_t const factor = fields.integer(name);
  std::int64_t count = 0;
  while ((std::int64_t{1} << count) < factor) ++count;
  // More do not fit into a stem.
  if ((std::int64_t{1} << count) != factor || count < 1 || count > 3) {
    fields.refuse(name, "must be 2, 4 or 8");
  }
  return count;
}

void check_equal(config_fields const& fields, std::string_view name, std::int64_t wanted) {
  if (fields.integer(name) == wanted) return;
  fields.refuse(name, "but only " + std::to_string(wanted) + " is read");
}

/// Phi-4 multimodal: chunks of 500 tokens, and a number for each distance that all layers share.
void read_phi4(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  std::int64_t const hidden = fields.integer("hidden_size");
  std::int64_t const heads = fields.integer("num_attention_heads");
  for (char const* const name :
       {"activation", "conv_activation", "conv_glu_type", "nemo_activation"}) {
    check_activation(fields, name);
  }
  check_equal(fields, "ext_pw_out_channel", hidden);
  check_equal(fields, "depthwise_separable_out_channel", hidden);
  check_equal(fields, "depthwise_multiplier", 1);
  if (fields.at("chunk_size") != -1) {
    fields.refuse("chunk_size", "but masks of chunks are not read; -1 is");
  }
  fields.skip({"left_chunk", "feature_layer", "nemo_final_size", "audio_token_id", "dropout_rate"});
  std::int64_t const count = halvings(fields, "time_reduction");
  std::int64_t bands = fields.integer("input_size");
  for (std::int64_t i = 0; i != count; ++i) bands = (bands + 1) / 2;
  constexpr std::int64_t max_tokens = 500;
  draft.tower = {.stem = halving_stem(count, fields.integer("nemo_conv_channels"), bands, hidden),
                 .layers = fields.integer("num_blocks"),
                 .layer = {.hidden = hidden,
                           .heads = heads,
                           .mlp = fields.integer("intermediate_size"),
                           .feed_forward = omnibal::mlp_kind::gated,
                           .span = {omnibal::span_kind::chunk, max_tokens},
                           // Biases of the gated product.
                           .other_parameters = 2 * hidden,
                           .conformer = {.kernel = fields.integer("kernel_size"),
                                         .kernel_bias = true,
                                         .has_norm = false,
                                         .is_separable = true}}};
  std::int64_t const sides = fields.flag("bias_symmetric") ? 1 : 2;
  draft.tower.stem.other_parameters = sides * fields.integer("bias_max_distance") * heads;
  std::int64_t const rate = fields.integer("downsample_rate");
  draft.connectors.push_back({1,
                              {.input = rate * hidden,
                               .hidden = -1,
                               .patches_per_token = rate,
                               .source = projector_source::clips}});
  draft.has_spare_connector = true;
}

/// The Conformer of Gemma 3n and Gemma 4: norms before and behind, chunks that see a fixed number
/// of tokens.
omnibal::audio_transformer universal_layer(std::int64_t hidden, std::int64_t heads,
                                           std::int64_t kernel) {
  return {.hidden = hidden,
          .heads = heads,
          .mlp = 4 * hidden,
          .norm = norm_kind::rms,
          .kernel = omnibal::attention_kernel::unfused,
          .qkv_bias = false,
          .output_bias = false,
          .mlp_bias = false,
          // A scale of each number of a query.
          .other_parameters = hidden / heads,
          .conformer = {.kernel = kernel,
                        .has_bias = false,
                        .norm = norm_kind::rms,
                        .distances = relative_positions::projected},
          .placement = omnibal::norm_placement::both};
}

void read_chunks(config_fields const& fields, std::string const& prefix,
                 omnibal::audio_transformer& layer) {
  std::int64_t const before = fields.integer(prefix + "attention_context_left") - 1;
  std::int64_t const behind = fields.integer(prefix + "attention_context_right", 0);
  std::int64_t const chunk = fields.integer(prefix + "attention_chunk_size");
  layer.conformer.positions = before + behind + 1;
  layer.conformer.seen_keys = chunk + before + behind;
}

/// Two convolutions with norms that have weights only, and a matrix without a bias.
omnibal::audio_stem universal_stem(std::int64_t first, std::int64_t second, std::int64_t bands,
                                   std::int64_t hidden) {
  omnibal::stem_convolution one{.inputs = 1,
                                .outputs = first,
                                .kernel = 9,
                                .stride = 4,
                                .has_bias = false,
                                .has_norm = true,
                                .norm = norm_kind::rms};
  omnibal::stem_convolution two = one;
  two.inputs = first;
  two.outputs = second;
  return {.convolutions = {{one,
                            two,
                            {.inputs = second,
                             .outputs = hidden,
                             .kernel = bands,
                             .stride = bands,
                             .has_bias = false,
                             .has_activation = false}}}};
}

void read_gemma3n(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  std::int64_t const hidden = fields.integer("hidden_size");
  auto const channels = fields.integers("sscp_conv_channel_size");
  if (channels.size() != 2) fields.refuse("sscp_conv_channel_size", "must have two numbers");
  for (auto const& [name, side] :
       {std::pair{"sscp_conv_kernel_size", 3}, std::pair{"sscp_conv_stride_size", 2}}) {
    if (fields.at(name) != nlohmann::json{{side, side}, {side, side}}) {
      fields.refuse(name, "but only squares of " + std::to_string(side) + " are read");
    }
  }
  std::int64_t bands = fields.integer("input_feat_size");
  for (int i = 0; i != 2; ++i) bands = (bands - 1) / 2 + 1;
  draft.tower = {.stem = universal_stem(channels[0], channels[1], bands, hidden),
                 .layers = fields.integer("conf_num_hidden_layers"),
                 .layer = universal_layer(hidden, fields.integer("conf_num_attention_heads"),
                                          fields.integer("conf_conv_kernel_size"))};
  read_chunks(fields, "conf_", draft.tower.layer);
  fields.skip({"gradient_clipping", "conf_attention_logit_cap", "conf_residual_weight",
               "sscp_conv_group_norm_eps", "vocab_offset"});
  // Embeddings of tokens of sound and their norm belong to the connector.
  draft.connectors.push_back({1,
                              {.input = hidden,
                               .patches_per_token = fields.integer("conf_reduction_factor"),
                               .has_norm = true,
                               .norm = norm_kind::rms,
                               .has_bias = false,
                               .has_output_norm = true,
                               .output_norm = norm_kind::unweighted,
                               .other_parameters = (fields.integer("vocab_size") + 1) * hidden,
                               .source = projector_source::clips}});
}

void read_gemma4(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  std::int64_t const hidden = fields.integer("hidden_size");
  check_activation(fields, "hidden_act");
  auto const channels = fields.integers("subsampling_conv_channels");
  if (channels.size() != 2) fields.refuse("subsampling_conv_channels", "must have two numbers");
  draft.tower = {.stem = universal_stem(channels[0], channels[1], channels[0] / 4, hidden),
                 .layers = fields.integer("num_hidden_layers"),
                 .layer = universal_layer(hidden, fields.integer("num_attention_heads"),
                                          fields.integer("conv_kernel_size"))};
  read_chunks(fields, "", draft.tower.layer);
  fields.skip({"residual_weight", "attention_logit_cap", "attention_invalid_logits_value",
               "use_clipped_linears", "gradient_clipping"});
  std::int64_t const outputs = fields.integer("output_proj_dims");
  draft.connectors.push_back(
      {1, {.input = hidden, .output = outputs, .source = projector_source::clips}});
  draft.connectors.push_back({1,
                              {.input = outputs,
                               .has_norm = true,
                               .norm = norm_kind::unweighted,
                               .has_bias = false,
                               .source = projector_source::clips}});
}

/// Parakeet, the encoder of FastConformer models.
void read_parakeet(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  std::int64_t const hidden = fields.integer("hidden_size");
  std::int64_t const heads = fields.integer("num_attention_heads");
  check_activation(fields, "hidden_act");
  if (fields.integer_or("num_key_value_heads", heads, 1) != heads) {
    fields.refuse("num_key_value_heads", "must be the number of heads");
  }
  fields.skip({"max_position_embeddings", "scale_input", "dropout", "dropout_positions",
               "activation_dropout"});
  bool const has_bias = fields.flag("attention_bias", true);
  bool const convolution_bias = fields.flag("convolution_bias", true);
  std::int64_t const count = halvings(fields, "subsampling_factor");
  std::int64_t const stride = fields.integer("subsampling_conv_stride");
  std::int64_t bands = fields.integer("num_mel_bins");
  for (std::int64_t i = 0; i != count; ++i) bands /= stride;
  draft.tower = {
      .stem = halving_stem(count, fields.integer("subsampling_conv_channels"), bands, hidden,
                           fields.integer("subsampling_conv_kernel_size"), stride),
      .layers = fields.integer("num_hidden_layers"),
      .layer = {.hidden = hidden,
                .heads = heads,
                .mlp = fields.integer("intermediate_size"),
                .qkv_bias = has_bias,
                .output_bias = has_bias,
                .mlp_bias = has_bias,
                // Biases of queries for tokens and for distances.
                .other_parameters = 2 * hidden,
                .conformer = {.kernel = fields.integer("conv_kernel_size"),
                              .has_bias = convolution_bias,
                              .kernel_bias = convolution_bias,
                              .distances = relative_positions::projected}}};
}

/// Granite speech: attention within chunks, with a learned vector for each distance.
void read_granite(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  std::int64_t const hidden = fields.integer("hidden_size");
  std::int64_t const heads = fields.integer("num_attention_heads");
  std::int64_t const head_size = fields.integer_or("dim_head", hidden / heads, 1);
  std::int64_t const outputs = fields.integer("output_dim");
  fields.skip({"dropout"});
  draft.tower = {.stem = {.convolutions = {{{.inputs = fields.integer("num_mel_bins"),
                                             .outputs = hidden,
                                             .has_activation = false}}}},
                 .layers = fields.integer("num_layers"),
                 .layer = {.hidden = hidden,
                           .heads = heads,
                           .head_size = head_size,
                           .mlp = fields.integer("feedforward_mult") * hidden,
                           .qkv_bias = false,
                           .span = {omnibal::span_kind::chunk, fields.integer("context_size")},
                           .other_parameters = (2 * fields.integer("max_pos_emb") + 1) * head_size,
                           .conformer = {.kernel = fields.integer("conv_kernel_size"),
                                         .width = fields.integer("conv_expansion_factor") * hidden,
                                         .distances = relative_positions::table}}};
  // Scores of letters in the middle of the tower lead back to its width.
  draft.connectors.push_back(
      {1,
       {.input = hidden, .hidden = outputs, .output = hidden, .source = projector_source::clips}});
}

}  // namespace

std::vector<audio_family> conformer_families() {
  return {{{"phi4_multimodal_audio"},
           read_phi4,
           R"({"hidden_size": 1024, "intermediate_size": 1536, "num_blocks": 24,
         "num_attention_heads": 16, "chunk_size": -1, "ext_pw_out_channel": 1024,
         "depthwise_separable_out_channel": 1024, "depthwise_multiplier": 1, "kernel_size": 3,
         "input_size": 80, "time_reduction": 8, "bias_max_distance": 1000,
         "nemo_conv_channels": 1024, "downsample_rate": 1})"},
          {{"gemma3n_audio"},
           read_gemma3n,
           R"({"vocab_size": 128, "input_feat_size": 128, "hidden_size": 1536,
         "conf_attention_chunk_size": 12, "conf_attention_context_left": 13,
         "conf_attention_context_right": 0, "conf_num_attention_heads": 8,
         "conf_num_hidden_layers": 12, "conf_conv_kernel_size": 5, "conf_reduction_factor": 4,
         "sscp_conv_channel_size": [128, 32], "sscp_conv_kernel_size": [[3, 3], [3, 3]],
         "sscp_conv_stride_size": [[2, 2], [2, 2]]})"},
          {{"gemma4_audio"},
           read_gemma4,
           R"({"hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8,
         "subsampling_conv_channels": [128, 32], "conv_kernel_size": 5,
         "attention_chunk_size": 12, "attention_context_left": 13, "attention_context_right": 0,
         "output_proj_dims": 1536})"},
          {{"parakeet_encoder"},
           read_parakeet,
           R"({"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 8,
         "intermediate_size": 4096, "conv_kernel_size": 9, "subsampling_factor": 8,
         "subsampling_conv_channels": 256, "num_mel_bins": 80, "subsampling_conv_kernel_size": 3,
         "subsampling_conv_stride": 2})"},
          {{"granite_speech_encoder"},
           read_granite,
           R"({"num_mel_bins": 160, "num_layers": 10, "hidden_size": 1024, "feedforward_mult": 4,
         "num_attention_heads": 8, "output_dim": 42, "context_size": 200, "max_pos_emb": 512,
         "conv_kernel_size": 15, "conv_expansion_factor": 2})",
           {{"hidden_dim", "hidden_size"},
            {"num_heads", "num_attention_heads"},
            {"input_dim", "num_mel_bins"},
            {"num_hidden_layers", "num_layers"}}}};
}

}  // namespace examples
