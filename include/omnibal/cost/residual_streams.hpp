// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Several streams of residual sums.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// Several streams of residual sums (AltUp), of which a layer reads one, and a low-rank product in
/// parallel with attention (LAuReL), as in Gemma 3n. If `count` is 0, there is one stream.
///
/// N is `count`, r is `low_rank` and h is the width. Before its parts, a layer predicts the streams
/// with N x N numbers for each token; after its parts, it corrects them with N numbers. A router of
/// h x N parameters computes both. Forward FLOPs of T tokens are 2T (2hN + N^3 + N^2 + hN^2 + 2hr).
/// Kept bytes of a token in bf16 are 2N h for the streams, 10h for routers, differences and scales,
/// and 2(r + h) if r is not 0. All streams are sent at a cut. The embedding computes the other
/// streams by N - 1 matrices of h x h, and the head joins them by N - 1 more matrices. Source:
/// Baykal et al., "Alternating updates for efficient transformers", 2023 (arXiv 2301.13310).
struct residual_streams {
  std::int64_t count = 0;
  /// The rank of the product in parallel with attention; 0 means none.
  std::int64_t low_rank = 0;

  [[nodiscard]] friend bool operator==(residual_streams const&, residual_streams const&) = default;
};

}  // namespace omnibal::inline v0
