// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The present rank of each sample in `rebalance`.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the excess of a load over a limit in each kind.
template <std::size_t R>
[[nodiscard]] constexpr resources<R> excess_above(resources<R> const& load, std::int64_t limit) {
  resources<R> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = std::max<std::int64_t>(0, load[r] - limit);
  return result;
}

/// The number of samples on each rank, and its limits. Later calls reuse its memory.
class rank_count_limits {
 public:
  /// Sets the limits for a rule. Errors: `std::invalid_argument` if the rule requires equal counts
  /// that are not possible.
  void set(std::string_view function, rank_counts rule, std::span<std::uint32_t const> home_of,
           std::size_t ranks) {
    is_limited_ = rule != rank_counts::any && ranks != 0;
    if (!is_limited_) return;
    auto const samples = static_cast<std::uint32_t>(home_of.size());
    auto const count = static_cast<std::uint32_t>(ranks);
    bool const is_multiple = samples % count == 0;
    if (rule == rank_counts::equal && !is_multiple) {
      throw_invalid(function, to_text(samples) + " samples do not give " + to_text(ranks) +
                                  " ranks with equal counts");
    }
    min_.assign(ranks, samples / count);
    max_.assign(ranks, samples / count + (is_multiple ? 0 : 1));
    if (rule != rank_counts::kept) return;
    this->count(home_of);
    min_ = counts_;
    max_ = counts_;
  }

  /// Sets the counts to the number of samples of each rank.
  void count(std::span<std::uint32_t const> rank_of) {
    if (!is_limited_) return;
    counts_.assign(min_.size(), 0);
    for (std::uint32_t const rank : rank_of) ++counts_[rank];
  }
  void move(std::uint32_t from, std::uint32_t to) {
    if (!is_limited_) return;
    --counts_[from];
    ++counts_[to];
  }

  [[nodiscard]] bool is_limited() const { return is_limited_; }
  /// Returns the smallest of the minimum counts. Precondition: counts are limited.
  [[nodiscard]] std::size_t min_count() const {
    return *std::min_element(min_.begin(), min_.end());
  }
  [[nodiscard]] bool is_above(std::size_t rank) const { return counts_[rank] > max_[rank]; }
  [[nodiscard]] bool is_below(std::size_t rank) const { return counts_[rank] < min_[rank]; }
  [[nodiscard]] bool may_leave(std::size_t rank) const {
    return !is_limited_ || counts_[rank] > min_[rank];
  }
  [[nodiscard]] bool may_arrive(std::size_t rank) const {
    return !is_limited_ || counts_[rank] < max_[rank];
  }

 private:
  bool is_limited_ = false;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> min_;
  std::vector<std::uint32_t> max_;
};

/// The present rank of each sample and the load of each rank. Later calls reuse its memory.
template <std::size_t R>
struct assignment_state {
  integer_costs<R> costs;
  integer_costs<1> bytes;
  /// The rank of each sample before the exchange.
  std::vector<std::uint32_t> home_of;
  /// The present rank of each sample.
  std::vector<std::uint32_t> rank_of;
  /// The amount that is added to the load of each rank, by rank; empty if speeds are equal. With
  /// it, all ranks have the same limit, although slower ranks may have less load.
  std::vector<std::int64_t> offsets;
  /// The load of each rank, including its offset.
  integer_costs<R> loads;
  /// The number of samples on each rank.
  rank_count_limits counts;

  [[nodiscard]] std::size_t ranks() const { return loads.size(); }
  [[nodiscard]] bool is_home(std::uint32_t sample) const {
    return rank_of[sample] == home_of[sample];
  }

  void start_at_home() {
    rank_of = home_of;
    sum_loads();
  }
  void sum_loads() {
    loads.assign(loads.size(), resources<R>{});
    for (std::size_t rank = 0; rank != offsets.size(); ++rank) {
      for (std::int64_t& amount : loads[rank].amounts) amount = offsets[rank];
    }
    for (std::size_t i = 0; i != rank_of.size(); ++i) loads[rank_of[i]] += costs[i];
    counts.count(rank_of);
  }
  void move(std::uint32_t sample, std::uint32_t rank) {
    loads[rank_of[sample]] -= costs[sample];
    loads[rank] += costs[sample];
    counts.move(rank_of[sample], rank);
    rank_of[sample] = rank;
  }

  [[nodiscard]] std::int64_t largest_load() const {
    std::int64_t result = 0;
    for (resources<R> const& load : loads) result = std::max(result, largest_amount(load));
    return result;
  }
  /// Returns the lowest rank with the largest load. Precondition: there is a rank.
  [[nodiscard]] std::uint32_t heaviest() const {
    std::size_t result = 0;
    for (std::size_t rank = 1; rank < loads.size(); ++rank) {
      if (largest_amount(loads[rank]) > largest_amount(loads[result])) result = rank;
    }
    return static_cast<std::uint32_t>(result);
  }
  [[nodiscard]] std::int64_t moved_bytes() const {
    std::int64_t result = 0;
    for (std::uint32_t i = 0; i != rank_of.size(); ++i) {
      if (!is_home(i)) result += bytes[i][0];
    }
    return result;
  }

  /// Returns a comparison that sorts samples by descending cost, summed over the kinds, and samples
  /// of equal cost by index.
  [[nodiscard]] auto costs_more() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      std::int64_t const cost_a = sum_of(costs[a]);
      std::int64_t const cost_b = sum_of(costs[b]);
      return cost_a > cost_b || (cost_a == cost_b && a < b);
    };
  }
};

/// Sorts the indices 0 .. count - 1 from the largest to the smallest `key(index)`. The order uses
/// the 32 bits from the leading bit of the largest key on; indices with equal bits are in ascending
/// order. Keys are integers that are not negative and not all zero. `words` and `spare` are scratch
/// memory.
template <class Key>
void order_by_leading_bits(std::size_t count, Key const& key, std::vector<std::uint64_t>& words,
                           std::vector<std::uint64_t>& spare, std::vector<std::uint32_t>& order) {
  std::uint64_t largest = 0;
  for (std::uint32_t i = 0; i != count; ++i) {
    largest = std::max(largest, static_cast<std::uint64_t>(key(i)));
  }
  int const shift = static_cast<int>(std::countl_zero(largest));
  words.resize(count);
  for (std::uint32_t i = 0; i != count; ++i) {
    words[i] = ~(static_cast<std::uint64_t>(key(i)) << shift) >> 32 << 32 | i;
  }
  radix_sort(words, spare, 32, 32);
  order.resize(count);
  for (std::size_t i = 0; i != count; ++i) order[i] = static_cast<std::uint32_t>(words[i]);
}

}  // namespace omnibal::inline v0::detail
