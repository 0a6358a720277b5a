// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layer of a language model.

#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/detail/transformer_block.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/residual_streams.hpp>
#include <omnibal/cost/token_mixers.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A layer of a language model, by the numbers of its public configuration. The layer mixes tokens
/// by attention with grouped (GQA) or latent (MLA) keys and values, by a gated delta net, by a
/// state space or by a short convolution. A layer may have several of these in parallel.
/// Cross-attention and a feed-forward part, dense or with experts, follow. A part is absent if its
/// number of heads, tokens or experts or its width is 0. `parts` selects whether the layer mixes
/// tokens, has a feed-forward part, or both.
///
/// An example is `transformer{.hidden = 6144, .heads = 48, .kv_heads = 8, .mlp = 16384}`. In the
/// formulas h and m are the widths, q and k are the widths of all queries and of all keys. T is the
/// number of tokens, and S is the sum of squares of the lengths of the documents. With a `span`, S
/// is the sum of `span.squares(length)`, and the layer requires `sequences::spans`.
///
/// - Forward FLOPs are 2T (2hq + 2hk + 3hm) + 2qS (causal, flash). Without a gate 2hm replaces 3hm.
///   Without a mask or with unfused attention 4qS replaces 2qS. Backward FLOPs are twice the
///   forward FLOPs. If nothing is trained, they equal the forward FLOPs for the matrices and are
///   twice the forward FLOPs for the scores. For MLA and experts, the FLOPs of their products are
///   counted; all experts are assumed to receive the same number of tokens.
/// - Kept bytes of a token, in bf16: norms 8h (12h with two norms of each part), queries and output
///   4q, keys and values 4k, hidden 6m (plain 4m). Per-head norms add 2(q + k), layer scales 4h and
///   dropout masks 2h. Unfused attention adds 2 (with dropout 5) for each score. `selective`
///   recomputes the outputs of norms and activations, or the scores if attention is unfused. With
///   `full`, only the input is kept, 2h. A gate of attention adds its width twice, and an indexer
///   adds its queries and keys. The comments of `delta_net` and `state_space` describe the bytes
///   that recurrent parts keep. A few numbers for each token or head are not counted: statistics of
///   norms and of flash attention. If nothing is trained, the inputs of matrices are not kept.
///
/// Preconditions: all widths are positive. `tensor` divides the number of heads and the hidden
/// widths; `tensor` divides the number of key-value heads or is a multiple of it. If `tensor` does
/// not divide the number of heads, pad the heads and set `head_size`. Complexity: constant.
/// Allocates nothing. Determinism: portable. Errors: `std::invalid_argument` that names the number,
/// `std::overflow_error` above 2^63 - 1. Source: Korthikanti et al., "Reducing activation
/// recomputation in large transformer models", 2022 (arXiv 2205.05198); DeepSeek-AI, "DeepSeek-V2",
/// 2024 (arXiv 2405.04434).
struct transformer {
  std::int64_t hidden = 0;
  /// The number of heads; 0 means that another part mixes the tokens.
  std::int64_t heads = 0;
  /// The number of key-value heads; 0 means the number of heads.
  std::int64_t kv_heads = 0;
  /// The width of a head; 0 means hidden / heads.
  std::int64_t head_size = 0;
  /// The width of the dense feed-forward part; 0 if there are only experts.
  std::int64_t mlp = 0;
  mlp_kind feed_forward = mlp_kind::gated;
  norm_kind norm = norm_kind::rms;
  query_key_norm head_norm = query_key_norm::none;
  norm_placement placement = norm_placement::before;
  latent_attention latent{};
  expert_layer experts{};
  cross_attention cross{};
  attention_mask mask = attention_mask::causal;
  attention_kernel kernel = attention_kernel::flash;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool dropout = false;
  training_mode training = training_mode::all;
  /// The part of its document to which a token attends.
  attention_span span{};
  layer_parts parts = layer_parts::both;
  sparse_indexer indexer{};
  attention_gate gate = attention_gate::none;
  /// True if each head has an additional learned score in its softmax (gpt-oss).
  bool sinks = false;
  key_value_source source = key_value_source::own;
  /// The size of a value; 0 means `head_size`. Latent attention has a separate member.
  std::int64_t value_size = 0;
  delta_net delta{};
  state_space space{};
  short_convolution convolution{};
  low_rank_adapters adapters{};
  /// The number of learned numbers of the layer that belong to no product, norm or bias, such as
  /// scales.
  std::int64_t other_parameters = 0;
  /// True if `qkv_bias` includes keys; false if it means only queries and values (Whisper).
  bool key_bias = true;
  /// The size of the embedding of a token for this layer, from `embedding::for_layers`; 0 means
  /// none. The layer multiplies this embedding by a gate, and adds the product to the residual sum
  /// by a matrix and a norm.
  std::int64_t layer_input_size = 0;
  residual_streams streams{};

