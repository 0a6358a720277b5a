// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the number of groups of counted demands.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/detail/bounds/conflict_bound.hpp>
#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/detail/bounds/pattern_prices.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the bound from one resource: L2 and, for capacities below 256, prices of patterns.
/// `ascending(k)` is the index of the demand at place k in ascending order.
template <class Value, class Ascending>
[[nodiscard]] std::size_t counted_resource_bound(std::span<std::uint64_t const> counts,
                                                 Value const& value, Ascending const& ascending,
                                                 std::int64_t capacity) {
  std::size_t const bound = martello_toth_bound(
      counts.size(), [&](std::size_t k) { return value(ascending(k)); },
      [&](std::size_t k) { return counts[ascending(k)]; }, capacity);
  constexpr std::int64_t max_priced = 255;
  if (capacity > max_priced) return bound;
  std::vector<std::uint64_t> by_value(static_cast<std::size_t>(capacity) + 1, 0);
  for (std::size_t k = 0; k != counts.size(); ++k) {
    by_value[static_cast<std::size_t>(value(k))] += counts[k];
  }
  // The prices multiply counts by numbers of samples in a group.
  constexpr std::uint64_t max_count =
      (std::uint64_t{1} << 63) / static_cast<std::size_t>(max_priced);
  if (*std::max_element(by_value.begin(), by_value.end()) > max_count) return bound;
  return std::max(bound, counted_pattern_bound(by_value));
}

/// Returns the largest bound for samples that all fit an empty group: `counts[k]` samples have
/// demand k. With one resource, demands must ascend. Complexity: linear in the demands times R^2,
/// and with several resources a radix sort for each.
template <class Layout>
[[nodiscard]] std::size_t histogram_bound(measured<Layout> const& input,
                                          std::span<std::uint64_t const> counts) {
  constexpr std::size_t kinds = Layout::amounts_type::size();
  std::size_t bound = input.size() == 0 ? 0 : 1;
  for (std::size_t r = 0; r != kinds; ++r) {
    auto const value = input.amounts_of(r);
    auto const raise = [&](auto const& ascending) {
      bound = std::max(bound, counted_resource_bound(counts, value, ascending, input.capacity[r]));
    };
    if constexpr (kinds == 1) {
      raise([](std::size_t k) { return k; });
    } else {
      auto const order = order_descending(counts.size(), value);
      raise([&order](std::size_t k) { return order[order.size() - 1 - k]; });
    }
    for (std::size_t s = 0; s != kinds; ++s) {
      if (r == s) continue;
      bound = std::max(bound,
                       conflict_bound(counts.size(), value, input.capacity[r], input.amounts_of(s),
                                      input.capacity[s], [&](std::size_t k) { return counts[k]; }));
    }
  }
  return bound;
}

}  // namespace omnibal::inline v0::detail
