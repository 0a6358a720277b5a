// SPDX-License-Identifier: Apache-2.0
#include "audio_families.hpp"

#include "public_parts.hpp"
#include "tower_families.hpp"

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::norm_kind;

/// Two convolutions over time, the second one with a stride of 2.
omnibal::audio_stem whisper_stem(std::int64_t bands, std::int64_t hidden) {
  return {.convolutions = {{{.inputs = bands, .outputs = hidden, .kernel = 3},
                            {.inputs = hidden, .outputs = hidden, .kernel = 3, .stride = 2}}}};
}

/// The encoder of Whisper by the names of its class.
omnibal::audio_model whisper_encoder(config_fields const& fields) {
  std::int64_t const hidden = fields.integer("d_model");
  check_activation(fields, "activation_function");
  return {.stem = whisper_stem(fields.integer("num_mel_bins"), hidden),
          .layers = fields.integer("encoder_layers"),
          .layer = {.hidden = hidden,
                    .heads = fields.integer("encoder_attention_heads"),
                    .mlp = fields.integer("encoder_ffn_dim"),
                    .key_bias = false}};
}

/// The mean of two tokens goes through a norm and a matrix.
omnibal::projector pooled_connector(std::int64_t hidden) {
  return {.input = hidden,
          .patches_per_token = 2,
          .has_norm = true,
          .source = omnibal::projector_source::clips};
}

void read_qwen2_audio(audio_draft& draft) {
  draft.tower = whisper_encoder(draft.fields);
  draft.tower.stem.positions = draft.fields.integer("max_source_positions");
  draft.connectors.push_back({1, pooled_connector(draft.tower.layer.hidden)});
  draft.owns_only_norm = true;
}

/// The mean of two tokens behind the norm of the tower goes through two matrices.
void read_audio_flamingo(audio_draft& draft) {
  draft.tower = whisper_encoder(draft.fields);
  draft.tower.stem.positions = draft.fields.integer("max_source_positions");
  draft.tower.has_last_norm = true;
  draft.connectors.push_back({1,
                              {.input = draft.tower.layer.hidden,
                               .hidden = -1,
                               .patches_per_token = 2,
                               .source = omnibal::projector_source::clips}});
}

/// The encoder of Parakeet and the scores of words of each of its tokens.
void read_parakeet_ctc(config_fields const& fields, model_description& model) {
  model.audio = public_audio(fields.object("encoder_config"), "parakeet_encoder", 0);
  model.audio->connectors.push_back({1,
                                     {.input = model.audio->tower.layer.hidden,
                                      .output = fields.integer("vocab_size"),
                                      .source = omnibal::projector_source::clips}});
  fields.skip({"ctc_loss_reduction", "ctc_zero_infinity"});
}

/// Chunks of `2 * n_window` frames, which become half as many tokens.
void read_qwen2_omni(audio_draft& draft) {
  draft.tower = whisper_encoder(draft.fields);
  draft.fields.skip({"max_source_positions"});
  draft.tower.layer.span = {omnibal::span_kind::chunk, draft.fields.integer("n_window")};
  auto connector = pooled_connector(draft.tower.layer.hidden);
  connector.output = draft.fields.integer("output_dim");
  // The tokens before and behind a clip.
  connector.other_parameters = 2 * connector.output;
  draft.connectors.push_back({1, connector});
}

/// Three convolutions over time and bands, and a matrix of the bands that are left. Chunks of
/// `n_window_infer` frames: of 2 * n_window frames one token remains for each 8.
void read_qwen3_omni(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  draft.tower = whisper_encoder(fields);
  fields.skip({"max_source_positions", "max_position_embeddings", "conv_chunksize"});
  std::int64_t const hidden = draft.tower.layer.hidden;
  draft.tower.layer.key_bias = true;
  std::int64_t const channels = fields.integer("downsample_hidden_size");
  std::int64_t bands = fields.integer("num_mel_bins");
  for (int i = 0; i != 3; ++i) bands = (bands + 1) / 2;
  draft.tower.stem.convolutions = {
      {{.inputs = 1, .outputs = channels, .kernel = 9, .stride = 4},
       {.inputs = channels, .outputs = channels, .kernel = 9, .stride = 4},
       {.inputs = channels, .outputs = channels, .kernel = 9, .stride = 4},
       {.inputs = channels,
        .outputs = hidden,
        .kernel = bands,
        .stride = bands,
        .has_bias = false,
        .has_activation = false}}};
  std::int64_t const frames = 2 * fields.integer("n_window");
  std::int64_t const chunks = fields.integer("n_window_infer") / frames;
  if (chunks == 0) fields.refuse("n_window_infer", "must be at least twice n_window");
  draft.tower.layer.span = {omnibal::span_kind::chunk, chunks * ((frames + 7) / 8)};
  draft.connectors.push_back({1,
                              {.input = hidden,
                               .hidden = hidden,
                               .output = fields.integer("output_dim"),
                               .has_norm = true,
                               .source = omnibal::projector_source::clips}});
}

