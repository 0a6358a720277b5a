#pragma once

/// \file
/// How many samples a part may have, as an option of balancers.

namespace omnibal::inline v0 {

/// What a balancer promises about the number of samples in each part.
enum class count_policy {
  /// Nothing; only loads count.
  any,
  /// All parts have as many. The number of samples must be a multiple of the number of parts.
  equal,
  /// No part has more than one sample more than any other.
  at_most_one_apart,
};

/// Options of `lpt`, on a host and on a device.
struct lpt_options {
  count_policy count = count_policy::any;
};

/// Whether the number of samples in a part may change.
enum class part_counts { free, kept };

}  // namespace omnibal::inline v0
