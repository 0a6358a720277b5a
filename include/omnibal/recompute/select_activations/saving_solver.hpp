// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The saved modules with the largest gain for given end bytes.

#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/recompute/activations_result.hpp>
#include <omnibal/recompute/detail/activation_table.hpp>
#include <omnibal/recompute/select_activations/queue_label_search.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_activations/window_knapsack.hpp>
#include <omnibal/recompute/select_activations/window_relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace omnibal::inline v0::detail {

/// A range of end bytes from `first` to `last`. End bytes are the bytes in the queues after the
/// last layer. If several micro-batches are in flight, every other micro-batch holds them.
struct end_range {
  std::int64_t first;
  std::int64_t last;
};

/// Solves the problem for ranges of end bytes. In the problem of a range, each other micro-batch
/// holds the smallest number of end bytes of the range, and this micro-batch may hold the largest
/// one. The problem is exact if the range has one number, and a relaxation otherwise.
template <class Time>
class saving_solver {
 public:
  saving_solver(activation_table<Time> const& table, std::int64_t budget,
                select_activations_options const& options)
      : table_(table), budget_(budget), options_(options) {
    limits_.set_items(table);
  }

  [[nodiscard]] queue_limits const& limits() const { return limits_; }

  /// Sets the limits for end bytes, and returns the prices of the linear relaxation.
  [[nodiscard]] window_prices relax(end_range const& ends) {
    limits_.set_limits(table_, budget_ - (table_.in_flight() - 1) * ends.first, ends.last);
    return relaxation_.solve(limits_);
  }

  /// Returns a set of saved items and an upper bound of the gain. The search ignores solutions that
  /// gain no more than `known`.
  [[nodiscard]] saved_solution solve(end_range const& ends, std::int64_t known = 0) {
    window_prices const prices = relax(ends);
    saved_solution result = round_down();
    result.bound = prices.max_gain();
    known = std::max(known, result.gain);
    if (known >= result.bound) return result;
    std::size_t const chosen = most_valuable(prices);
    if (chosen != prices.windows.size()) {
      saved_solution own = knapsack_.solve(limits_, prices.windows[chosen], options_.effort);
      own.bound = std::min(own.bound, result.bound);
      result.bound = own.bound;
      if (known >= result.bound) return result;
      if (limits_.allow(limits_.layer_bytes(own.saved))) {
        return own.gain > result.gain ? own : result;
      }
    }
    queue_label_search labels(limits_, prices);
    if (labels.run(known, max_labels())) {
      labels.write(result.saved);
      result.gain = labels.gain();
    }
    result.bound = std::min(result.bound, labels.bound());
    return result;
  }

 private:
  [[nodiscard]] std::size_t max_labels() const {
    constexpr by_effort<std::size_t> levels{.fast = 32, .normal = 128, .thorough = 2048};
    return options_.labels.value_or(levels[options_.effort]);
  }

  /// Returns the index of the window with the largest value, which is its price times its bytes.
  /// Returns the number of windows if there is none.
  [[nodiscard]] static std::size_t most_valuable(window_prices const& prices) {
    std::size_t result = prices.windows.size();
    int128 most = -1;
    for (std::size_t c = 0; c != prices.windows.size(); ++c) {
      int128 const value = static_cast<int128>(prices.prices[c]) * prices.windows[c].bytes;
      if (value <= most) continue;
      most = value;
      result = c;
    }
    return result;
  }

  /// Saves items as long as they fit. Items with the largest share in the relaxed solution come
  /// first.
  [[nodiscard]] saved_solution round_down() const {
    std::vector<std::uint32_t> order(limits_.items.size());
    std::iota(order.begin(), order.end(), 0u);
    auto const parts = relaxation_.parts();
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (parts[a] != parts[b]) return parts[a] > parts[b];
      auto const left = static_cast<int128>(limits_.items[a].gain) * limits_.items[b].bytes;
      auto const right = static_cast<int128>(limits_.items[b].gain) * limits_.items[a].bytes;
      return left != right ? left > right : a < b;
    });
    saved_solution result{std::vector<unsigned char>(order.size(), 0)};
    std::vector<std::int64_t> sums(limits_.size(), 0);
    for (std::uint32_t const j : order) {
      saved_item const& item = limits_.items[j];
      sums[item.layer] += item.bytes;
      if (!limits_.allow(sums)) {
        sums[item.layer] -= item.bytes;
        continue;
      }
      result.saved[j] = 1;
      result.gain += item.gain;
    }
    return result;
  }

  activation_table<Time> const& table_;
  std::int64_t budget_;
  select_activations_options const& options_;
  queue_limits limits_;
  window_relaxation relaxation_;
  window_knapsack knapsack_;
};

}  // namespace omnibal::inline v0::detail
