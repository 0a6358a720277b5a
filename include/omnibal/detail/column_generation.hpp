// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bound on the number of groups from patterns, by column generation.

#include <omnibal/config.hpp>
#include <omnibal/detail/pattern_master.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The number of steps of a thorough bound.
inline constexpr std::size_t max_pattern_steps = std::size_t{1} << 24;

/// Returns the number of steps that a change of the basis counts. With this number, a step requires
/// a similar time in a change of the basis as in a search for patterns.
[[nodiscard]] constexpr std::size_t steps_of_change(std::size_t types) { return types * types / 4; }

/// Returns the largest number of types for which a linear program may end in `steps` steps. Few
/// programs end with fewer changes of the basis than types.
[[nodiscard]] constexpr std::size_t max_pattern_types(std::size_t steps) {
  // At the limit, the inverse of the basis requires 64 MB.
  constexpr std::size_t most = 4096;
  std::size_t types = 1;
  while (types != most && steps_of_change(types + 1) * (types + 1) <= steps) ++types;
  return types;
}

/// A lower bound on the number of groups by column generation. Patterns are added to a linear
/// program as long as some pattern is worth more than a group at the prices of the program. In each
/// step, the prices divided by the worth of the best pattern yield a bound (Farley, "A note on
/// bounding a class of linear programming problems, including cutting stock problems", 1990). The
/// bound is computed in integers, so that it holds for any prices.
template <class Pricing>
class column_generation {
 public:
  /// Keeps views of the arguments, which must outlive this object. `counts[i]` samples are of type
  /// i.
  column_generation(std::span<std::uint64_t const> counts, Pricing& pricing)
      : counts_(counts), pricing_(pricing) {}

  /// Returns the larger of `bound` and the bound that is found in `steps` steps.
  [[nodiscard]] std::size_t run(std::size_t bound, std::size_t steps) {
    std::span<std::uint32_t const> const alone = pricing_.alone();
    std::size_t const change = steps_of_change(counts_.size());
    if (counts_.empty()) return bound;
    if (*std::max_element(alone.begin(), alone.end()) > max_alone) return bound;
    std::vector<pattern> const packing = greedy_packing();
    if (groups_ <= bound) return bound;
    pattern_master& master = master_.emplace(counts_, alone);
    for (pattern const& next : packing) {
      if (master.worth(next) <= tolerated) continue;
      if (steps < change) return bound;
      steps -= change;
      master.enter(next);
    }
    while (steps > change) {
      steps -= change;
      std::span<std::int64_t const> const prices = master.prices();
      // The value of the linear program falls from step to step, except for rounding.
      uint128 const worth = worth_of_all(prices);
      if (worth <= static_cast<uint128>(pattern_master::one) * bound) break;
      if (!pricing_.run(prices, steps)) break;
      auto const best = static_cast<uint128>(pricing_.best_worth());
      bound = std::max(bound, static_cast<std::size_t>((worth + best - 1) / best));
      if (groups_ <= bound || pricing_.best_worth() <= tolerated) break;
      if (!master.enter(pricing_.best())) break;
    }
    return bound;
  }

  /// Returns the linear program at the end of `run`; empty if `run` needed none.
  [[nodiscard]] std::optional<pattern_master> const& master() const { return master_; }

 private:
  /// The worth that a pattern must exceed to enter the basis.
  static constexpr std::int64_t tolerated = pattern_master::one + (pattern_master::one >> 24);

  /// Returns the worth of all samples.
  [[nodiscard]] uint128 worth_of_all(std::span<std::int64_t const> prices) const {
    uint128 sum = 0;
    for (std::size_t i = 0; i != counts_.size(); ++i) {
      if (prices[i] > 0) sum += static_cast<uint128>(prices[i]) * counts_[i];
    }
    return sum;
  }

  /// Returns the patterns of first-fit decreasing, each once, and counts its groups in `groups_`.
  [[nodiscard]] std::vector<pattern> greedy_packing() {
    std::vector<pattern> result;
    std::vector<std::uint64_t> left(counts_.begin(), counts_.end());
    for (;;) {
      pattern next = pricing_.greedy(left);
      if (next.empty()) return result;
      std::uint64_t times = left[next.front().type] / next.front().count;
      for (pattern_entry const entry : next) {
        times = std::min(times, left[entry.type] / entry.count);
      }
      for (pattern_entry const entry : next) left[entry.type] -= times * entry.count;
      groups_ += times;
      result.push_back(std::move(next));
    }
  }

  std::span<std::uint64_t const> counts_;
  Pricing& pricing_;
  std::optional<pattern_master> master_;
  std::size_t groups_ = 0;
};

}  // namespace omnibal::inline v0::detail
