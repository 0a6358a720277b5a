#pragma once

/// \file
/// The choices that the configurations of transformers have in common.

#include <cstdint>

namespace omnibal::inline v0 {

/// Which tokens of its sequence a token attends to.
enum class attention_mask {
  causal,  ///< those before it: half of the products, where the kernel makes use of it
  full,    ///< all
};

enum class attention_kernel {
  flash,    ///< keeps no scores and skips what a causal mask hides
  unfused,  ///< computes and keeps the whole square of scores
};

/// Norms of queries and keys.
enum class query_key_norm {
  none,
  each_head,    ///< one set of weights for all heads (Qwen3)
  whole_width,  ///< a weight for each number (InternViT-6B)
};

/// RMS norms have a weight for each number, layer norms also a bias.
enum class norm_kind { rms, layer };

/// Gated (SwiGLU) has three matrices, plain two.
enum class mlp_kind { gated, plain };

/// Multi-head latent attention (DeepSeek-V2). Off where `key_value_rank` is 0; else `head_size` is
/// that of keys without position, and there are as many key heads as heads.
struct latent_attention {
  std::int64_t key_value_rank = 0;
  /// 0: queries are projected directly.
  std::int64_t query_rank = 0;
  /// Numbers of a query or key with position; keys share them between heads.
  std::int64_t rope_size = 0;
  /// Numbers of a value; 0: `head_size`.
  std::int64_t value_size = 0;
};

/// A mixture of experts. Off where `routed` is 0; else in addition to the dense layer, if `mlp` is
/// not 0.
struct expert_layer {
  std::int64_t routed = 0;
  /// Routed experts for each token.
  std::int64_t active = 0;
  /// Experts for every token.
  std::int64_t shared = 0;
  /// The width of one expert.
  std::int64_t mlp = 0;
};

enum class cross_placement {
  after_self,    ///< both, as in encoder-decoder models
  instead_self,  ///< as in every fifth layer of Llama 3.2 Vision
};

/// Attention from the documents to `workload::context`. Off where `context_width` is 0.
struct cross_attention {
  std::int64_t context_width = 0;
  cross_placement placement = cross_placement::after_self;
};

}  // namespace omnibal::inline v0
