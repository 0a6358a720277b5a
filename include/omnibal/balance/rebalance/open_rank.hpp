// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples of a rank that may be exchanged, and the value of an exchange.

#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// A sample that may be exchanged. `bytes` is the increase of the moved bytes if the sample leaves
/// its rank: zero if it is already away from home.
template <std::size_t R>
struct movable_sample {
  std::uint32_t index;
  resources<R> cost;
  std::int64_t bytes;
};

/// The samples of a rank from the largest to the smallest, and their load.
template <std::size_t R>
struct open_rank {
  std::vector<movable_sample<R>> samples;
  resources<R> load;
  /// Whether the limits on counts allow one sample less, and one sample more.
  bool may_lose = true;
  bool may_gain = true;
};

/// Returns the excess of a load over the target, summed over the kinds.
template <std::size_t R>
[[nodiscard]] constexpr std::int64_t excess_of(resources<R> const& load, std::int64_t target) {
  return sum_of(excess_above(load, target));
}

/// The value of an exchange.
struct exchange_value {
  /// The decrease of the excess of all ranks.
  std::int64_t relief = 0;
  /// The increase of the moved bytes.
  std::int64_t bytes = 0;

  /// Returns whether this exchange has more relief per byte or, if equal, more relief.
  [[nodiscard]] constexpr bool is_better_than(exchange_value const& other) const {
    int128 const value = static_cast<int128>(relief) * (static_cast<int128>(other.bytes) + 1);
    int128 const other_value = static_cast<int128>(other.relief) * (static_cast<int128>(bytes) + 1);
    return value > other_value || (value == other_value && relief > other.relief);
  }
};

}  // namespace omnibal::inline v0::detail