/// As Qwen3-Omni, but the connector stands outside.
void read_qwen3_asr(audio_draft& draft) {
  read_qwen3_omni(draft);
  draft.owns_only_norm = true;
}

/// Whisper under the names of language models; four tokens become one.
void read_voxtral(audio_draft& draft) {
  config_fields const& fields = draft.fields;
  std::int64_t const hidden = fields.integer("hidden_size");
  check_activation(fields, "activation_function");
  fields.skip({"vocab_size"});
  draft.tower = {.stem = whisper_stem(fields.integer("num_mel_bins"), hidden),
                 .layers = fields.integer("num_hidden_layers"),
                 .layer = {.hidden = hidden,
                           .heads = fields.integer("num_attention_heads"),
                           .mlp = fields.integer("intermediate_size"),
                           .key_bias = false},
                 .has_last_norm = true};
  draft.tower.stem.positions = fields.integer("max_source_positions");
  std::int64_t const input = draft.tower.layer.mlp;
  if (input % hidden != 0) {
    fields.refuse("intermediate_size", "must be a multiple of the hidden size");
  }
  // The hidden layer has the width of the language model.
  draft.connectors.push_back({1,
                              {.input = input,
                               .hidden = -1,
                               .patches_per_token = input / hidden,
                               .has_bias = false,
                               .source = omnibal::projector_source::clips}});
}

/// The encoder and the decoder of Whisper.
void read_whisper(config_fields const& fields, model_description& model) {
  auto tower = whisper_encoder(fields);
  tower.stem.positions = fields.integer("max_source_positions");
  tower.has_last_norm = true;
  std::int64_t const hidden = tower.layer.hidden;
  model.audio = {.tower = tower};
  omnibal::transformer const layer{.hidden = hidden,
                                   .heads = fields.integer("decoder_attention_heads"),
                                   .mlp = fields.integer("decoder_ffn_dim"),
                                   .feed_forward = omnibal::mlp_kind::plain,
                                   .norm = norm_kind::layer,
                                   .cross = {.context_width = hidden},
                                   .qkv_bias = true,
                                   .output_bias = true,
                                   .mlp_bias = true,
                                   .key_bias = false};
  omnibal::mixed_language_model language{
      .input = {.vocabulary = fields.integer("vocab_size"),
                .hidden = hidden,
                .positions = fields.integer("max_target_positions")},
      .runs = {{fields.integer("decoder_layers"), layer}}};
  language.output = {
      .vocabulary = language.input.vocabulary, .hidden = hidden, .norm = norm_kind::layer};
  if (fields.flag("tie_word_embeddings", true)) {
    language.output.weights = omnibal::head_weights::tied;
  }
  model.language = language;
}

/// Convolutions of the samples; norms without biases.
void read_moonshine(config_fields const& fields, model_description& model) {
  std::int64_t const hidden = fields.integer("hidden_size");
  std::int64_t const mlp = fields.integer("intermediate_size");
  bool const has_bias = fields.flag("attention_bias");
  check_activation(fields, "encoder_hidden_act");
  check_activation(fields, "decoder_hidden_act");
  std::int64_t const heads = fields.integer("encoder_num_attention_heads");
  if (fields.integer_or("encoder_num_key_value_heads", heads, 1) != heads) {
    fields.refuse("encoder_num_key_value_heads", "must be the number of heads");
  }
  fields.skip({"pad_head_dim_to_multiple_of"});
  omnibal::audio_model const tower{
      .stem =
          {.convolutions = {{{.outputs = hidden, .kernel = 127, .stride = 64, .has_bias = false},
                             {.inputs = hidden, .outputs = 2 * hidden, .kernel = 7, .stride = 3},
                             {.inputs = 2 * hidden, .outputs = hidden, .kernel = 3, .stride = 2}}},
           .has_norm = true},
      .layers = fields.integer("encoder_num_hidden_layers"),
      .layer = {.hidden = hidden,
                .heads = heads,
                .mlp = mlp,
                .norm = norm_kind::rms,
                .qkv_bias = has_bias,
                .output_bias = false},
      .has_last_norm = true};
  model.audio = {.tower = tower};
  model.audio->tower.stem.convolutions[0].inputs = 1;
  std::int64_t const decoder_heads = fields.integer("decoder_num_attention_heads");
  omnibal::transformer const layer{
      .hidden = hidden,
      .heads = decoder_heads,
      .kv_heads = fields.integer_or("decoder_num_key_value_heads", decoder_heads, 1),
      .mlp = mlp,
      .cross = {.context_width = hidden},
      .qkv_bias = has_bias,
      .mlp_bias = true};
  omnibal::mixed_language_model language{
      .input = {.vocabulary = fields.integer("vocab_size"), .hidden = hidden},
      .runs = {{fields.integer("decoder_num_hidden_layers"), layer}}};
  language.output = {.vocabulary = language.input.vocabulary, .hidden = hidden};
  if (fields.flag("tie_word_embeddings", true)) {
    language.output.weights = omnibal::head_weights::tied;
  }
  model.language = language;
}

