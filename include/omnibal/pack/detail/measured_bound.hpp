// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the number of groups that every packer reports.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/bounds/conflict_bound.hpp>
#include <omnibal/pack/detail/bounds/counted_bound.hpp>
#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/detail/bounds/rounded_volume.hpp>
#include <omnibal/pack/detail/counted_values.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Returns the bound from one integer resource: the larger of L2 and, if the values are counted,
/// the bound from patterns.
template <class Value>
[[nodiscard]] std::size_t integer_bound(std::size_t count, Value const& value,
                                        std::int64_t capacity) {
  if (is_countable(count, capacity)) return counted_bound(count_values(count, value, capacity));
  bucketed_martello_toth bound(count, capacity);
  for (std::size_t i = 0; i != count; ++i) bound.add(value(i));
  if (bound.needs_values()) {
    for (std::size_t i = 0; i != count; ++i) bound.add_within(value(i));
  }
  return bound.bound();
}

/// Returns the largest of the bounds that every packer can afford, for samples that all fit an
/// empty group.
template <class Layout>
[[nodiscard]] std::size_t measured_bound(measured<Layout> const& input) {
  using amounts_type = typename Layout::amounts_type;
  std::size_t const count = input.size();
  std::size_t bound = count == 0 ? 0 : 1;
  for (std::size_t r = 0; r != amounts_type::size(); ++r) {
    auto const value = input.amounts_of(r);
    auto const capacity = input.capacity[r];
    if constexpr (std::integral<typename amounts_type::value_type>) {
      bound = std::max(bound, integer_bound(count, value, capacity));
      for (std::size_t s = 0; s != amounts_type::size(); ++s) {
        if (r == s) continue;
        bound = std::max(
            bound, conflict_bound(count, value, capacity, input.amounts_of(s), input.capacity[s]));
      }
    } else {
      bound = std::max(bound, rounded_volume_bound(count, value, capacity));
    }
  }
  return bound;
}

}  // namespace omnibal::inline v0::detail
