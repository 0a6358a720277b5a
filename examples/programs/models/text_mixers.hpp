// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers of language models without attention. For the sources of families that have them.

#include "attention_kinds.hpp"
#include "text_draft.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A layer without attention, where another part mixes the tokens.
inline omnibal::transformer without_attention(omnibal::transformer layer) {
  layer.heads = 0;
  layer.kv_heads = 0;
  layer.head_size = 0;
  layer.latent = {};
  layer.gate = omnibal::attention_gate::none;
  layer.head_norm = omnibal::query_key_norm::none;
  layer.qkv_bias = false;
  layer.output_bias = false;
  layer.span = {};
  // Biases of latent attention.
  layer.other_parameters = 0;
  return layer;
}

/// Kinds of layers with the older names in the place of the newer ones.
inline std::vector<std::string> mixed_kinds(
    text_draft const& draft, std::string_view field,
    std::function<std::string_view(std::size_t)> const& rule) {
  auto kinds = kinds_of_layers(
      draft, field,
      {linear, full, "mamba", "attention", "hybrid", "conv", "moe", "mlp", "short_conv"}, rule);
  for (std::string& kind : kinds) {
    if (kind == "attention") kind = full;
    if (kind == "mamba") kind = linear;
    if (kind == "short_conv") kind = "conv";
  }
  return kinds;
}

}  // namespace examples