field_rules const& audio_rules() {
  static field_rules const rules{
      .ignored = {{"towers have no matrices to tie", {"tie_word_embeddings"}},
                  {"training: layers that are dropped, masks of the spectrum",
                   {"encoder_layerdrop", "decoder_layerdrop", "layerdrop", "apply_spec_augment",
                    "mask_time_prob", "mask_time_length", "mask_time_min_masks",
                    "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks"}},
                  {"a scale has no products", {"scale_embedding"}},
                  {"sizes that others repeat", {"num_hidden_layers", "encoder_config"}},
                  {"classification, times of words and initialization",
                   {"use_weighted_layer_sum", "classifier_proj_size", "median_filter_width",
                    "init_std", "alignment_heads", "forced_decoder_ids", "activation_dropout"}}}};
  return rules;
}

}  // namespace

std::vector<audio_family> transformer_audio_families() {
  constexpr std::string_view whisper = R"({"num_mel_bins": 128, "encoder_layers": 32,
    "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "d_model": 1280,
    "max_source_positions": 1500, "n_window": 100, "output_dim": 3584})";
  return {{{"qwen2_audio_encoder"}, read_qwen2_audio, whisper},
          {{"audioflamingo3_encoder"},
           read_audio_flamingo,
           whisper,
           {{"hidden_size", "d_model"},
            {"num_attention_heads", "encoder_attention_heads"},
            {"intermediate_size", "encoder_ffn_dim"}}},
          {{"qwen2_5_omni_audio_encoder"}, read_qwen2_omni, whisper},
          {{"qwen3_omni_moe_audio_encoder"},
           read_qwen3_omni,
           R"({"num_mel_bins": 128, "encoder_layers": 32, "encoder_attention_heads": 20,
         "encoder_ffn_dim": 5120, "d_model": 1280, "n_window": 50, "n_window_infer": 800,
         "output_dim": 3584, "downsample_hidden_size": 480})"},
          {{"qwen3_asr_encoder"},
           read_qwen3_asr,
           R"({"num_mel_bins": 128, "encoder_layers": 24, "encoder_attention_heads": 16,
         "encoder_ffn_dim": 4096, "d_model": 1024, "n_window": 50, "n_window_infer": 800,
         "output_dim": 3584, "downsample_hidden_size": 480})"},
          {{"voxtral_encoder"},
           read_voxtral,
           R"({"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32,
         "num_attention_heads": 20, "num_mel_bins": 128, "max_source_positions": 1500})"}};
}

std::vector<audio_family> const& audio_families() {
  static std::vector<audio_family> const families = [] {
    auto result = transformer_audio_families();
    for (audio_family& family : conformer_families()) result.push_back(std::move(family));
    return result;
  }();
  return families;
}

std::vector<speech_family> const& speech_families() {
  static std::vector<speech_family> const families{
      {.names = {"whisper"},
       .read = read_whisper,
       .defaults = R"({"vocab_size": 51865, "num_mel_bins": 80, "encoder_layers": 4,
         "encoder_attention_heads": 6, "decoder_layers": 4, "decoder_attention_heads": 6,
         "decoder_ffn_dim": 1536, "encoder_ffn_dim": 1536, "d_model": 384,
         "max_source_positions": 1500, "max_target_positions": 448})"},
      {.names = {"parakeet_ctc"}, .read = read_parakeet_ctc, .defaults = R"({"vocab_size": 1025})"},
      {.names = {"moonshine"},
       .read = read_moonshine,
       .defaults = R"({"vocab_size": 32768, "hidden_size": 288, "intermediate_size": 1152,
         "encoder_num_hidden_layers": 6, "decoder_num_hidden_layers": 6,
         "encoder_num_attention_heads": 8, "decoder_num_attention_heads": 8})"}};
  return families;
}

audio_part public_audio(json_fields const& given, std::string const& name, std::int64_t width) {
  auto const& family = family_in(audio_families(), given, name);
  config_fields const fields(given, nlohmann::json::parse(family.defaults), family.aliases);
  audio_draft draft{.fields = fields};
  family.read(draft);
  field_rules rules = audio_rules();
  rules.add(common_rules());
  fields.check_all_read(name, rules);
  if (width == 0 && draft.owns_only_norm) {
    draft.tower.has_last_norm = true;
    draft.connectors.clear();
  }
  for (connector_run& run : draft.connectors) {
    if (run.layer.output == 0) run.layer.output = width;
    if (run.layer.hidden < 0) run.layer.hidden = width;
  }
  if (draft.has_spare_connector && width != 0) {
    auto& last = draft.connectors.back().layer;
    last.other_parameters += last.input * last.hidden + last.hidden + last.hidden * width + width;
  }
  return {.tower = draft.tower, .connectors = draft.connectors};
}

model_description public_speech(json_fields const& given, std::string const& name) {
  auto const& family = family_in(speech_families(), given, name);
  config_fields const fields(given, nlohmann::json::parse(family.defaults), {});
  model_description model;
  family.read(fields, model);
  fields.skip({"is_encoder_decoder"});
  field_rules rules = audio_rules();
  rules.add(common_rules());
  fields.check_all_read(name, rules);
  return model;
}

}  // namespace examples