  /// Returns the cost of the layer for `batch.documents` and `batch.context`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    detail::check_sequences(name, "documents", batch.documents);
    check_context(batch);
    return block().cost("documents", batch.documents, batch.context, degrees, bytes);
  }

  /// Returns the forward and backward FLOPs of the whole layer as a function of the length of a
  /// document. The scores and the context of its cross-attention are not included.
  [[nodiscard]] quadratic_cost sample_cost() const {
    return detail::sample_cost(*this, &micro_batch_work::documents);
  }

  [[nodiscard]] friend bool operator==(transformer const&, transformer const&) = default;

 private:
  friend struct prediction_layer;

  static constexpr char const* name = "transformer";

  static void check_context(micro_batch_work const& batch) {
    auto const& context = batch.context;
    detail::check_between(name, "context.tokens", context.tokens, 0, detail::max_tokens);
    detail::int128 const most = detail::int128{batch.documents.tokens} * context.tokens;
    if (context.pairs >= 0 && context.pairs <= most) return;
    detail::throw_number(
        name, "context.pairs", context.pairs,
        "must be from 0 to the tokens of the documents times those of the context");
  }

  [[nodiscard]] detail::transformer_block block() const {
    auto made = detail::tower_block(name, *this);
    detail::attention& self = *made.self;
    if (kv_heads != 0) self.key_value_heads = kv_heads;
    self.latent = latent;
    self.head_norm = head_norm;
    self.mask = mask;
    self.indexer = indexer;
    self.gate = gate;
    self.sinks = sinks;
    self.source = source;
    self.value_size = value_size;
    self.key_bias = key_bias;
    made.placement = placement;
    made.span = span;
    made.adapters = adapters;
    made.other_parameters = other_parameters;
    made.layer_input_size = layer_input_size;
    made.streams = streams;
    if (cross.context_width != 0) {
      made.cross = self;
      made.cross->context_width = cross.context_width;
      made.cross->latent = {};
      made.cross->indexer = {};
      made.cross->source = key_value_source::own;
      made.cross->mask = attention_mask::full;
      if (cross.placement == cross_placement::instead_self) made.self.reset();
    }
    if (delta.key_heads != 0) made.delta = detail::delta_part{hidden, delta};
    if (space.heads != 0) made.space = detail::state_space_part{hidden, space};
    if (convolution.tokens != 0) {
      made.convolution = detail::short_convolution_part{hidden, convolution};
    }
    if (experts.routed != 0) {
      made.experts =
          detail::expert_mixture{.hidden = hidden, .experts = experts, .kind = feed_forward};
    }
    // If all parts of a kind are absent, attention or the dense part stays, so that the check of
    // its width throws.
    bool const has_other_mixer = made.delta || made.space || made.convolution;
    if (heads == 0 && (has_other_mixer || parts == layer_parts::feed_forward)) made.self.reset();
    if (mlp == 0 && (made.experts || parts == layer_parts::mixer)) made.dense.reset();
    if (parts == layer_parts::mixer && (made.dense || made.experts)) {
      detail::throw_invalid(name, "parts is mixer, but the layer has a feed-forward part");
    }
    if (parts == layer_parts::feed_forward && (made.self || made.cross || has_other_mixer)) {
      detail::throw_invalid(name, "parts is feed_forward, but the layer mixes tokens");
    }
    return made;
  }
};

}  // namespace omnibal::inline v0
