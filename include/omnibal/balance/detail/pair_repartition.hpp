// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A walk that balances parts by repeated splits of two of them.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_ranking.hpp>
#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The best subset of up to 16 changes, by a meet-in-the-middle search. Its sum is the sum of two
/// elements of sorted lists, each of 2^8 subset sums. The time does not depend on the size of the
/// numbers. Source: Horowitz, Sahni, "Computing partitions with applications to the knapsack
/// problem", 1974.
class even_subset {
 public:
  /// The maximum number of changes from which a split selects.
  static constexpr std::size_t max_changes = 16;

  /// Selects the subset of `changes` after which the larger of two loads, or times, is smallest,
  /// and not larger than now. The sum of the subset is added to `load` and subtracted from `other`.
  /// The bits of a word are a subset; `may_be` returns whether a subset is allowed. Among equally
  /// good subsets, the order of the changes decides. Returns the decrease of the larger of the two.
  template <class MayBe, class Pair>
  gain_of<Pair> choose(std::span<std::int64_t const> changes, std::int64_t load, std::int64_t other,
                       MayBe const& may_be, Pair const& pair) {
    std::size_t const half = changes.size() / 2;
    std::span<sum const> const low = sums(changes.first(half), low_);
    std::span<sum const> const high = sums(changes.subspan(half), high_);
    std::int64_t const both = load + other;
    std::int64_t const share = pair.share(both);
    gain_of<Pair> const least = pair.least(both);
    gain_of<Pair> best = pair.larger(load, other);
    bool is_least = false;
    chosen_ = 0;
    std::size_t i = 0;
    std::size_t j = high.size();
    while (i != low.size() && j != 0 && !is_least) {
      std::int64_t const after = load + low[i].value + high[j - 1].value;
      gain_of<Pair> const largest = pair.larger(after, both - after);
      std::uint32_t const subset = low[i].subset | high[j - 1].subset << half;
      if (largest <= best && may_be(subset)) {
        best = largest;
        chosen_ = subset;
        is_least = best == least;
      }
      if (after < share) {
        ++i;
      } else {
        --j;
      }
    }
    return pair.larger(load, other) - best;
  }

  /// Returns whether the selected subset contains a change.
  [[nodiscard]] bool has(std::size_t change) const { return (chosen_ >> change & 1) != 0; }
  /// Selects no change.
  void clear() { chosen_ = 0; }

 private:
  struct sum {
    std::int64_t value;
    std::uint32_t subset;
  };
  using sums_type = std::array<sum, std::size_t{1} << max_changes / 2>;

  /// Computes the sums of all subsets, in ascending order.
  std::span<sum const> sums(std::span<std::int64_t const> changes, sums_type& result) {
    result[0] = {};
    std::size_t count = 1;
    for (std::size_t k = 0; k != changes.size(); ++k) {
      std::copy_n(result.begin(), count, without_.begin());
      std::int64_t const change = changes[k];
      std::size_t i = 0;
      std::size_t j = 0;
      for (std::size_t to = 0; to != 2 * count; ++to) {
        bool const is_changed =
            i == count || (j != count && without_[j].value + change < without_[i].value);
        if (is_changed) {
          result[to] = {without_[j].value + change, without_[j].subset | 1u << k};
          ++j;
        } else {
          result[to] = without_[i++];
        }
      }
      count *= 2;
    }
    return std::span(result).first(count);
  }

  sums_type low_;
  sums_type high_;
  sums_type without_;
  std::uint32_t chosen_ = 0;
};

/// Samples that a split may exchange: a sample that leaves a part, a sample that arrives from the
/// other part, or both.
struct split_candidate {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t leaves = none;
  std::uint32_t comes = none;
};

/// A part that is split, and its samples.
struct split_part {
  std::uint32_t part;
  std::vector<std::uint32_t> const& samples;
};

