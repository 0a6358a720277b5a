// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Statistics of the demands that decide how open groups are indexed.

#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The properties of the demands that the index of groups uses.
template <std::size_t R, class T>
struct demand_traits {
  /// The smallest demand of each resource.
  resources<R, T> smallest;
  /// False for a resource if one group can hold the demands of all samples in this resource.
  bool binds[R];
  /// The binding resource in which the demands have the most different values, judged by at most
  /// 1024 demands; the last of equal resources.
  std::size_t finest;
};

/// Returns the number of different words. Precondition: no word is 2^64 - 1.
[[nodiscard]] inline std::size_t count_distinct(std::vector<std::uint64_t> const& words) {
  auto const bits = static_cast<unsigned>(std::bit_width(words.size())) + 1;
  std::vector<std::uint64_t> table(std::size_t{1} << bits, 0);
  std::size_t distinct = 0;
  for (std::uint64_t const word : words) {
    // Zero marks a free place.
    std::uint64_t const entry = word + 1;
    auto place = static_cast<std::size_t>(entry * 0x9e3779b97f4a7c15u >> (64 - bits));
    while (table[place] != 0 && table[place] != entry) place = (place + 1) % table.size();
    if (std::exchange(table[place], entry) == 0) ++distinct;
  }
  return distinct;
}

/// Returns the traits of the demands, of which demand k occurs `count(k)` times. Precondition:
/// there are demands.
template <std::size_t R, class T, class Layout, class Demands, class Count>
[[nodiscard]] demand_traits<R, T> traits_of(Layout const& layout, Demands const& demands,
                                            resources<R, T> const& capacity, Count const& count) {
  using sum_type = std::conditional_t<std::floating_point<T>, double, uint128>;
  demand_traits<R, T> result{capacity, {}, R - 1};
  sum_type sums[R] = {};
  for (std::size_t k = 0; k != demands.size(); ++k) {
    for (std::size_t r = 0; r != R; ++r) {
      T const amount = layout.amount(demands[k], r);
      result.smallest[r] = std::min(result.smallest[r], amount);
      sums[r] += static_cast<sum_type>(amount) * static_cast<sum_type>(count(k));
    }
  }
  std::vector<std::uint64_t> values(std::min<std::size_t>(1024, demands.size()));
  std::size_t max_values = 0;
  for (std::size_t r = R; r-- != 0;) {
    result.binds[r] = sums[r] > static_cast<sum_type>(capacity[r]);
    if (!result.binds[r]) continue;
    for (std::size_t k = 0; k != values.size(); ++k) {
      T const amount = layout.amount(demands[k * demands.size() / values.size()], r);
      // There are two floating-point zeros; the sum is one of them.
      values[k] = std::bit_cast<std::uint64_t>(static_cast<T>(amount + T{}));
    }
    std::size_t const distinct = count_distinct(values);
    if (distinct > max_values) {
      max_values = distinct;
      result.finest = r;
    }
  }
  return result;
}

/// Returns the traits of demands that occur once each. Precondition: there are demands.
template <std::size_t R, class T, class Layout, class Demands>
[[nodiscard]] demand_traits<R, T> traits_of(Layout const& layout, Demands const& demands,
                                            resources<R, T> const& capacity) {
  return traits_of(layout, demands, capacity, [](std::size_t) { return std::uint64_t{1}; });
}

}  // namespace omnibal::inline v0::detail
