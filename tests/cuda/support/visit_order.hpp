// SPDX-License-Identifier: Apache-2.0
#pragma once

// The orders in which the serial backend runs what a device runs at once.

#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace test {

/// Where parallel steps depend on each other, two of these orders give different results.
enum class visit_order { forward, backward, shuffled };

/// Calls `f(i)` for all `i < n` in one of the orders; `seed` chooses the shuffled one.
template <class F>
void visit(std::size_t n, visit_order order, std::uint64_t seed, F&& f) {
  switch (order) {
    case visit_order::forward:
      for (std::size_t i = 0; i != n; ++i) f(i);
      return;
    case visit_order::backward:
      for (std::size_t i = n; i-- != 0;) f(i);
      return;
    case visit_order::shuffled:
      omnibal::rng::permutation const positions(n, seed);
      for (std::size_t i = 0; i != n; ++i) f(static_cast<std::size_t>(positions(i)));
      return;
  }
}

}  // namespace test