/// A walk over parts of samples with costs of one kind; no step increases the larger of two loads.
/// A step splits two parts again: it exchanges some of their samples such that the larger of their
/// loads is smallest. If the loads stay the same, the parts have other samples, which the next step
/// can use. On average half of the steps select the part with the largest load, and half the part
/// with the smallest.
///
/// With different speeds, loads over speeds take the place of loads.
///
/// Source: Haouari, Jemmali, "Tight bounds for the identical parallel machine-scheduling problem:
/// Part II", 2008, for the neighborhood; they solve each pair by dynamic programming.
template <class Speeds = equal_speeds>
class pair_repartition {
 public:
  /// The time of a part: its load, or its load over its speed if speeds differ.
  using time = typename Speeds::time;

  /// Creates the walk. `order` contains the samples, and `part_of` contains the part of each
  /// sample. The costs must outlive this object.
  pair_repartition(integer_costs<1> const& costs, std::span<std::uint32_t const> order,
                   std::span<std::uint32_t const> part_of, std::size_t parts, std::uint64_t seed,
                   Speeds speeds = {})
      : costs_(costs),
        speeds_(std::move(speeds)),
        samples_(parts),
        loads_(loads_of(costs, order, part_of, parts)),
        ranking_(speeds_, parts, [this](std::size_t part) { return loads_[part]; }),
        words_(seed) {
    for (std::uint32_t const sample : order) samples_[part_of[sample]].push_back(sample);
  }

  /// Runs steps until no load is above `target`, until the budget is spent, or until `in_vain`
  /// steps have not halved the excess above `target`. If `counts` is `kept`,
  /// samples are only exchanged for others.
  template <class Exchanges>
  void run(time target, search_budget budget, std::size_t in_vain, part_counts counts,
           Exchanges const& exchanges) {
    halving_limit<time> limit(target, in_vain);
    for (; !budget.is_spent(); budget.spend()) {
      std::uint32_t const heavy = ranking_.heaviest();
      time const largest = time_of(heavy);
      if (largest <= target || limit.ends(largest, budget.spent())) return;
      auto const [one, other] = choose_pair(heavy);
      if (one != other) split(one, other, counts, exchanges);
    }
  }

  [[nodiscard]] time largest_load() { return time_of(ranking_.heaviest()); }

  /// Calls `body(sample, part)` for each sample.
  template <class Body>
  void for_each_sample(Body const& body) const {
    for (std::uint32_t part = 0; part != samples_.size(); ++part) {
      for (std::uint32_t const sample : samples_[part]) body(sample, part);
    }
  }

 private:
  using samples_type = std::vector<std::uint32_t>;
  static constexpr std::uint32_t none = split_candidate::none;

  [[nodiscard]] static std::vector<std::int64_t> loads_of(integer_costs<1> const& costs,
                                                          std::span<std::uint32_t const> order,
                                                          std::span<std::uint32_t const> part_of,
                                                          std::size_t parts) {
    std::vector<std::int64_t> loads(parts, 0);
    for (std::uint32_t const sample : order) loads[part_of[sample]] += costs[sample][0];
    return loads;
  }

  [[nodiscard]] time time_of(std::size_t part) const { return speeds_.time_of(part, loads_[part]); }
  [[nodiscard]] split_part part_at(std::uint32_t part) const { return {part, samples_[part]}; }
  [[nodiscard]] std::int64_t cost(std::uint32_t sample) const {
    return sample == none ? 0 : costs_[sample][0];
  }

