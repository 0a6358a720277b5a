#pragma once

/// \file
/// The options of `best_fit_decreasing`.

#include <cstddef>

namespace omnibal::inline v0 {

/// What makes one sample larger than another.
enum class size_measure {
  sum_of_shares,  ///< the shares of the capacity that it takes, summed over the resources
  largest_share,  ///< the largest of these shares
};

struct best_fit_decreasing_options {
  size_measure measure = size_measure::sum_of_shares;
  /// For several resources: the largest number of orders to try, of which the fewest groups are
  /// kept. Orders after the first vary the measure at random, always in the same way. They are
  /// tried until the lower bound is reached, and as long as attempts times samples are at most
  /// 16384. More than one also allows random groups that come out full, with best fit of the rest:
  /// of few samples as a further attempt, of many instead of it where a part of the samples takes
  /// no more groups that way.
  std::size_t attempts = 256;
};

}  // namespace omnibal::inline v0
