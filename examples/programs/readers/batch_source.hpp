// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Where the global batches of post_balance come from.

#include "dataset.hpp"
#include "modality_mix.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

/// What ranks draw for their steps: samples of the synthetic mix, or those of a data set in random
/// order, each once before any comes again.
class batch_source {
 public:
  /// The mix.
  batch_source() = default;

  /// The tiles of a sample are one piece; its other tokens are text. Errors: `std::runtime_error`
  /// for a data set without samples and for a sample with fewer tokens than its tiles have in the
  /// language model, `tile_tokens` each.
  batch_source(dataset data, std::int64_t tile_tokens);

  /// What one of `ranks` ranks draws; the same for equal numbers everywhere.
  [[nodiscard]] std::vector<multimodal_sample> draw(mix_draw const& which, std::size_t ranks) const;

  /// Of the data set; zero for the mix, which has no end.
  [[nodiscard]] std::size_t size() const { return samples_.size(); }

 private:
  std::vector<sample> samples_;
  std::int64_t tile_tokens_ = 0;
};

}  // namespace examples
