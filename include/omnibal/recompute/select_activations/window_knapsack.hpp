// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The knapsack problem of one window, which leaves out the limits of all others.

#include <omnibal/activation_option.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// A knapsack problem: the window limits the bytes of the saved items in it, and all other items
/// are saved. Its bound holds for the whole problem. `select_recompute` solves it.
class window_knapsack {
 public:
  explicit window_knapsack(queue_limits const& limits) : limits_(limits) {}

  void solve(window const& one, omnibal::effort effort) {
    first_ = limits_.offsets[one.first];
    ways_.clear();
    for (std::size_t j = first_; j != limits_.offsets[one.last]; ++j) {
      saved_item const& item = limits_.items[j];
      ways_.push_back(
          {activation_option<>{0, item.bytes, 0}, activation_option<>{item.gain, 0, 0}});
    }
    auto const result = select_recompute(ways_, one.bytes, {.effort = effort});
    gain_ = limits_.total_gain - result.time;
    bound_ = limits_.total_gain - result.lower_bound;
    saved_.assign(limits_.items.size(), 1);
    spread(result.choices);
  }

  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// The upper bound: no solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }
  /// Whether each item is saved. Saved items of equal modules are spread evenly over the layers, so
  /// that the solution probably keeps to the other limits.
  [[nodiscard]] std::vector<unsigned char> const& saved() const { return saved_; }

 private:
  void spread(std::vector<std::uint32_t> const& choices) {
    constexpr std::uint32_t save = 0;
    order_.resize(choices.size());
    std::iota(order_.begin(), order_.end(), 0u);
    auto const key = [&](std::uint32_t j) {
      saved_item const& item = limits_.items[first_ + j];
      return std::tuple(item.bytes, item.gain);
    };
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
        bool const is_saved = (t + 1) * count / size != t * count / size;
        saved_[first_ + order_[begin + t]] = is_saved ? 1 : 0;
      }
    }
  }

  queue_limits const& limits_;
  std::size_t first_ = 0;
  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
  std::vector<std::array<activation_option<>, 2>> ways_;
  std::vector<std::uint32_t> order_;
  std::vector<unsigned char> saved_;
};

}  // namespace omnibal::inline v0::detail
