// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layer of a language model.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A layer of a language model, by the numbers of its public configuration. The layer has attention
/// with grouped (GQA) or latent (MLA) keys and values, a dense or mixed feed-forward part, and
/// cross-attention.
///
/// An existing layer is `transformer{.hidden = 6144, .heads = 48, .kv_heads = 8, .mlp = 16384}`. In
/// the formulas h and m are the widths, q and k are the widths of all queries and of all keys. T is
/// the number of tokens, and S is the sum of squares of the lengths of the documents.
///
/// - Forward FLOPs are 2T (2hq + 2hk + 3hm) + 2qS (causal, flash). Without a gate 2hm replaces 3hm.
///   Without a mask or with unfused attention 4qS replaces 2qS. Backward FLOPs are twice the
///   forward FLOPs. If nothing is trained, they are once for the matrices and twice for the scores.
///   MLA and experts count by their products; routing is assumed to be even.
/// - Kept bytes of a token, in bf16: norms 8h (12h with two norms of each part), queries and output
///   4q, keys and values 4k, hidden 6m (plain 4m); per-head norms 2(q + k), layer scales 4h,
///   dropout masks 2h more; unfused attention 2 (with dropout 5) for each score. `selective`
///   recomputes the outputs of norms and activations, or the scores if attention is unfused. `full`
///   keeps the input, 2h. A few numbers for each token or head are not counted: statistics of norms
///   and of flash attention. If nothing is trained, inputs of matrices are not kept.
///
/// Preconditions: all widths are positive. `tensor` divides heads and hidden widths; `tensor`
/// divides the key-value heads or is a multiple of them. Heads that `tensor` does not divide must
/// be padded, with `head_size` given. Complexity: constant. Allocates nothing. Determinism:
/// portable. Errors: `std::invalid_argument` that names the number, `std::overflow_error` above
/// 2^63 - 1. Source: Korthikanti et al., "Reducing activation recomputation in large transformer
/// models", 2022 (arXiv 2205.05198); DeepSeek-AI, "DeepSeek-V2", 2024 (arXiv 2405.04434).
struct transformer {
  std::int64_t hidden = 0;
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

  /// Returns the cost of the layer for `batch.documents` and `batch.context`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    detail::check_sequences("transformer", "documents", batch.documents);
    check_context(batch);
    return block().cost(batch.documents, batch.context, degrees, bytes);
  }

  /// Returns the forward and backward FLOPs of the whole layer by the length of a document, without
  /// the scores and the context of its cross-attention.
  [[nodiscard]] quadratic_cost sample_cost() const {
    return detail::sample_cost(*this, &micro_batch_work::documents);
  }

 private:
  static void check_context(micro_batch_work const& batch) {
    auto const& context = batch.context;
    detail::check_between("transformer", "context.tokens", context.tokens, 0, detail::max_tokens);
    detail::int128 const most = detail::int128{batch.documents.tokens} * context.tokens;
    if (context.pairs >= 0 && context.pairs <= most) return;
    detail::throw_number(
        "transformer", "context.pairs", context.pairs,
        "must be from 0 to the tokens of the documents times those of the context");
  }

  [[nodiscard]] detail::transformer_block block() const {
    auto made = detail::tower_block("transformer", *this);
    detail::attention& self = *made.self;
    if (kv_heads != 0) self.key_value_heads = kv_heads;
    self.latent = latent;
    self.head_norm = head_norm;
    made.placement = placement;
    self.mask = mask;
    if (cross.context_width != 0) {
      made.cross = self;
      made.cross->context_width = cross.context_width;
      made.cross->latent = {};
      made.cross->mask = attention_mask::full;
      if (cross.placement == cross_placement::instead_self) made.self.reset();
    }
    if (experts.routed != 0) {
      made.experts =
          detail::expert_mixture{.hidden = hidden, .experts = experts, .kind = feed_forward};
      if (mlp == 0) made.dense.reset();
    }
    return made;
  }
};

}  // namespace omnibal::inline v0
