// SPDX-License-Identifier: Apache-2.0
#include "public_text.hpp"

#include "public_parts.hpp"
#include "text_draft.hpp"
#include "text_families.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// Fields of many families that change no cost.
field_rules const& text_rules() {
  static field_rules const rules{
      .ignored = {
          {"the router: its scores cost the same",
           {"norm_topk_prob",
            "routed_scaling_factor",
            "scoring_func",
            "topk_group",
            "n_group",
            "topk_method",
            "aux_loss_alpha",
            "seq_aux",
            "router_aux_loss_coef",
            "router_jitter_noise",
            "input_jitter_noise",
            "moe_router_dtype",
            "ep_size",
            "moe_renormalize",
            "moe_router_activation_func",
            "num_expert_group",
            "use_grouped_topk",
            "router_scaling_factor",
            "enable_moe_fp32_combine",
            "route_scale",
            "route_norm",
            "score_func",
            "score_function",
            "moe_routed_scaling_factor",
            "moe_apply_router_weight_on_input",
            "moe_router_logit_softcapping",
            "moe_norm_min",
            "router_type",
            "moe_router_enable_expert_bias",
            "moe_router_topk_scaling_factor",
            "norm_head",
            "norm_softmax",
            "router_dtype",
            "load_balance_coeff",
            "expert_selection_fn",
            "moe_capacity",
            "multi_gate"}},
          {"scales, caps and clipping have no products",
           {"query_pre_attn_scalar",
            "attn_logit_softcapping",
            "final_logit_softcapping",
            "embedding_multiplier",
            "logits_scaling",
            "residual_multiplier",
            "attention_multiplier",
            "logit_scale",
            "swiglu_alpha",
            "swiglu_limit",
            "swiglu_limits",
            "swiglu_limits_shared",
            "attention_value_scale",
            "clip_qkv",
            "attn_temperature_tuning",
            "floor_scale",
            "attn_scale",
            "scale_emb",
            "scale_depth",
            "dim_model_base",
            "mup_enabled",
            "attention_scale",
            "mscale"}},
          {"rotary positions: they have no parameters, their shape changes no cost",
           {"rope_local_base_freq",
            "no_rope_layers",
            "no_rope_layer_interval",
            "rotary_dim",
            "rotary_pct",
            "rotary_emb_base",
            "rope_type",
            "rope_traditional",
            "use_rope",
            "rope_pct",
            "rope_local_theta",
            "swa_rope_theta",
            "layer_rope_theta",
            "model_max_length",
            "max_sequence_length",
            "seq_length",
            "rope_3d",
            "mrope_section",
            "default_theta",
            "mla_use_nope",
            "use_rotary_pos_emb",
            "no_rope_layer_types",
            "global_attn_every_n_layers_rope"}},
          {"initialization and training",
           {"use_bidirectional_attention", "initializer_cutoff_factor", "classifier_dropout",
            "linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max",
            "linear_dt_init_floor", "linear_allow_neg_eigval", "kda_lower_bound", "kda_safe_gate",
            "embd_layer_norm_eps", "embedding_initializer_range", "num_logits_to_keep",
            "z_loss_coefficient", "mtp_loss_scaling_factor", "resid_dropout"}},
          {"ids of tokens",
           {"eod_token_id", "im_start_id", "im_end_id", "text_start_id", "text_end_id", "sep_id",
            "pad_id", "eod_id", "org_vocab_size", "mask_init_id"}}}};
  return rules;
}

text_family const& family_of_text(json_fields const& given, std::string const& name) {
  return family_in(text_families(), given, name);
}

nlohmann::json defaults_of(std::string const& name) {
  return nlohmann::json::parse(text_defaults(name));
}

}  // namespace

bool ties_by_default(json_fields const& given, std::string const& name) {
  static_cast<void>(family_of_text(given, name));
  return defaults_of(name).value("tie_word_embeddings", false);
}

omnibal::mixed_language_model public_text(json_fields const& given, std::string const& name,
                                          text_place const& place) {
  text_family const& family = family_of_text(given, name);
  field_rules rules{.neutral = family.neutral, .ignored = family.ignored};
  rules.add(text_rules());
  rules.add(common_rules());
  rules.add(place.around);
  config_fields const fields(given, defaults_of(name), family.aliases);
  text_draft draft{.given = fields};
  family.read(draft);
  fields.check_all_read(place.name.empty() ? name : place.name, rules);
  if (place.is_tied) {
    draft.model.output.weights =
        *place.is_tied ? omnibal::head_weights::tied : omnibal::head_weights::own;
  }
  return finished(std::move(draft));
}

}  // namespace examples
