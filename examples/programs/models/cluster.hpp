// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Devices of clusters by the names of `omnibal::machines`, with memory and peak.

#include <omnibal/cost/machine.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

struct cluster {
  std::string name;
  /// The fitted constants.
  omnibal::machine on{};
  /// By the data sheets: bytes of a device, and dense FLOPs per second in bf16.
  std::int64_t memory_bytes = 0;
  double peak_flops = 0;
};

/// All that `omnibal::machines` has, without the starts of fits.
[[nodiscard]] std::vector<cluster> const& known_clusters();

}  // namespace examples
