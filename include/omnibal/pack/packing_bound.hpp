// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the number of groups.

#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/packing_bound/column_generation.hpp>
#include <omnibal/pack/packing_bound/conflict_clique.hpp>
#include <omnibal/pack/packing_bound/dual_feasible.hpp>
#include <omnibal/pack/packing_bound/martello_toth.hpp>
#include <omnibal/pack/packing_bound/pattern_pricing.hpp>
#include <omnibal/pack/packing_bound/summed_shares.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A lower bound on the number of groups for a resource with few different values, such as images
/// or blocks.
///
/// If every value has a price such that no group holds a total price above 1, the sum of all prices
/// is a lower bound. The best prices are the dual solution of the linear program over patterns, the
/// ways to fill a group (Gilmore, Gomory 1961). Multiplicative weights approximate them (Plotkin,
/// Shmoys, Tardos 1995): the pattern with the highest worth makes its values cheaper. The best
/// prices are often small fractions; therefore prices rounded to multiples of 1/k are tried too,
/// for small k. All numbers are integers. The bound is valid for any prices, because they are
/// divided by the worth of the best pattern.
class pattern_prices {
 public:
  /// `counts[v]` is the number of samples with value v, 0 <= v <= capacity.
  explicit pattern_prices(std::vector<std::uint32_t> const& counts) {
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

/// Returns the best bound from patterns that about half a step per sample finds.
[[nodiscard]] inline std::size_t counted_pattern_bound(std::vector<std::uint32_t> const& counts) {
  // The largest capacity for which patterns are priced.
  constexpr std::size_t largest_capacity = 255;
  // The most changes of the prices.
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

/// Counts how often each value from zero to the capacity occurs.
template <class Value>
[[nodiscard]] std::vector<std::uint32_t> count_values(std::size_t count, Value const& value,
                                                      std::int64_t capacity) {
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(capacity) + 1, 0);
  for (std::size_t i = 0; i != count; ++i) ++counts[static_cast<std::size_t>(value(i))];
  return counts;
}

/// Returns the larger of L2 and the bound from patterns, from the counts of the values from zero to
/// the capacity.
[[nodiscard]] inline std::size_t counted_bound(std::vector<std::uint32_t> const& counts) {
  std::size_t const bound = martello_toth_bound(
      counts.size(), [](std::size_t k) { return static_cast<std::int64_t>(k); },
      [&](std::size_t k) { return counts[k]; }, static_cast<std::int64_t>(counts.size()) - 1);
  return std::max(bound, counted_pattern_bound(counts));
}

/// Returns true if counting the values is cheaper than sorting them. Both ways lead to the same
/// packings.
[[nodiscard]] inline bool is_countable(std::size_t count, std::int64_t capacity) {
  return static_cast<std::uint64_t>(capacity) < std::max<std::uint64_t>(512, count);
}

/// Returns the values in ascending order.
template <class Value>
[[nodiscard]] std::vector<std::uint64_t> sorted_values(std::size_t count, Value const& value,
                                                       std::int64_t capacity) {
  std::vector<std::uint64_t> values(count);
  for (std::size_t i = 0; i != count; ++i) values[i] = static_cast<std::uint64_t>(value(i));
  std::vector<std::uint64_t> spare;
  radix_sort(values, spare, 0,
             static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(capacity))));
  return values;
}

/// Returns the bound from one integer resource by dual feasible functions.
template <class Value>
[[nodiscard]] std::size_t dual_feasible_bound(std::size_t count, Value const& value,
                                              std::int64_t capacity) {
  if (static_cast<std::uint64_t>(capacity) > dual_feasible_function::max_capacity) return 0;
  std::vector<counted_value> counted;
  for (std::uint64_t const next : sorted_values(count, value, capacity)) {
    if (next == 0) continue;
    if (counted.empty() || counted.back().value != next) counted.push_back({next, 0});
    ++counted.back().count;
  }
  return dual_feasible_bounds(counted, static_cast<std::uint64_t>(capacity)).largest();
}

