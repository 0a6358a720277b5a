// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Parts of a layer that mix tokens in linear time: linear attention, state spaces, convolutions.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The parts that a layer has. Most layers have both; a layer of Nemotron-H has only one.
enum class layer_parts {
  both,
  mixer,         ///< attention or another part that mixes tokens
  feed_forward,  ///< a dense part or experts
};

/// The decay of the state of linear attention.
enum class delta_decay {
  each_head,  ///< a number for each head and token (gated delta net: Qwen3-Next, Qwen3.5)
  /// A number for each key number of a value head, by a low-rank product (Kimi Delta Attention).
  each_number,
  /// A number for each key number of a value head; whole matrices compute decay and gate (Ling 3).
  each_number_direct,
  fixed,  ///< a constant of each head, without steps (lightning attention of MiniMax)
};

/// A gated delta net: linear attention with a state of `key_size` x `value_size` numbers for each
/// value head. There is none if `key_heads` is 0.
///
/// In the formulas K and V are the widths of all keys and of all values, and T is the number of
/// tokens. The projections are queries and keys (2K), values and the output gate (2V), and a decay
/// and a step for each value head. A convolution of `convolution` tokens follows queries, keys and
/// values. Forward FLOPs of the state are 6 T V * key_size: a token reads the state for its key,
/// adds a product of key and value, and reads the state for its query. With a fixed decay they are
/// 4 T V * key_size, because a token does not read the state for its key. The norm of the output
/// then has one weight for each number of the output. Kernels that work on chunks compute more;
/// these FLOPs depend on the kernel and are not counted. The layer keeps the tensors of
/// flash-linear-attention, in which value heads share keys without copies. Layers that repeat the
/// keys for each value head (Megatron-Core, transformers) keep more.
///
/// Source: Yang, Kautz and Hatamizadeh, "Gated delta networks", 2024 (arXiv 2412.06464); Kimi Team,
/// "Kimi Linear", 2025 (arXiv 2510.26692).
struct delta_net {
  std::int64_t key_heads = 0;
  /// The number of value heads; 0 means the number of key heads.
  std::int64_t value_heads = 0;
  std::int64_t key_size = 0;
  /// The size of a value; 0 means `key_size`.
  std::int64_t value_size = 0;
  /// The number of tokens that the convolution reads; 0 means that there is none.
  std::int64_t convolution = 4;
  delta_decay decay = delta_decay::each_head;
  /// False if the outputs have a norm but no gate.
  bool has_gate = true;

  [[nodiscard]] friend bool operator==(delta_net const&, delta_net const&) = default;
};

/// A selective state space (Mamba). If `heads` is 0, there is none.
///
/// The width is heads * head_size. Mamba-2 computes one step for each head from the input of the
/// layer. Mamba-1 has `step_rank` > 0: it computes the inputs of the state and the steps from the
/// convolved tokens, and the size of a head is one. Forward FLOPs of the state are 4 T * width *
/// state: a token adds a product to the state and reads the state. Mamba-2 keeps the tensors of its
/// fused kernel, which recomputes the convolution. Mamba-1 keeps the tensors of separate kernels;
/// with `selective` it keeps the tensors of its fused kernel.
///
/// Source: Gu and Dao, "Mamba", 2023 (arXiv 2312.00752); Dao and Gu, "Transformers are SSMs", 2024
/// (arXiv 2405.21060).
struct state_space {
  std::int64_t heads = 0;
  std::int64_t head_size = 1;
  /// The numbers of the state for each number of the width.
  std::int64_t state = 0;
  /// The groups of heads that share the inputs of their states.
  std::int64_t groups = 1;
  std::int64_t convolution = 4;
  /// The rank of the steps of Mamba-1; 0 means Mamba-2.
  std::int64_t step_rank = 0;
  bool convolution_bias = true;
  bool projection_bias = false;
  /// True if a norm with the gate precedes the output (Mamba-2), or if steps and inputs of the
  /// state have norms (Mamba-1 of Jamba).
  bool has_norm = true;

  [[nodiscard]] friend bool operator==(state_space const&, state_space const&) = default;
};

/// A gated short convolution (LFM2): a product of two projections, a convolution of each channel
/// over the last `tokens` tokens, and a gate. There is none if `tokens` is 0.
struct short_convolution {
  std::int64_t tokens = 0;
  /// True if the projections and the convolution have biases.
  bool has_bias = false;

  [[nodiscard]] friend bool operator==(short_convolution const&,
                                       short_convolution const&) = default;
};

}  // namespace omnibal::inline v0
