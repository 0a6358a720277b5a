// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The knapsack problem of one window, which ignores the limits of all other windows.

#include <omnibal/activation_option.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// A set of saved items, its gain, and an upper bound of the gain of all solutions.
struct saved_solution {
  /// For each item, 1 if it is saved.
  std::vector<unsigned char> saved;
  std::int64_t gain = 0;
  std::int64_t bound = 0;
};

/// A knapsack problem: one window limits the bytes of its saved items, and all items outside of the
/// window are saved. The upper bound of this problem holds for the whole problem.
/// `select_recompute` solves it.
class window_knapsack {
 public:
  /// Returns a solution for this window; it may exceed other limits. Saved items of equal modules
  /// are spread evenly over the layers, which makes it more likely that the solution satisfies the
  /// other limits.
  [[nodiscard]] saved_solution solve(queue_limits const& limits, window const& one,
                                     omnibal::effort effort) {
    std::uint32_t const first = limits.offsets[one.first];
    std::uint32_t const last = limits.offsets[one.last];
    std::span<saved_item const> const items(limits.items.data() + first, last - first);
    ways_.clear();
    for (saved_item const& item : items) {
      ways_.push_back(
          {activation_option<>{0, item.bytes, 0}, activation_option<>{item.gain, 0, 0}});
    }
    auto const result = select_recompute(ways_, one.bytes, {.effort = effort});
    saved_solution solution{std::vector<unsigned char>(limits.items.size(), 1),
                            limits.total_gain - result.time,
                            limits.total_gain - result.lower_bound};
    spread(items, result.choices,
           std::span<unsigned char>(solution.saved.data() + first, items.size()));
    return solution;
  }

 private:
  void spread(std::span<saved_item const> items, std::span<std::uint32_t const> choices,
              std::span<unsigned char> saved) {
    constexpr std::uint32_t save = 0;
    order_.resize(items.size());
    std::iota(order_.begin(), order_.end(), 0u);
    auto const key = [&](std::uint32_t j) { return std::tuple(items[j].bytes, items[j].gain); };
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t left, std::uint32_t right) {
      return std::tuple(key(left), left) < std::tuple(key(right), right);
    });
    for (std::size_t begin = 0, end = 0; begin != order_.size(); begin = end) {
      std::uint64_t count = 0;
      for (; end != order_.size() && key(order_[end]) == key(order_[begin]); ++end) {
        if (choices[order_[end]] == save) ++count;
      }
      std::uint64_t const size = end - begin;
      for (std::uint64_t t = 0; t != size; ++t) {
        saved[order_[begin + t]] = (t + 1) * count / size != t * count / size ? 1 : 0;
      }
    }
  }

  std::vector<std::array<activation_option<>, 2>> ways_;
  std::vector<std::uint32_t> order_;
};

}  // namespace omnibal::inline v0::detail