/// Returns the bound from one resource. For integers the bound is the larger of L2 and the bound
/// from patterns. For floating-point values it is the larger of the volume, reduced by an allowance
/// for rounding, and the number of values above half of the capacity.
template <class Value, class T>
[[nodiscard]] std::size_t resource_bound(std::size_t count, Value const& value, T capacity) {
  if constexpr (std::integral<T>) {
    if (is_countable(count, capacity)) return counted_bound(count_values(count, value, capacity));
    bucketed_martello_toth bound(count, capacity);
    for (std::size_t i = 0; i != count; ++i) bound.add(value(i));
    if (bound.needs_values()) {
      for (std::size_t i = 0; i != count; ++i) bound.add_within(value(i));
    }
    return bound.bound();
  } else {
    double const unit = std::numeric_limits<double>::epsilon();
    double const half = capacity / 2 * (1 + 4 * unit);
    double shares = 0.0;
    std::size_t large = 0;
    for (std::size_t i = 0; i != count; ++i) {
      shares += value(i) / capacity;
      if (value(i) > half) ++large;
    }
    double const allowance = 4 * unit * (static_cast<double>(count) + 4);
    double const volume = std::ceil(shares * (1 - std::min(1.0, allowance)));
    return std::max(large, static_cast<std::size_t>(volume));
  }
}

/// Returns the largest number of conflicts over all thresholds. `counts[k]` is the number of
/// samples with b in bucket k and a large a, `counts[buckets + k]` with b in bucket k and a small
/// a. A bucket is 2^shift wide.
[[nodiscard]] inline std::size_t max_conflicts(std::vector<std::uint32_t> const& counts,
                                               std::int64_t capacity_b, unsigned shift) {
  std::size_t const buckets = counts.size() / 2;
  std::size_t conflicting = std::accumulate(counts.data(), counts.data() + buckets, std::size_t{0});
  std::size_t bound = conflicting;
  std::size_t next_small = buckets;
  for (std::size_t k = 1; k != buckets; ++k) {
    // At threshold x = k << shift the samples with a large a in bucket k - 1 leave. Samples with a
    // small a enter from all buckets that are entirely above capacity - x.
    auto const threshold = static_cast<std::int64_t>(k << shift);
    if (threshold > capacity_b - threshold + 1) break;
    conflicting -= counts[k - 1];
    std::int64_t const above = capacity_b - threshold;
    while (next_small != 0 && static_cast<std::int64_t>((next_small - 1) << shift) > above) {
      conflicting += counts[buckets + --next_small];
    }
    bound = std::max(bound, conflicting);
  }
  return bound;
}

/// Returns the bound from conflicts between two resources. For a threshold x up to half of the
/// capacity of b, consider the samples with a above half of its capacity and b >= x, and the
/// samples with b > capacity - x. Any two of these samples exceed a capacity. Thresholds are
/// multiples of a power of two, which is 1 if the capacity of b is small.
template <class ValueA, class ValueB>
[[nodiscard]] std::size_t conflict_bound(std::size_t count, ValueA const& a,
                                         std::int64_t capacity_a, ValueB const& b,
                                         std::int64_t capacity_b) {
  std::size_t const max_buckets = std::clamp<std::size_t>(count / 4, 1024, 65536);
  unsigned shift = 0;
  while ((static_cast<std::uint64_t>(capacity_b) >> shift) >= max_buckets) ++shift;
  auto const bucket_of = [shift](std::int64_t value) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(value) >> shift);
  };
  std::size_t const buckets = bucket_of(capacity_b) + 1;
  std::vector<std::uint32_t> counts(2 * buckets, 0);
  for (std::size_t i = 0; i != count; ++i) {
    // This has no branch, because a branch would be hard to predict.
    auto const is_small = static_cast<std::size_t>(a(i) <= capacity_a - a(i));
    ++counts[is_small * buckets + bucket_of(b(i))];
  }
  return max_conflicts(counts, capacity_b, shift);
}

