#pragma once

/// \file
/// The block that layers of vision and audio towers have in common.

#include <omnibal/cost/detail/attention.hpp>
#include <omnibal/cost/detail/feed_forward.hpp>
#include <omnibal/cost/detail/transformer_block.hpp>

namespace omnibal::inline v0::detail {

/// As many key-value heads as heads, no mask, a dense feed-forward part.
template <class Tower>
[[nodiscard]] transformer_block tower_block(char const* function, Tower const& tower) {
  transformer_block made{.function = function,
                         .hidden = tower.hidden,
                         .norm = tower.norm,
                         .kernel = tower.kernel,
                         .dropout = tower.dropout,
                         .training = tower.training};
  made.self = attention{.hidden = tower.hidden,
                        .context_width = tower.hidden,
                        .heads = tower.heads,
                        .key_value_heads = tower.heads,
                        .head_size = tower.head_size,
                        .norm = tower.norm,
                        .kernel = tower.kernel,
                        .input_bias = tower.qkv_bias,
                        .output_bias = tower.output_bias,
                        .dropout = tower.dropout};
  made.dense = dense_mlp{.hidden = tower.hidden,
                         .width = tower.mlp,
                         .kind = tower.feed_forward,
                         .has_bias = tower.mlp_bias};
  return made;
}

}  // namespace omnibal::inline v0::detail
