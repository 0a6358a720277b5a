// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The smallest bottleneck, or the smallest sum, for a general stage cost.

#include <omnibal/check.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the largest number below `value`.
template <class C>
[[nodiscard]] C just_below(C value) {
  if constexpr (std::floating_point<C>) {
    return std::nextafter(value, C{});
  } else {
    return static_cast<C>(value - 1);
  }
}

/// The cost of several stages is the cost of the most expensive stage.
template <class C>
struct as_bottleneck {
  /// True if the cost of all stages does not show whether a single stage exceeds the limit.
  static constexpr bool hides_costs = false;

  [[nodiscard]] C operator()(C cost, C rest) const { return cost < rest ? rest : cost; }
  /// Returns false if stages cannot cost less than `best`. `least` is a lower bound of the cost of
  /// the first stage, and `rest` is the cost of the stages after it.
  [[nodiscard]] bool may_be_less(C least, C rest, C best) const {
    return rest < best && least < best;
  }
  /// Returns the largest cost of the stages after the first stage, if all stages together cost
  /// `whole`.
  [[nodiscard]] C rest_of(C whole, C) const { return whole; }
};

/// The cost of several stages is their sum, added from the last stage to the first.
template <class C>
struct as_sum {
  static constexpr bool hides_costs = true;
  std::string_view function;

  [[nodiscard]] C operator()(C cost, C rest) const {
    constexpr std::string_view name = "the sum over the stages";
    if (rest == infinite_cost<C>) return rest;
    checked_add(function, name, rest, cost);
    // The largest value of the type is reserved for impossible stages.
    if (rest == infinite_cost<C>) throw_overflow(function, name);
    return rest;
  }
  [[nodiscard]] bool may_be_less(C least, C rest, C best) const {
    return rest < best && least < best - rest;
  }
  [[nodiscard]] C rest_of(C, C rest) const { return rest; }
};

/// Dynamic programming over the boundaries, from the last stage to the first. A cell has the least
/// cost of the stages after a position of a boundary.
template <class C, class Cost, class Fits, class Rule>
class chain_dp {
 public:
  chain_dp(stage_costs<C, Cost, Fits> const& stages, Rule const& rule)
      : stages_(stages), rule_(rule) {}

  /// Returns the cost of the best stages if no single stage may exceed the limit, or
  /// `infinite_cost` if there are no such stages.
  [[nodiscard]] C run(C limit) {
    limit_ = limit;
    max_cost_ = limit == infinite_cost<C> ? just_below(limit) : limit;
    if (!windows_.narrow(stages_, limit)) return infinite_cost<C>;
    std::size_t const count = stages_.stages();
    cells_.resize(windows_.offsets[count + 1]);
    cells_.back() = C{};
    for (std::size_t s = count; s-- != 0;) {
      find_least_up_to(s + 1);
      fill_row(s);
    }
    return Rule::hides_costs || cells_.front() <= max_cost_ ? cells_.front() : infinite_cost<C>;
  }

  /// Finds the boundaries of the result of `run` that are first in lexicographic order. Returns
  /// their bottleneck.
  [[nodiscard]] C cut_leftmost(std::vector<std::uint32_t>& boundaries) const {
    boundaries.assign(stages_.stages() + 1, 0);
    C bottleneck{};
    C wanted = cells_.front();
    std::size_t first = 0;
    for (std::size_t s = 0; s != stages_.stages(); ++s) {
      first = first_end(s, first, wanted, bottleneck);
      boundaries[s + 1] = static_cast<std::uint32_t>(first);
      wanted = rule_.rest_of(wanted, after(s + 1, first));
    }
    return bottleneck;
  }

 private:
  [[nodiscard]] C after(std::size_t boundary, std::size_t position) const {
    return cells_[windows_.cell(boundary, position)];
  }