  /// Selects the pair of parts of a step, with equal probability: the heaviest and the lightest
  /// part, the heaviest and a random part, the lightest and a random part, or two random parts. The
  /// mixture is better than each kind of pair by itself.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> choose_pair(std::uint32_t heavy) {
    auto const any = [this] {
      return static_cast<std::uint32_t>(rng::below(words_, loads_.size()));
    };
    std::uint64_t const kind = words_() >> 62;
    if (kind == 0) return {heavy, ranking_.lightest()};
    if (kind == 1) return {heavy, any()};
    if (kind == 2) return {ranking_.lightest(), any()};
    std::uint32_t const one = any();
    return {one, any()};
  }

  /// Removes a sample from a part and returns it: the sample with the largest cost of 1, 2, 4, 8 or
  /// 16 random samples. Successive draws use these numbers in turn, because the largest samples
  /// matter most and may be rare.
  [[nodiscard]] std::uint32_t draw(samples_type& from) {
    constexpr std::size_t turns = 5;
    std::size_t chosen = rng::below(words_, from.size());
    for (std::size_t k = (std::size_t{1} << candidates_.size() % turns) - 1; k != 0; --k) {
      std::size_t const other = rng::below(words_, from.size());
      if (cost(from[other]) > cost(from[chosen])) chosen = other;
    }
    std::swap(from[chosen], from.back());
    std::uint32_t const sample = from.back();
    from.pop_back();
    return sample;
  }

  /// Draws up to 16 samples as candidates, in random order: the same number from both parts, or
  /// more from one part if the other part has fewer than 8 samples.
  void draw_moves(samples_type& one, samples_type& other) {
    constexpr std::size_t half = even_subset::max_changes / 2;
    std::size_t const few = std::min({half, one.size(), other.size()});
    std::size_t of_one = std::min(one.size(), even_subset::max_changes - few);
    std::size_t of_other = std::min(other.size(), even_subset::max_changes - of_one);
    while (of_one + of_other != 0) {
      if (rng::below(words_, of_one + of_other) < of_one) {
        candidates_.push_back({draw(one), none});
        --of_one;
      } else {
        candidates_.push_back({none, draw(other)});
        --of_other;
      }
    }
  }
  void draw_swaps(samples_type& one, samples_type& other) {
    std::size_t const count = std::min({one.size(), other.size(), even_subset::max_changes});
    for (std::size_t k = 0; k != count; ++k) candidates_.push_back({draw(one), draw(other)});
  }

  /// Draws new candidates and removes their samples from the two parts.
  void order_candidates(std::uint32_t one, std::uint32_t other, part_counts counts) {
    candidates_.clear();
    if (counts == part_counts::free) {
      draw_moves(samples_[one], samples_[other]);
    } else {
      draw_swaps(samples_[one], samples_[other]);
    }
  }

  /// Selects the best subset of the candidates and returns its gain: the decrease of the larger
  /// load of the two parts.
  template <class Exchanges>
  [[nodiscard]] auto evaluate_split(std::uint32_t one, std::uint32_t other,
                                    Exchanges const& exchanges) {
    changes_.clear();
    for (auto const [leaves, comes] : candidates_) changes_.push_back(cost(comes) - cost(leaves));
    return subset_.choose(changes_, loads_[one], loads_[other],
                          exchanges.filter(part_at(one), part_at(other), candidates_),
                          speeds_.pair(one, other));
  }

  template <class Exchanges>
  void split(std::uint32_t one, std::uint32_t other, part_counts counts,
             Exchanges const& exchanges) {
    auto const pair = speeds_.pair(one, other);
    [[maybe_unused]] auto const before = pair.larger(loads_[one], loads_[other]);
    order_candidates(one, other, counts);
    auto gain = evaluate_split(one, other, exchanges);
    if (!apply_split(one, other, exchanges)) gain = 0;
    if constexpr (checks_gains) {
      auto const after = pair.larger(measured_load(one), measured_load(other));
      check_gain({"pair_repartition", "split"}, gain, before - after);
    }
  }

  /// Returns the load of a part, computed from its samples.
  [[nodiscard]] std::int64_t measured_load(std::uint32_t part) const {
    std::int64_t load = 0;
    for (std::uint32_t const sample : samples_[part]) load += cost(sample);
    return load;
  }

  /// Exchanges the candidates of the subset. Exchanges no samples and returns false if rounding
  /// makes a part exceed a limit.
  template <class Exchanges>
  bool apply_split(std::uint32_t one, std::uint32_t other, Exchanges const& exchanges) {
    put_back(one, other);
    bool const holds = exchanges.holds(part_at(one), part_at(other));
    if (!holds) {
      take_out(one, other);
      subset_.clear();
      put_back(one, other);
    }
    for (std::size_t k = 0; k != changes_.size(); ++k) {
      if (!subset_.has(k)) continue;
      loads_[one] += changes_[k];
      loads_[other] -= changes_[k];
    }
    for (std::uint32_t const part : {one, other}) ranking_.set(part, loads_[part]);
    return holds;
  }

  /// Assigns the candidates to the two parts; candidates of the subset change their part.
  void put_back(std::uint32_t one, std::uint32_t other) {
    for_each_candidate(one, other, [](std::uint32_t sample, samples_type& part) {
      if (sample != none) part.push_back(sample);
    });
  }
  /// Reverts the last `put_back`.
  void take_out(std::uint32_t one, std::uint32_t other) {
    for_each_candidate(one, other, [](std::uint32_t sample, samples_type& part) {
      if (sample != none) part.pop_back();
    });
  }
  template <class Body>
  void for_each_candidate(std::uint32_t one, std::uint32_t other, Body const& body) {
    for (std::size_t k = 0; k != candidates_.size(); ++k) {
      bool const is_exchanged = subset_.has(k);
      body(candidates_[k].leaves, samples_[is_exchanged ? other : one]);
      body(candidates_[k].comes, samples_[is_exchanged ? one : other]);
    }
  }

  integer_costs<1> const& costs_;
  Speeds speeds_;
  std::vector<samples_type> samples_;
  std::vector<std::int64_t> loads_;
  ranking_for<Speeds> ranking_;
  rng::engine words_;
  std::vector<split_candidate> candidates_;
  std::vector<std::int64_t> changes_;
  even_subset subset_;
};

