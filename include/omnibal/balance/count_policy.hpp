// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Limits on the number of samples in a part.

#include <omnibal/detail/part_speeds.hpp>

namespace omnibal::inline v0 {

/// A balancer's promise about the number of samples in each part.
enum class count_policy {
  /// No promise: the counts are arbitrary.
  any,
  /// All parts have the same number of samples. The number of samples must be a multiple of the
  /// number of parts.
  equal,
  /// The counts of any two parts differ by at most one.
  at_most_one_apart,
};

/// Options of `lpt`, on a host and on a device.
struct lpt_options {
  count_policy count = count_policy::any;
  /// The speed of each part, or one value for all; empty for equal speeds. The array must outlive
  /// the option. A device accepts only equal speeds.
  detail::speed_list speeds = {};
};

/// Whether the number of samples in a part may change.
enum class part_counts { free, kept };

/// The rule of `rebalance` for the number of samples on each rank.
enum class rank_counts {
  /// No rule: the counts are arbitrary.
  any,
  /// Each rank keeps its number of samples, so that samples are only exchanged.
  kept,
  /// All ranks have the same number of samples. The number of samples must be a multiple of the
  /// number of ranks.
  equal,
  /// The counts of any two ranks differ by at most one.
  at_most_one_apart,
};

}  // namespace omnibal::inline v0