  /// Returns the first end of a stage that leads to the cost `wanted`; raises `bottleneck` to the
  /// cost of the stage.
  [[nodiscard]] std::size_t first_end(std::size_t s, std::size_t first, C wanted,
                                      C& bottleneck) const {
    auto const& rules = stages_.rules();
    if (rules.may_be_empty && windows_.contains(s + 1, first) && after(s + 1, first) <= wanted) {
      return first;
    }
    std::size_t const low = std::max<std::size_t>(windows_.first[s + 1], first + rules.shortest[s]);
    std::size_t const high = windows_.last[s + 1];
    for (std::size_t last = low; last <= high; ++last) {
      C const rest = after(s + 1, last);
      if (rest > wanted || stages_.is_over(s, first, last, limit_)) continue;
      C const cost = stages_(s, first, last);
      if (cost > max_cost_ || rule_(cost, rest) > wanted) continue;
      if (!stages_.fits(s, first, last)) continue;
      bottleneck = std::max(bottleneck, cost);
      return last;
    }
    stages_.throw_changed(s, first, low, high);
  }

  /// Finds, for each position of a boundary, the least cell up to this position. It is a bound for
  /// stages that end at or before the position.
  void find_least_up_to(std::size_t boundary) {
    least_.resize(windows_.size(boundary));
    C least = infinite_cost<C>;
    for (std::size_t i = 0; i != least_.size(); ++i) {
      least = std::min(least, cells_[windows_.offsets[boundary] + i]);
      least_[i] = least;
    }
  }

  void fill_row(std::size_t s) {
    auto const& rules = stages_.rules();
    std::size_t const next_first = windows_.first[s + 1];
    std::size_t high = windows_.last[s + 1];
    for (std::size_t first = windows_.last[s] + std::size_t{1}; first-- != windows_.first[s];) {
      C& cell = cells_[windows_.cell(s, first)];
      cell = infinite_cost<C>;
      if (rules.may_cut[first] == 0) continue;
      if (rules.may_be_empty && windows_.contains(s + 1, first)) cell = after(s + 1, first);
      std::size_t const low = std::max(next_first, first + rules.shortest[s]);
      while (high >= low && stages_.is_over(s, first, high, limit_)) --high;
      cell = stages_.bound().is_known() ? try_ends<true>(s, first, low, high, cell)
                                        : try_ends<false>(s, first, low, high, cell);
    }
  }

  /// Returns the smaller of `best` and the least cost of an end in [low, high]. The search visits
  /// the ends from the right. It stops when the following stages cannot lead to a smaller cost, and
  /// skips ends whose known lower bound is too high.
  template <bool is_known>
  [[nodiscard]] C try_ends(std::size_t s, std::size_t first, std::size_t low, std::size_t high,
                           C best) const {
    std::size_t const next_first = windows_.first[s + 1];
    C const* const next = cells_.data() + windows_.offsets[s + 1];
    for (std::size_t last = high + 1; last-- > low;) {
      if (least_[last - next_first] >= best) break;
      C const rest = next[last - next_first];
      if (is_known && !rule_.may_be_less(stages_.bound()(s, first, last), rest, best)) continue;
      C const cost = is_known ? stages_(s, first, last) : stages_.valid_cost(s, first, last);
      if (Rule::hides_costs && cost > max_cost_) continue;
      C const whole = rule_(cost, rest);
      if (whole < best && stages_.fits(s, first, last)) best = whole;
    }
    return best;
  }

  stage_costs<C, Cost, Fits> const& stages_;
  Rule rule_;
  C limit_{};
  /// The largest cost that a stage may have in the current run.
  C max_cost_{};
  cut_windows windows_;
  std::vector<C> cells_;
  std::vector<C> least_;
};

/// Search for the smallest bottleneck. A greedy walk finds stages first, and their bottleneck
/// limits the windows of the exact search.
template <class C, class Cost, class Fits>
class bottleneck_search {
 public:
  explicit bottleneck_search(stage_costs<C, Cost, Fits> const& stages)
      : stages_(stages), cuts_(stages, {}) {}