/// Returns the largest of the bounds for samples that all fit an empty group.
template <class Layout>
[[nodiscard]] std::size_t measured_bound(measured<Layout> const& input) {
  using amounts_type = typename Layout::amounts_type;
  std::size_t bound = input.demands.empty() ? 0 : 1;
  for (std::size_t r = 0; r != amounts_type::size(); ++r) {
    bound = std::max(bound, resource_bound(input.size(), input.amounts_of(r), input.capacity[r]));
    if constexpr (std::integral<typename amounts_type::value_type>) {
      for (std::size_t s = 0; s != amounts_type::size(); ++s) {
        if (r == s) continue;
        bound = std::max(bound, conflict_bound(input.size(), input.amounts_of(r), input.capacity[r],
                                               input.amounts_of(s), input.capacity[s]));
      }
    }
  }
  return bound;
}

/// Returns the bound by dual feasible functions from the sum of the shares of all capacities.
template <class Layout>
[[nodiscard]] std::size_t summed_shares_bound(measured<Layout> const& input) {
  summed_shares<Layout::amounts_type::size()> const sum(input.capacity);
  return dual_feasible_bound(
      input.size(), [&](std::size_t k) { return sum(input.amounts(k)); }, sum.whole());
}

/// Returns the largest of `measured_bound`, the bounds by dual feasible functions, and a clique of
/// conflicts.
template <class Layout>
[[nodiscard]] std::size_t thorough_bound(measured<Layout> const& input) {
  using amounts_type = typename Layout::amounts_type;
  std::size_t bound = measured_bound(input);
  if constexpr (std::integral<typename amounts_type::value_type>) {
    for (std::size_t r = 0; r != amounts_type::size(); ++r) {
      bound = std::max(bound,
                       dual_feasible_bound(input.size(), input.amounts_of(r), input.capacity[r]));
    }
    if constexpr (amounts_type::size() > 1) {
      bound = std::max(bound, summed_shares_bound(input));
      bound = std::max(bound, conflict_clique<Layout>(input).size());
    }
  }
  return bound;
}

