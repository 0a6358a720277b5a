// SPDX-License-Identifier: Apache-2.0
#include "field_rules.hpp"

#include "input_error.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

bool is_neutral(nlohmann::json const& value, neutral_value wanted) {
  switch (wanted) {
    case neutral_value::absent: return value.is_null();
    case neutral_value::off: return value == false;
    case neutral_value::on: return value == true;
    case neutral_value::zero: return value.is_number() && value == 0;
    case neutral_value::one: return value.is_number() && value == 1;
    case neutral_value::empty: return value.is_structured() && value.empty();
    case neutral_value::full_attention:
      return value.is_array() &&
             std::ranges::all_of(value, [](auto const& one) { return one == "full_attention"; });
    case neutral_value::usual: return value == "default";
    case neutral_value::layer_norm: return value == "layer_norm";
  }
  return false;
}

bool has_name(std::vector<std::string_view> const& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_ignored(json_fields const& given, field_rules const& rules, std::string_view name) {
  return std::ranges::any_of(rules.ignored, [&](ignored_fields const& group) {
    bool const is_off =
        group.switched_by.empty() || given.has(std::string(group.switched_by).c_str());
    return is_off && has_name(group.names, name);
  });
}

}  // namespace

void field_rules::add(field_rules const& other) {
  understood.insert(understood.end(), other.understood.begin(), other.understood.end());
  neutral.insert(neutral.end(), other.neutral.begin(), other.neutral.end());
  ignored.insert(ignored.end(), other.ignored.begin(), other.ignored.end());
}

field_rules const& common_rules() {
  static field_rules const rules{
      .understood = {"model_type"},
      .neutral = {{"is_encoder_decoder", neutral_value::off, "encoder-decoder models are not read"},
                  {"add_cross_attention", neutral_value::off, "cross-attention is not read"},
                  {"cross_attention_hidden_size", neutral_value::absent,
                   "cross-attention is not read"},
                  {"pruned_heads", neutral_value::empty, "pruned heads are not modeled"}},
      .ignored = {
          {"names and versions",
           {"architectures", "_name_or_path", "name_or_path", "transformers_version", "auto_map",
            "_commit_hash", "tokenizer_class"}},
          {"types of stored numbers: a training has its own",
           {"torch_dtype", "dtype", "use_bfloat16", "quantization_config", "torchscript"}},
          {"ids of tokens",
           {"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id",
            "decoder_start_token_id", "image_token_id", "image_token_index", "image_start_token_id",
            "image_end_token_id", "video_token_id", "video_token_index", "video_start_token_id",
            "video_end_token_id", "vision_start_token_id", "vision_end_token_id", "vision_token_id",
            "ignore_index"}},
          {"generation",
           {"use_cache",
            "bad_words_ids",
            "begin_suppress_tokens",
            "diversity_penalty",
            "do_sample",
            "early_stopping",
            "encoder_no_repeat_ngram_size",
            "exponential_decay_length_penalty",
            "forced_bos_token_id",
            "forced_eos_token_id",
            "length_penalty",
            "max_length",
            "min_length",
            "no_repeat_ngram_size",
            "num_beam_groups",
            "num_beams",
            "num_return_sequences",
            "output_scores",
            "prefix",
            "remove_invalid_values",
            "repetition_penalty",
            "return_dict_in_generate",
            "suppress_tokens",
            "task_specific_params",
            "temperature",
            "top_k",
            "top_p",
            "typical_p",
            "is_decoder",
            "cache_implementation"}},
          {"outputs and labels of the class",
           {"output_attentions", "output_hidden_states", "output_router_logits", "return_dict",
            "id2label", "label2id", "num_labels", "problem_type", "finetuning_task",
            "tie_encoder_decoder", "tf_legacy_loss"}},
          {"how the class computes",
           {"chunk_size_feed_forward", "attn_implementation", "_attn_implementation",
            "_attn_implementation_autoset", "use_flash_attn", "pretraining_tp"}},
          {"initialization", {"initializer_range", "initializer_factor", "logit_scale_init_value"}},
          {"dropout: its masks are not counted",
           {"attention_dropout", "hidden_dropout", "residual_dropout", "embedding_dropout",
            "resid_pdrop", "embd_pdrop", "hidden_dropout_prob", "attention_probs_dropout_prob",
            "dropout", "drop_path_rate", "projection_dropout"}},
          {"the small number of a norm",
           {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}},
          {"rotary positions: they have no parameters, their shape changes no cost",
           {"rope_theta", "rope_scaling", "rope_parameters", "rope_interleave", "use_mrope",
            "partial_rotary_factor", "max_position_embeddings",
            "original_max_position_embeddings"}}}};
  return rules;
}

void check_fields(json_fields const& given, std::string_view family, field_rules const& rules) {
  for (neutral_field const& field : rules.neutral) {
    std::string const name(field.name);
    if (!given.mentions(name.c_str())) {
      if (!field.is_needed) continue;
      fail({given.file()},
           "no field \"" + given.path_of(name.c_str()) + "\" of " + std::string(family) +
               ", whose default has a cost of its own: " + std::string(field.reason));
    }
    if (!given.has(name.c_str()) || is_neutral(given.at(name.c_str()), field.value)) continue;
    given.refuse(name.c_str(), "but " + std::string(field.reason));
  }
  for (std::string const& name : given.names()) {
    bool const has_rule =
        !given.has(name.c_str()) || has_name(rules.understood, name) ||
        is_ignored(given, rules, name) ||
        std::ranges::any_of(rules.neutral, [&](auto const& field) { return field.name == name; });
    if (has_rule) continue;
    fail({given.file()}, "field \"" + given.path_of(name.c_str()) + "\" of " + std::string(family) +
                             " is not understood; it may change what the model costs");
  }
}

}  // namespace examples
