// SPDX-License-Identifier: Apache-2.0
// Families whose layers are all alike, dense, and attend to the whole sequence.
#include "text_families.hpp"

#include <cstdint>
#include <string>

namespace examples {

namespace {

using omnibal::mlp_kind;
using omnibal::norm_kind;
using omnibal::norm_placement;
using omnibal::query_key_norm;

/// Llama: biases by two flags.
void read_llama(text_draft& draft) {
  read_attention_bias(draft);
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_usual(draft);
}

/// Norms of queries and keys for each head, before the usual norms.
void read_with_head_norms(text_draft& draft) {
  draft.base.head_norm = query_key_norm::each_head;
  read_llama(draft);
}

/// The output matrix is square.
void read_helium(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("attention_bias");
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_usual(draft);
  if (draft.base.head_size * draft.base.heads == draft.base.hidden) return;
  draft.given.refuse("head_dim", "must be the width of the layer divided by the heads");
}

void read_plain_llama(text_draft& draft) {
  draft.base.feed_forward = mlp_kind::plain;
  read_llama(draft);
}

void read_internlm2(text_draft& draft) {
  read_attention_bias(draft, "bias");
  draft.given.skip({"attn_implementation"});
  read_usual(draft);
}

void read_internlm3(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("attention_bias");
  draft.base.output_bias = draft.given.flag("mlp_bias");
  draft.base.mlp_bias = draft.base.output_bias;
  read_usual(draft);
}

void read_with_query_bias(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("attention_bias");
  read_usual(draft);
}

void read_seed_oss(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("attention_bias", true);
  draft.base.output_bias = draft.given.flag("attention_out_bias");
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_usual(draft);
}

void read_gemma(text_draft& draft) {
  check_activation(draft.given, "hidden_activation");
  read_attention_bias(draft);
  read_usual(draft);
}

void read_ernie(text_draft& draft) {
  bool const has_bias = draft.given.flag("use_bias");
  draft.base.qkv_bias = has_bias;
  draft.base.output_bias = has_bias;
  draft.base.mlp_bias = has_bias;
  read_usual(draft);
  draft.model.output.has_bias = false;
}

void read_olmo(text_draft& draft) {
  draft.base.norm = norm_kind::unweighted;
  read_attention_bias(draft);
  read_usual(draft);
}

void read_olmo2(text_draft& draft) {
  draft.base.placement = norm_placement::after;
  draft.base.head_norm = query_key_norm::whole_width;
  read_attention_bias(draft);
  read_usual(draft);
}

void read_glm4(text_draft& draft) {
  draft.base.placement = norm_placement::both;
  read_with_query_bias(draft);
}

/// Its biases do not depend on a flag.
void read_glm4v(text_draft& draft) {
  draft.base.placement = norm_placement::both;
  draft.base.qkv_bias = true;
  draft.given.skip({"attention_bias"});
  read_usual(draft);
}

void read_nemotron(text_draft& draft) {
  draft.base.norm = norm_kind::layer;
  read_plain_llama(draft);
}

void read_stablelm(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.norm = norm_kind::layer;
  draft.base.qkv_bias = given.flag("use_qkv_bias");
  if (given.flag("use_parallel_residual")) draft.base.placement = norm_placement::parallel;
  read_usual(draft);
  if (!given.flag("qk_layernorm")) return;
  // A norm without bias for each head.
  std::int64_t const key_heads = draft.base.kv_heads == 0 ? draft.base.heads : draft.base.kv_heads;
  std::int64_t const size = draft.base.hidden / draft.base.heads;
  for (auto& layer : draft.layers) layer.other_parameters += (layer.heads + key_heads) * size;
}

/// One layer norm before both parts, and biases everywhere.
void read_phi(text_draft& draft) {
  auto& base = draft.base;
  base.norm = norm_kind::layer;
  base.placement = norm_placement::parallel;
  base.feed_forward = mlp_kind::plain;
  base.qkv_bias = true;
  base.output_bias = true;
  base.mlp_bias = true;
  if (draft.given.flag("qk_layernorm")) base.head_norm = query_key_norm::each_head;
  read_usual(draft);
  draft.model.output.has_bias = true;
}

/// Parallel parts that have a norm each cost what the usual ones cost.
void read_gpt_neox(text_draft& draft) {
  draft.base.norm = norm_kind::layer;
  draft.base.feed_forward = mlp_kind::plain;
  read_attention_bias(draft);
  draft.base.mlp_bias = true;
  draft.given.skip({"use_parallel_residual"});
  read_usual(draft);
}

void read_falcon(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& base = draft.base;
  base.norm = norm_kind::layer;
  base.feed_forward = mlp_kind::plain;
  bool const is_new = given.flag("new_decoder_architecture");
  std::int64_t const norms = given.integer_or("num_ln_in_parallel_attn", is_new ? 2 : 1, 1);
  bool const is_parallel = is_new || given.flag("parallel_attn", true);
  if (is_parallel && norms == 1) base.placement = norm_placement::parallel;
  bool const has_bias = given.flag("bias");
  base.qkv_bias = has_bias;
  base.output_bias = has_bias;
  base.mlp_bias = has_bias;
  given.skip({"alibi"});
  read_ends(draft);
  base.heads = given.integer("num_attention_heads");
  bool const has_one_key_head = given.flag("multi_query", true);
  base.kv_heads = given.integer_or("num_kv_heads", base.heads, 1);
  if (!is_new) base.kv_heads = has_one_key_head ? 1 : base.heads;
  base.mlp = given.integer_or("ffn_hidden_size", 4 * base.hidden, 1);
  check_activation(given, "activation");
  fill_layers(draft);
}

void read_apertus(text_draft& draft) {
  draft.base.feed_forward = mlp_kind::plain;
  draft.base.head_norm = query_key_norm::each_head;
  if (draft.given.text("hidden_act") != "xielu") {
    draft.given.refuse("hidden_act", "but only \"xielu\" is read for this family");
  }
  // The activation learns two numbers.
  draft.base.other_parameters = 2;
  read_ends(draft);
  read_attention_bias(draft);
  read_heads(draft);
  draft.base.mlp = draft.given.integer("intermediate_size");
  fill_layers(draft);
}

void read_hyperclovax(text_draft& draft) {
  if (draft.given.flag("use_post_norm")) draft.base.placement = norm_placement::both;
  read_llama(draft);
}

void read_nanochat(text_draft& draft) {
  draft.base.norm = norm_kind::unweighted;
  draft.base.feed_forward = mlp_kind::plain;
  read_attention_bias(draft);
  read_usual(draft);
}

/// One norm with weights alone before both parts.
void read_cohere(text_draft& draft) {
  draft.base.placement = norm_placement::parallel;
  if (draft.given.flag("use_qk_norm")) draft.base.head_norm = query_key_norm::whole_width;
  read_attention_bias(draft);
  read_usual(draft);
}

void read_mimo(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("attention_bias", true);
  draft.given.skip({"use_sliding_window", "sliding_window", "max_window_layers"});
  if (draft.given.flag("use_sliding_window")) {
    draft.given.refuse("use_sliding_window", "but windows of this family are not read");
  }
  read_usual(draft);
  read_prediction(draft);
}

void read_jais2(text_draft& draft) {
  draft.base.norm = norm_kind::layer;
  read_plain_llama(draft);
}

}  // namespace

std::vector<text_family> dense_text_families() {
  neutral_field const rms_norms{"use_rmsnorm", neutral_value::on, "its norms are RMS norms"};
  return {
      {{"llama", "code_llama", "granite"}, read_llama},
      {{"helium"}, read_helium},
      {{"arcee"}, read_plain_llama},
      {{"internlm2"}, read_internlm2},
      {{"internlm3"}, read_internlm3, {{"qkv_bias", "attention_bias"}, {"bias", "mlp_bias"}}},
      {{"exaone"},
       read_llama,
       {{"num_layers", "num_hidden_layers"}, {"activation_function", "hidden_act"}}},
      {{"seed_oss"}, read_seed_oss},
      {{"gemma"}, read_gemma},
      {{"ernie4_5"}, read_ernie, {}, {rms_norms}},
      {{"olmo"}, read_olmo},
      {{"olmo2"}, read_olmo2},
      {{"glm"}, read_with_query_bias},
      {{"glm4", "glm_ocr_text"}, read_glm4},
      {{"glm4v_text"}, read_glm4v},
      {{"nemotron"}, read_nemotron},
      {{"stablelm"}, read_stablelm},
      {{"phi"}, read_phi},
      {{"gpt_neox"}, read_gpt_neox},
      {{"falcon"}, read_falcon, {{"n_embed", "hidden_size"}}},
      {{"apertus"}, read_apertus},
      {{"hunyuan_v1_dense"}, read_with_head_norms},
      {{"hyperclovax"}, read_hyperclovax},
      {{"nanochat"}, read_nanochat},
      {{"cohere"}, read_cohere},
      {{"jais2"}, read_jais2},
      {{"mimo"}, read_mimo, {{"num_mtp_layers", "num_nextn_predict_layers"}}},
  };
}

}  // namespace examples
