// SPDX-License-Identifier: Apache-2.0
// Families of dense layers, some of which attend to a window.
#include "attention_kinds.hpp"
#include "text_families.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

namespace {

using omnibal::mlp_kind;
using omnibal::norm_kind;
using omnibal::norm_placement;
using omnibal::query_key_norm;

/// All layers have windows unless `layer_types` says otherwise.
std::string_view always_sliding(std::size_t) { return sliding; }

/// Every `period`-th layer attends to the whole sequence; 0: all layers do.
auto full_every(std::int64_t period) {
  return [period](std::size_t l) {
    bool const is_full = period == 0 || (static_cast<std::int64_t>(l) + 1) % period == 0;
    return is_full ? full : sliding;
  };
}

void read_mistral(text_draft& draft) {
  read_usual(draft);
  read_windows(draft, always_sliding);
}

/// Windows from a layer on, which are off without a flag.
void read_flagged_windows(text_draft& draft) {
  config_fields const& given = draft.given;
  given.skip({"sliding_window", "max_window_layers"});
  if (!given.flag("use_sliding_window")) {
    static_cast<void>(
        kinds_of_layers(draft, "layer_types", {full, sliding}, [](std::size_t) { return full; }));
    return;
  }
  std::int64_t const first = given.integer_or("max_window_layers", 0);
  read_windows(draft, [first](std::size_t l) {
    return static_cast<std::int64_t>(l) >= first ? sliding : full;
  });
}

void read_qwen2(text_draft& draft) {
  draft.base.qkv_bias = true;
  read_usual(draft);
  read_flagged_windows(draft);
}

void read_qwen3(text_draft& draft) {
  draft.base.head_norm = query_key_norm::each_head;
  read_attention_bias(draft);
  read_usual(draft);
  read_flagged_windows(draft);
}

void read_smollm3(text_draft& draft) {
  read_attention_bias(draft);
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_usual(draft);
  config_fields const& given = draft.given;
  if (!given.flag("use_sliding_window")) return read_flagged_windows(draft);
  // Layers without rotary positions have the windows.
  std::vector<std::int64_t> rotary;
  if (given.has("no_rope_layers")) rotary = given.integers("no_rope_layers");
  std::int64_t const period = given.integer_or("no_rope_layer_interval", 4, 1);
  read_windows(draft, [&](std::size_t l) {
    bool const is_rotary =
        l < rotary.size() ? rotary[l] != 0 : (static_cast<std::int64_t>(l) + 1) % period != 0;
    return is_rotary ? full : sliding;
  });
}

void read_phi3(text_draft& draft) {
  read_usual(draft);
  read_windows(draft, always_sliding);
}

void read_starcoder2(text_draft& draft) {
  auto& base = draft.base;
  base.norm = norm_kind::layer;
  base.feed_forward = mlp_kind::plain;
  base.qkv_bias = draft.given.flag("use_bias", true);
  base.output_bias = base.qkv_bias;
  base.mlp_bias = base.qkv_bias;
  read_usual(draft);
  read_windows(draft, always_sliding);
}

/// A number or the letters of a pattern such as "LLLG".
std::int64_t pattern_of(config_fields const& given, std::int64_t usual) {
  if (!given.has("sliding_window_pattern")) return usual;
  if (!given.at("sliding_window_pattern").is_string()) {
    return given.integer("sliding_window_pattern", 0);
  }
  std::string const letters = given.text("sliding_window_pattern");
  std::string const expected = std::string(letters.empty() ? 0 : letters.size() - 1, 'L') + 'G';
  if (letters != expected) {
    given.refuse("sliding_window_pattern", "must be letters L and a last G");
  }
  return static_cast<std::int64_t>(letters.size());
}

void read_gemma2(text_draft& draft) {
  check_activation(draft.given, "hidden_activation");
  draft.base.placement = norm_placement::both;
  read_attention_bias(draft);
  read_usual(draft);
  read_windows(draft, full_every(pattern_of(draft.given, 2)));
}

void read_gemma3(text_draft& draft) {
  check_activation(draft.given, "hidden_activation");
  draft.base.placement = norm_placement::both;
  draft.base.head_norm = query_key_norm::each_head;
  read_attention_bias(draft);
  read_usual(draft);
  std::int64_t const period = pattern_of(draft.given, 6);
  read_windows(draft, full_every(period));
  if (!draft.given.flag("use_bidirectional_attention")) return;
  draft.given.refuse("use_bidirectional_attention", "but attention to later tokens is not read");
}

void read_vaultgemma(text_draft& draft) {
  check_activation(draft.given, "hidden_activation");
  read_attention_bias(draft);
  read_usual(draft);
  read_windows(draft, full_every(2));
}

void read_cohere2(text_draft& draft) {
  draft.base.placement = norm_placement::parallel;
  read_attention_bias(draft);
  read_usual(draft);
  std::int64_t const period = pattern_of(draft.given, 4);
  read_windows(draft, full_every(period));
}

void read_olmo3(text_draft& draft) {
  draft.base.placement = norm_placement::after;
  draft.base.head_norm = query_key_norm::whole_width;
  read_attention_bias(draft);
  read_usual(draft);
  read_windows(draft, full_every(4));
}

void read_exaone4(text_draft& draft) {
  draft.base.placement = norm_placement::after;
  draft.base.head_norm = query_key_norm::each_head;
  read_usual(draft);
  std::int64_t const period = pattern_of(draft.given, 4);
  bool const has_windows = draft.given.has("sliding_window");
  read_windows(draft, full_every(has_windows ? period : 0));
}

void read_cwm(text_draft& draft) {
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_usual(draft);
  read_windows(draft, [](std::size_t l) { return l % 4 == 0 ? full : sliding; });
}

void read_granite_swa(text_draft& draft) {
  read_attention_bias(draft);
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  draft.base.sinks = true;
  read_usual(draft);
  read_windows(draft, [](std::size_t l) { return l % 4 == 0 ? full : sliding; });
}

}  // namespace

std::vector<text_family> windowed_text_families() {
  neutral_field const no_bias{"attention_bias", neutral_value::off, "it has no biases"};
  neutral_field const no_mlp_bias{"mlp_bias", neutral_value::off, "it has no biases"};
  neutral_field const no_head_bias{"lm_head_bias", neutral_value::off, "it has no biases"};
  return {
      {{"mistral", "ministral", "ministral3"}, read_mistral},
      {{"qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"}, read_qwen2},
      {{"qwen3", "qwen3_vl_text"}, read_qwen3},
      {{"smollm3"}, read_smollm3},
      {{"phi3", "phi4_multimodal"}, read_phi3, {}, {no_bias, no_mlp_bias, no_head_bias}},
      {{"starcoder2"},
       read_starcoder2,
       {},
       {{"norm_type", neutral_value::layer_norm, "its norms are layer norms"},
        {"mlp_type", neutral_value::usual, "its layers are plain"}}},
      {{"gemma2"}, read_gemma2},
      {{"gemma3_text"}, read_gemma3, {{"_sliding_window_pattern", "sliding_window_pattern"}}},
      {{"vaultgemma"}, read_vaultgemma},
      {{"cohere2"}, read_cohere2},
      {{"olmo3"}, read_olmo3},
      {{"exaone4"}, read_exaone4},
      {{"cwm"}, read_cwm},
      {{"granite_swa"}, read_granite_swa},
  };
}

}  // namespace examples
