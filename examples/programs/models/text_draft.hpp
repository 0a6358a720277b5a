// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts of a language model that the readers of all families share.

#include "config_fields.hpp"

#include <omnibal/cost/models.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A language model while its configuration is read.
struct text_draft {
  config_fields const& given;
  omnibal::mixed_language_model model{};
  /// The layer that the others resemble.
  omnibal::transformer base{};
  /// The layers from the first to the last.
  std::vector<omnibal::transformer> layers{};
};

/// The names of the fields of a mixture of experts. Empty: the family has no such field.
struct expert_fields {
  std::string_view count = "num_experts";
  std::string_view active = "num_experts_per_tok";
  std::string_view width = "moe_intermediate_size";
  std::string_view shared_count{};
  /// The width of all shared experts together.
  std::string_view shared_width{};
};

/// Reads the widths of a model, its vocabulary, the embedding and the head.
void read_ends(text_draft& draft);

/// Reads heads: `num_attention_heads`, `num_key_value_heads` and `head_dim`.
void read_heads(text_draft& draft);

/// Reads latent attention. `attention_bias` adds biases to the products with low ranks.
void read_latent(text_draft& draft);

/// Reads the width of the dense part and checks the activation.
void read_dense(text_draft& draft, std::string_view width = "intermediate_size");

/// Checks that an activation is known to have no parameters.
void check_activation(config_fields const& given, std::string_view name);

/// Makes `num_hidden_layers` layers of the base.
void fill_layers(text_draft& draft);

/// Reads a model of equal layers with grouped keys and values and a dense part.
void read_usual(text_draft& draft);

/// Sets biases of queries, keys and values, and of the output, from one flag.
void read_attention_bias(text_draft& draft, std::string_view field = "attention_bias");

[[nodiscard]] omnibal::expert_layer read_experts(config_fields const& given,
                                                 expert_fields const& fields);

/// The kinds of the layers: the list of a field, or a rule by the number of the layer. Errors:
/// `input_error` for a list of another length and for a kind that is not among `known`.
[[nodiscard]] std::vector<std::string> kinds_of_layers(
    text_draft const& draft, std::string_view field, std::initializer_list<std::string_view> known,
    std::function<std::string_view(std::size_t)> const& rule);

/// Gives windows to the layers that `layer_types` or the rule names "sliding_attention".
void read_windows(text_draft& draft, std::function<std::string_view(std::size_t)> const& rule,
                  std::string_view width = "sliding_window");

/// Calls `sparse(layer)` for the layers for which `is_sparse(number)` is true.
template <class IsSparse>
void set_experts(text_draft& draft, omnibal::expert_layer const& experts,
                 IsSparse const& is_sparse) {
  for (std::size_t l = 0; l != draft.layers.size(); ++l) {
    if (!is_sparse(l)) continue;
    draft.layers[l].experts = experts;
    draft.layers[l].mlp = 0;
  }
}

/// Makes all layers sparse.
void all_sparse(text_draft& draft, omnibal::expert_layer const& experts);

/// Reads the ends and the heads; the family says the rest.
void read_sparse_base(text_draft& draft);

/// Makes the layers from a first number on sparse: `first_k_dense_replace`, `moe_layer_freq`, or a
/// list `mlp_layer_types`.
void read_sparse_layers(text_draft& draft, omnibal::expert_layer const& experts,
                        std::int64_t usual_first = 0);

/// Makes layers sparse by `decoder_sparse_step` and `mlp_only_layers`.
void read_sparse_steps(text_draft& draft, omnibal::expert_layer const& experts);

/// Counts a bias of the router for each expert, where a class has it as a parameter.
void add_router_biases(text_draft& draft);

/// Counts the biases of gated shared experts.
void add_shared_biases(text_draft& draft);

/// Adds layers of multi-token prediction like the last layer, if the file has the field.
void read_prediction(text_draft& draft, std::string_view field = "num_nextn_predict_layers");

/// Joins equal layers to runs.
[[nodiscard]] omnibal::mixed_language_model finished(text_draft&& draft);

}  // namespace examples
