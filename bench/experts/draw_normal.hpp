// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omnibal/rng/engine.hpp>

namespace bench {

/// Returns a number of the standard normal distribution.
inline double draw_normal(omnibal::rng::engine& random) {
  double sum = -6;
  for (int i = 0; i != 12; ++i) {
    sum += static_cast<double>(omnibal::rng::below(random, 1 << 24)) / (1 << 24);
  }
  return sum;
}

}  // namespace bench
