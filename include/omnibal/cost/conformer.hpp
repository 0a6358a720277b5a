// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts of a Conformer layer in addition to attention and one feed-forward part.

#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The products of attention that depend on the distance between two tokens.
enum class relative_positions {
  none,       ///< no products: no distances, or a number for each distance
  table,      ///< a learned vector for each distance (Shaw et al.; Granite speech)
  projected,  ///< a matrix of the layer makes the vectors of the distances (Transformer-XL; Parakeet)
};

/// The parts that make an audio layer a Conformer. If `kernel` is 0, there are none. Otherwise the
/// layer consists of a feed-forward part, attention, a convolution, a second feed-forward part, and
/// a norm of the result. Both feed-forward parts have the widths of the layer.
///
/// The convolution part consists of a norm, a gated product to `width`, a convolution of each
/// channel over `kernel` tokens, optionally a norm, an activation, and a product back to the width
/// of the layer. Forward FLOPs of T tokens are 2T (2h * width + width * kernel + width * h), and
/// 2T * width^2 more with `is_separable`. Kept bytes of a token in bf16 are 4h for the first norm
/// and 10 width. A norm after the convolution and `is_separable` each add 2 width.
///
/// Distances add 2 * heads * head_size FLOPs for each pair of a token and a vector, and keep one
/// score for each head and pair. With `projected` there are 2L vectors for L tokens, the products
/// of 2L rows and a matrix of the layer. If `positions` is not 0, there are `positions` vectors,
/// whose products are not counted. Source: Gulati et al., "Conformer", 2020 (arXiv 2005.08100).
struct conformer_parts {
  /// The number of tokens that the convolution reads; 0 means that the layer is not a Conformer.
  std::int64_t kernel = 0;
  /// The number of channels of the convolution; 0 means the width of the layer.
  std::int64_t width = 0;
  /// True if the two products of the convolution have biases.
  bool has_bias = true;
  bool kernel_bias = false;
  /// True if a norm follows the convolution. A batch norm has the same parameters as a layer norm.
  bool has_norm = true;
  norm_kind norm = norm_kind::layer;
  /// True if a product of all channels follows the convolution (Phi-4 multimodal). It has a bias if
  /// `kernel_bias` is true.
  bool is_separable = false;
  relative_positions distances = relative_positions::none;
  /// The number of distances; 0 means twice the tokens of the clip.
  std::int64_t positions = 0;
  /// The number of keys whose scores are computed for each token, if a chunk of tokens attends to a
  /// fixed number of keys (Gemma 3n: 24); 0 means all keys of `span`.
  std::int64_t seen_keys = 0;

  [[nodiscard]] friend bool operator==(conformer_parts const&, conformer_parts const&) = default;
};

}  // namespace omnibal::inline v0
