// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chi-square tests of what random functors give.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace test {

/// True where equally likely outcomes may occur this often: a fair source fails once in a million.
inline bool is_uniform(std::vector<std::uint64_t> const& counts) {
  auto const draws = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  double const expected = static_cast<double>(draws) / static_cast<double>(counts.size());
  double chi_square = 0.0;
  for (std::uint64_t const count : counts) {
    double const difference = static_cast<double>(count) - expected;
    chi_square += difference * difference / expected;
  }
  // Wilson and Hilferty's approximation of the quantile.
  double const freedom = static_cast<double>(counts.size() - 1);
  double const spread = 2.0 / (9.0 * freedom);
  return chi_square < freedom * std::pow(1.0 - spread + 4.75 * std::sqrt(spread), 3.0);
}

/// n!
constexpr std::size_t order_count(std::size_t n) { return n < 2 ? 1 : n * order_count(n - 1); }

/// A number below n! that tells the orders of 0 .. n - 1 apart.
inline std::size_t order_number(std::span<std::uint32_t const> order) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != order.size(); ++i) {
    std::size_t smaller = 0;
    for (std::uint32_t const later : order.subspan(i + 1)) smaller += later < order[i] ? 1u : 0u;
    number = number * (order.size() - i) + smaller;
  }
  return number;
}

/// True where the orders that `order_of(seed)` gives are those of 0 .. n - 1, each equally likely.
template <class Function>
bool has_uniform_orders(std::size_t n, Function const& order_of) {
  constexpr std::size_t draws_per_order = 200;
  std::vector<std::uint64_t> counts(order_count(n), 0);
  for (std::uint64_t seed = 0; seed != counts.size() * draws_per_order; ++seed) {
    ++counts[order_number(order_of(seed))];
  }
  return is_uniform(counts);
}

}  // namespace test
