// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bound on the number of groups from prices of the values of one integer resource.

#include <omnibal/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace omnibal::inline v0::detail {

/// A lower bound on the number of groups for a resource with few different values, such as images
/// or blocks.
///
/// If every value has a price such that no group holds a total price above 1, the sum of all prices
/// is a lower bound. The best prices are the dual solution of the linear program over patterns, the
/// ways to fill a group (Gilmore, Gomory 1961). Multiplicative weights approximate them (Plotkin,
/// Shmoys, Tardos 1995): each step lowers the prices of the values in the pattern with the highest
/// worth, its total price. The best prices are often small fractions; therefore prices rounded to
/// multiples of 1/k are tried too, for small k. All numbers are integers. The bound is valid for
/// any prices, because they are divided by the worth of the best pattern.
class pattern_prices {
 public:
  /// `counts[v]` is the number of samples with value v, 0 <= v <= capacity; times the capacity it
  /// must be below 2^64.
  template <class Count>
  explicit pattern_prices(std::vector<Count> const& counts) {
    std::size_t unit = 0;
    for (std::size_t v = 1; v < counts.size(); ++v) {
      if (counts[v] != 0) unit = std::gcd(unit, v);
    }
    for (std::size_t v = unit; v != 0 && v < counts.size(); v += unit) {
      if (counts[v] == 0) continue;
      values_.push_back(v / unit);
      counts_.push_back(counts[v]);
    }
    capacity_ = unit == 0 ? 0 : (counts.size() - 1) / unit;
    best_.resize(capacity_ + 1);
    choice_.resize(capacity_ + 1);
    for (std::size_t const value : values_) prices_.push_back(one * value / capacity_);
  }

  /// Returns the work of one call of `next`, in steps.
  [[nodiscard]] std::size_t steps_of_next() const {
    return (largest_part + 1) * capacity_ * values_.size();
  }

  /// Returns the best bound from the current prices, and changes the prices. Precondition: there
  /// are values.
  std::size_t next() {
    std::uint64_t const worth = best_worth(prices_);
    std::size_t bound = bound_from(prices_, worth);
    std::vector<std::uint64_t>& parts = parts_;
    parts.resize(prices_.size());
    for (std::uint64_t k = 1; k <= largest_part; ++k) {
      for (std::size_t i = 0; i != parts.size(); ++i) {
        parts[i] = (prices_[i] * k + worth / 2) / worth;
      }
      bound = std::max(bound, bound_from(parts, best_worth(parts)));
    }
    best_worth(prices_);
    make_best_pattern_cheaper(worth);
    return bound;
  }

 private:
  static constexpr std::uint64_t one = std::uint64_t{1} << 32;
  /// The largest k for which prices are rounded to multiples of 1/k.
  static constexpr std::uint64_t largest_part = 12;

  /// Returns the worth of the best pattern, the optimum of an unbounded knapsack.
  std::uint64_t best_worth(std::vector<std::uint64_t> const& prices) {
    std::fill(best_.begin(), best_.end(), std::uint64_t{0});
    for (std::size_t room = 1; room <= capacity_; ++room) {
      best_[room] = best_[room - 1];
      choice_[room] = values_.size();
      for (std::size_t i = 0; i != values_.size() && values_[i] <= room; ++i) {
        std::uint64_t const worth = best_[room - values_[i]] + prices[i];
        if (worth <= best_[room]) continue;
        best_[room] = worth;
        choice_[room] = i;
      }
    }
    return best_[capacity_];
  }

  [[nodiscard]] std::size_t bound_from(std::vector<std::uint64_t> const& prices,
                                       std::uint64_t worth) const {
    if (worth == 0) return 0;
    uint128 sum = 0;
    for (std::size_t i = 0; i != prices.size(); ++i) {
      sum += static_cast<uint128>(prices[i]) * counts_[i];
    }
    return static_cast<std::size_t>((sum + worth - 1) / worth);
  }

  /// Lowers the prices in the best pattern. The value whose samples the pattern uses to the largest
  /// share becomes cheaper by three tenths, the other values in proportion. Scales all prices by
  /// 2^32 / worth.
  void make_best_pattern_cheaper(std::uint64_t worth) {
    std::vector<std::uint64_t> uses(values_.size(), 0);
    for (std::size_t room = capacity_; room != 0;) {
      std::size_t const i = choice_[room];
      if (i != values_.size()) ++uses[i];
      room -= i == values_.size() ? 1 : values_[i];
    }
    std::size_t most = 0;
    for (std::size_t i = 1; i != uses.size(); ++i) {
      if (uses[i] * counts_[most] > uses[most] * counts_[i]) most = i;
    }
    for (std::size_t i = 0; i != prices_.size(); ++i) {
      auto const price = static_cast<uint128>(prices_[i]) * one / worth;
      auto const used = static_cast<uint128>(uses[i]) * counts_[most];
      auto const max_used = static_cast<uint128>(uses[most]) * counts_[i];
      prices_[i] = static_cast<std::uint64_t>(price - price * 3 * used / (max_used * 10));
    }
  }

  std::size_t capacity_ = 0;
  std::vector<std::size_t> values_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> prices_;
  std::vector<std::uint64_t> parts_;
  std::vector<std::uint64_t> best_;
  std::vector<std::size_t> choice_;
};

/// Returns the best bound from patterns that the search finds in about half a step per sample.
template <class Count>
[[nodiscard]] std::size_t counted_pattern_bound(std::vector<Count> const& counts) {
  // The largest capacity for which patterns are priced.
  constexpr std::size_t largest_capacity = 255;
  // The maximum number of changes of the prices.
  constexpr std::size_t max_changes = 24;
  if (counts.size() > largest_capacity + 1) return 0;
  pattern_prices prices(counts);
  std::size_t const samples = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  std::size_t const steps = std::max<std::size_t>(1, prices.steps_of_next());
  std::size_t const changes = std::min(max_changes, (4096 + samples / 2) / steps);
  std::size_t bound = 0;
  for (std::size_t i = 0; i != changes && prices.steps_of_next() != 0; ++i) {
    bound = std::max(bound, prices.next());
  }
  return bound;
}

}  // namespace omnibal::inline v0::detail
