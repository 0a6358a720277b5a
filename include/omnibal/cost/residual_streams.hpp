// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Several streams of residual sums.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// Several streams of residual sums (AltUp), one of which a layer reads, and a low-rank product in
/// parallel with attention (LAuReL), as in Gemma 3n. There is one stream if `count` is 0.
///
/// N is `count`, r is `low_rank` and h is the width. A layer predicts the streams with N x N
/// numbers of each token, and corrects them with N numbers behind its parts. Both come from a
/// router of h x N numbers. Forward FLOPs of T tokens are 2T (2hN + N^3 + N^2 + hN^2 + 2hr). Kept
/// bytes of a token in bf16 are 2N h for the streams, 10h for routers, differences and scales, and
/// with r 2(r + h). A cut sends all streams. The embedding makes the other streams by N - 1
/// matrices of h x h, and the head joins them by N - 1 further matrices. Source: Baykal et al.,
/// "Alternating updates for efficient transformers", 2023 (arXiv 2301.13310).
struct residual_streams {
  std::int64_t count = 0;
  /// The rank of the product in parallel with attention; 0 means none.
  std::int64_t low_rank = 0;

  [[nodiscard]] friend bool operator==(residual_streams const&, residual_streams const&) = default;
};

}  // namespace omnibal::inline v0
