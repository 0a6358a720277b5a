// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of all shufflers need.

#include "fnv1a.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace test {

/// 0 .. n - 1.
template <class T = std::uint32_t>
std::vector<T> ascending(std::size_t n) {
  std::vector<T> items(n);
  std::iota(items.begin(), items.end(), T{0});
  return items;
}

/// 0 .. n - 1 in the order in which `shuffle` leaves them.
template <class T = std::uint32_t, class Shuffle>
std::vector<T> shuffled(Shuffle const& shuffle, std::size_t n, std::uint64_t round) {
  std::vector<T> items = ascending<T>(n);
  shuffle(std::span<T>(items), round);
  return items;
}

/// True where the order holds each of 0 .. n - 1 once.
inline bool is_permutation_of_indices(std::span<std::uint32_t const> order) {
  std::vector<bool> seen(order.size(), false);
  for (std::uint32_t const item : order) {
    if (item >= seen.size() || seen[item]) return false;
    seen[item] = true;
  }
  return true;
}

/// One number for an order.
inline std::uint64_t digest(std::span<std::uint32_t const> order) {
  fnv1a hash;
  for (std::uint32_t const item : order) hash.add(item);
  return hash.value();
}

}  // namespace test
