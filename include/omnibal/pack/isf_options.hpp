#pragma once

/// \file
/// What `isf` is asked for, on the host and on a device.

#include <cstddef>

namespace omnibal::inline v0 {

struct isf_options {
  /// The largest number of rounds; the last one keeps every group.
  std::size_t rounds = 50;
  /// A round that keeps a smaller share of its samples than this is followed by the last round.
  double min_gain = 0.0;
};

}  // namespace omnibal::inline v0