  /// Returns the smallest bottleneck, or `infinite_cost` if there are no stages.
  [[nodiscard]] C run() {
    C const walked = walked_bottleneck();
    if (walked == infinite_cost<C>) {
      // A search with twice the bound as its limit does much less work than a search without a
      // limit.
      C const least = stages_.bound().min_bottleneck();
      if (least > C{} && least < infinite_cost<C> / 4) {
        C const found = cuts_.run(static_cast<C>(2 * least));
        if (found != infinite_cost<C>) return found;
      }
    }
    C const found = cuts_.run(walked);
    // The walk has found stages within this limit.
    if (found == infinite_cost<C> && walked != infinite_cost<C>) {
      stages_.throw_changed(0, 0, 1, stages_.rules().last_cut[1]);
    }
    return found;
  }

  /// Finds the first boundaries, in lexicographic order, with the bottleneck that `run` has
  /// returned. Throws if the functor now returns other costs.
  void cut_leftmost(C least, std::vector<std::uint32_t>& boundaries) const {
    if (cuts_.cut_leftmost(boundaries) != least) stages_.throw_changed(boundaries);
  }

 private:
  /// Returns the bottleneck of some stages, usually close to the smallest bottleneck;
  /// `infinite_cost` if none are found.
  [[nodiscard]] C walked_bottleneck() const {
    if (!stages_.bound().is_known()) return infinite_cost<C>;
    C low = stages_.bound().min_bottleneck();
    C gap = static_cast<C>(low / 16 + (std::integral<C> ? 1 : 0));
    C high = infinite_cost<C>;
    for (std::size_t tries = 0; tries != 8 && high == infinite_cost<C>; ++tries) {
      if (gap > infinite_cost<C> / 2 - low) return infinite_cost<C>;
      C const limit = static_cast<C>(low + gap);
      high = walk(limit);
      if (high == infinite_cost<C>) low = limit;
      gap = static_cast<C>(gap * 2);
    }
    for (std::size_t tries = 0; tries != 6 && high != infinite_cost<C>; ++tries) {
      if (high - low <= high / 256) break;
      C const limit = middle(low, high);
      C const walked = walk(limit);
      (walked == infinite_cost<C> ? low : high) = walked == infinite_cost<C> ? limit : walked;
    }
    return high;
  }

  /// Returns the bottleneck of stages that each end as far to the right as the limit allows, or
  /// `infinite_cost`.
  [[nodiscard]] C walk(C limit) const {
    auto const& rules = stages_.rules();
    C bottleneck{};
    std::size_t first = 0;
    for (std::size_t s = 0; s != stages_.stages(); ++s) {
      walked_stage const walked = walk_stage(s, first, limit);
      if (walked.cost != infinite_cost<C>) {
        bottleneck = std::max(bottleneck, walked.cost);
        first = walked.last;
      } else if (!rules.may_be_empty || first < rules.first_cut[s + 1] ||
                 first > rules.last_cut[s + 1]) {
        return infinite_cost<C>;
      }
    }
    return bottleneck;
  }

  struct walked_stage {
    C cost;
    std::size_t last;
  };

  /// Returns the longest stage from `first` on within the limit; its cost is `infinite_cost` if
  /// there is none.
  [[nodiscard]] walked_stage walk_stage(std::size_t s, std::size_t first, C limit) const {
    auto const& rules = stages_.rules();
    auto const low = std::max<std::size_t>(rules.first_cut[s + 1], first + rules.shortest[s]);
    std::size_t const high = std::max<std::size_t>(first, rules.last_cut[s + 1]);
    for (std::size_t last = stages_.furthest(s, first, high, limit); last >= low; --last) {
      if (rules.may_cut[last] == 0) continue;
      C const cost = stages_(s, first, last);
      if (cost <= limit && stages_.fits(s, first, last)) return {cost, last};
    }
    return {infinite_cost<C>, first};
  }

  stage_costs<C, Cost, Fits> const& stages_;
  chain_dp<C, Cost, Fits, as_bottleneck<C>> cuts_;
};

}  // namespace omnibal::inline v0::detail