/// The limits of the search for even parts.
struct evening_effort {
  /// The maximum number of exchanges and splits together.
  search_budget budget;
  /// The maximum number of splits that do not halve the excess. The search limits this number to 32
  /// for each sample, and then adds four splits for each part.
  std::size_t splits;
  std::uint64_t seed = 0;
};

/// Lowers the largest load, or load over speed, until it is at most `target` or the effort is
/// spent. The search uses exchanges with the lightest part, then splits of pairs of parts. `order`
/// contains the samples in the order of `largest_first`; `part_of` contains the part of each sample
/// and is updated. Returns the largest load, or load over speed. Memory: 24 bytes per sample and
/// 180 per part.
template <class Exchanges, class Speeds = equal_speeds>
typename Speeds::time even_parts(integer_costs<1> const& costs,
                                 std::span<std::uint32_t const> order,
                                 std::vector<std::uint32_t>& part_of, std::size_t parts,
                                 typename Speeds::time target, evening_effort const& effort,
                                 part_counts counts, Exchanges const& exchanges,
                                 Speeds const& speeds = {}) {
  search_budget budget = effort.budget;
  {
    part_refiner<1, Exchanges, Speeds> refiner(costs, order, part_of, parts, exchanges, speeds);
    refiner.run_with_lightest(target, budget, counts);
    refiner.for_each_sample(
        [&](std::uint32_t place, std::uint32_t part) { part_of[order[place]] = part; });
    auto const largest = refiner.largest_load();
    if (budget.is_spent() || effort.splits == 0 || largest <= target) return largest;
  }
  // If many subsets have the same sum, a few splits for each part bring all parts to the mean. The
  // limit on splits per sample saves time for few samples.
  std::size_t const in_vain = std::min(effort.splits, 32 * order.size()) + 4 * parts;
  pair_repartition<Speeds> walk(costs, order, part_of, parts, effort.seed, speeds);
  walk.run(target, search_budget(budget.left()), in_vain, counts, exchanges);
  walk.for_each_sample([&](std::uint32_t sample, std::uint32_t part) { part_of[sample] = part; });
  return walk.largest_load();
}

}  // namespace omnibal::inline v0::detail
