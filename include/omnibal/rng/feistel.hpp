// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The shuffler with random access.

#include <omnibal/config.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::rng {

/// Shuffles by a `permutation` of the positions. The element that moves to position i comes from
/// position `order(n, round)(i)`. A GPU thread or a resumed sampler can compute this position
/// without the positions of the other elements.
///
/// Models `shuffler` and, through `order`, `random_access_shuffler`. Complexity: linear. A call on
/// a span allocates a copy of the elements; `order` allocates nothing. Determinism: portable, the
/// same on host and device.
struct feistel {
  std::uint64_t seed = 0;

  /// True because the order does not depend on the type of the elements.
  static constexpr bool any_element = true;

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr permutation order(std::uint64_t n,
                                                                std::uint64_t round) const {
    return {n, engine(seed, round).word(0)};
  }

  template <class T>
  void operator()(std::span<T> items, std::uint64_t round) const {
    std::vector<T> const before(items.begin(), items.end());
    permutation const positions = order(items.size(), round);
    for (std::size_t i = 0; i != items.size(); ++i) {
      items[i] = before[static_cast<std::size_t>(positions(i))];
    }
  }
};

}  // namespace omnibal::inline v0::rng