/// Returns the larger of `bound` and the bound by column generation within `steps` steps.
template <class Layout>
[[nodiscard]] std::size_t generated_bound(measured<Layout> const& input, std::size_t bound,
                                          std::size_t steps) {
  using amounts_type = typename Layout::amounts_type;
  if constexpr (std::integral<typename amounts_type::value_type>) {
    auto const types = sample_types<Layout>::of(input, max_pattern_types(steps));
    std::span<std::uint32_t const> const counts = types.counts;
    if constexpr (amounts_type::size() == 1) {
      std::vector<std::uint64_t> values;
      for (auto const& demand : types.demands) {
        values.push_back(static_cast<std::uint64_t>(input.layout.amount(demand, 0)));
      }
      scalar_pricing pricing(values, counts, static_cast<std::uint64_t>(input.capacity[0]));
      return column_generation(counts, pricing).run(bound, steps);
    } else {
      vector_pricing<Layout> pricing(input, types.demands, counts);
      return column_generation(counts, pricing).run(bound, steps);
    }
  }
  return bound;
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct packing_bound_options {
  /// The effort: `thorough` also tries dual feasible functions, column generation and, with several
  /// resources, cliques of conflicts.
  omnibal::effort effort = omnibal::effort::normal;
  /// The most steps of column generation. If unset: 2^24 if the effort is `thorough`, else none. A
  /// number that is set takes precedence.
  std::optional<std::size_t> pattern_steps = {};
};

struct packing_bound_fn {
  /// Returns a lower bound on the number of groups of any packing of the samples under the
  /// capacity: the largest of several bounds. Oversized samples, which no group holds, do not
  /// count.
  ///
  /// - Volume and Martello-Toth L2 of each resource: each sample above half of the capacity
  ///   requires its own group, and the smaller samples require room in these groups or in further
  ///   groups. The maximum over all thresholds is exact. Source: Martello, Toth, Knapsack Problems,
  ///   1990, chapter 8.
  /// - Patterns of each resource with a capacity below 256, such as images: if no group can hold
  ///   amounts with a total price above 1, the prices of all amounts add up to a bound. For
  ///   example, under a capacity of 12 images two samples of 5 leave room for two more images;
  ///   samples of 5, 3 and 1 images then have prices of 1/2, 1/4 and zero. Sources: Gilmore,
  ///   Gomory, 1961; Plotkin, Shmoys, Tardos, 1995.
  /// - Pairwise conflicts of two resources a and b: for each threshold x, up to half of the
  ///   capacity of b, no two samples can share a group if each has a above half and b >= x, or
  ///   b > capacity - x.
  /// - With `effort::thorough`, dual feasible functions of each resource with a capacity up to
  ///   2^31: they round amounts such that no set of amounts that fits a group exceeds the group
  ///   afterwards. For example, each amount of 340 under a capacity of 1000 counts as a half,
  ///   because no three fit. With several resources the functions also apply to the sum of the
  ///   shares that samples use of all capacities. Each application costs at most a fixed number of
  ///   steps and a radix sort. Sources: Fekete, Schepers, 2001; Carlier, Clautiaux, Moukrim, 2007;
  ///   Vanderbeck, 2000; Burdett, Johnson, 1977.
  /// - With `effort::thorough` and several resources, a set of samples of which no two fit one
  ///   group. A greedy search finds the set among the 768 samples with the largest shares, after a
  ///   sort.
  /// - With `effort::thorough`, prices as above of all amounts together, for any capacities. They
  ///   come from a linear program over patterns by column generation. This bound of Gilmore and
  ///   Gomory is the optimum or one less in nearly all cases of one resource. It is computed only
  ///   if first-fit decreasing requires more groups than the other bounds. It also requires at most
  ///   406 different samples or, if `pattern_steps` is set, the cube root of `4 * pattern_steps`,
  ///   up to 4096. The search ends after `pattern_steps`, with the best bound so far. Integers are
  ///   used, so that rounding cannot make the bound too large. Sources: Gilmore, Gomory, 1961;
  ///   Farley, 1990; Nemhauser, Ullmann, 1969.
  ///
  /// Integers are at most 2^63 - 1 each; their sums may exceed 2^63 - 1.
  ///
  /// For floating-point amounts the bound is the larger of two numbers: the volume, reduced by an
  /// allowance for rounding, and the number of samples above half of the capacity.
  ///
  /// Complexity: linear in the samples, times R^2; at worst a radix sort if a capacity is not below
  /// the number of samples. Memory: 8 to 8R + 8 bytes per sample for the demands and at most 16
  /// bytes more. Thorough effort adds up to 64 bytes for each different amount, and column
  /// generation up to 4 bytes per step. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` if a capacity is not positive or a demand is negative or not finite,
  /// `std::length_error` if there are more than 2^32 - 1 samples.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] std::size_t operator()(Samples const& samples, Demand const& demand,
                                       Capacity const& capacity,
                                       packing_bound_options const& options = {}) const {
    bool const is_thorough = options.effort == effort::thorough;
    return detail::with_measured("packing_bound", samples, demand, capacity, [&](auto&& input) {
      std::size_t const bound =
          is_thorough ? detail::thorough_bound(input) : detail::measured_bound(input);
      std::size_t const steps =
          options.pattern_steps.value_or(is_thorough ? detail::max_pattern_steps : 0);
      return steps == 0 ? bound : detail::generated_bound(input, bound, steps);
    });
  }
};

/// Computes a lower bound on the number of groups; see `packing_bound_fn`.
inline constexpr packing_bound_fn packing_bound{};

}  // namespace omnibal::inline v0
