// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange of bundles between steps for more similar totals, within the limit on waiting time.
///
/// The input is the levels of the bundles, which `join_groups` made of several groups each, and the
/// order in which `sorted_cells` assigned these bundles to steps. The output is a new order of the
/// same bundles. A bundle is an index into the levels.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_rules.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/step_load.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/bits.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the standard deviation of the loads of a kind; 0 if all are equal.
template <std::size_t R>
[[nodiscard]] std::array<double, R> deviations(std::span<load_levels<R> const> levels) {
  load_levels<R> largest{};
  for (auto const& level : levels) {
    for (std::size_t r = 0; r != R; ++r) largest[r] = std::max(largest[r], level[r]);
  }
  std::array<double, R> result{};
  for (std::size_t r = 0; r != R; ++r) {
    // Squares of 32 bits: 2^32 of them and their products with 2^32 fit.
    int const shift = std::max(0, bit_width(largest[r]) - 32);
    uint128 sum = 0;
    uint128 squares = 0;
    for (auto const& level : levels) {
      std::uint64_t const share = level[r] >> shift;
      sum += share;
      squares += share * share;
    }
    if (sum == 0) continue;
    auto const variance = static_cast<double>(squares * levels.size() - sum * sum);
    auto const unit = static_cast<double>(std::uint64_t{1} << shift);
    result[r] = std::sqrt(variance) / static_cast<double>(levels.size()) * unit;
  }
  return result;
}

/// Splits two steps of bundles at a time again if that brings their totals nearer to the mean at an
/// acceptable cost in waiting time.
///
/// The bundles of two steps are sorted by a kind. One step gets a run of neighbors, and the other
/// all bundles above or below the run: the heaviest with light ones, for which ranks wait in any
/// case. Each round pairs steps with large totals with steps with small totals. The price of
/// waiting time decreases from round to round, and splits with the largest change per waiting time
/// come first. Among the splits within the limit on waiting time, the mixer selects the best.
template <std::size_t R>
class step_mixer {
 public:
  /// Creates the mixer of bundles in `order`. `deviation` is the deviation of groups, `goals` the
  /// limit on the waiting time of steps. Precondition: two steps.
  step_mixer(std::span<load_levels<R> const> levels, step_grid const& grid,
             std::span<std::uint32_t const> order, std::array<double, R> const& deviation,
             std::uint32_t groups_per_rank, waiting_times<R> const& goals)
      : levels_(levels),
        ranks_(grid.ranks),
        // There are fewer bundles if bundles have more groups.
        rounds_(3 * std::size_t{groups_per_rank} - 1),
        goals_(goals),
        loads_(grid.size()),
        totals_(grid.steps),
        merged_(2 * ranks_),
        most_(ranks_ + 1, {lowest(), lowest(), lowest(), lowest()}) {
    double const in_step = static_cast<double>(ranks_) * groups_per_rank;
    for (std::size_t r = 0; r != R; ++r) measure(r, deviation[r] * std::sqrt(in_step));
    sort_steps(order);
    for (std::uint32_t step = 0; step != grid.steps; ++step) {
      auto const of_step = bundles_of(0, step);
      for (std::uint32_t const bundle : of_step) add(totals_[step], bundle);
      auto const waits = waiting(of_step);
      for (std::size_t r = 0; r != R; ++r) waiting_[r] += waits[r];
    }
  }

  /// Returns the new order.
  [[nodiscard]] std::vector<std::uint32_t> mix(rng::engine words) && {
    std::size_t const steps = totals_.size();
    std::size_t const half = steps / 2;
    for (search_budget budget(rounds_); !budget.is_spent(); budget.spend()) {
      std::size_t const round = budget.spent();
      auto const order = order_steps(round % R);
      uint128 const min_apart = squares_of_totals() / (steps * share_to_gain);
      std::size_t const gap = rng::below(words, half);
      for (std::size_t k = 0; k != half; ++k) {
        std::uint32_t const one = order[k];
        std::uint32_t const other = order[steps - half + (k + gap) % half];
        if (squares_apart(one, other) >= min_apart) split(one, other, (round / R + k) % R);
      }
      std::size_t const shift =
          halvings_of_price * (round + 1) / rounds_ - halvings_of_price * round / rounds_;
      for (auto& price : prices_) price >>= shift;
    }
    return order_of_steps();
  }

 private:
  /// The standard deviation of the total of a random step. The constants below limit the distance
  /// of a bundle from the mean and the value of a total, and sums of squares fit.
  static constexpr double random_step = 0x1p14;
  static constexpr double max_apart = 0x1p29;
  static constexpr std::int64_t max_of_total = std::int64_t{1} << 28;
  static constexpr std::int64_t offset_of_totals = std::int64_t{1} << 62;
  /// The allowed average waiting time initially costs the same as 10 squares of `random_step`, and
  /// next to nothing in the last round.
  static constexpr double first_price = 10 * random_step * random_step;
  static constexpr double largest_price = 0x1p27;
  static constexpr std::size_t halvings_of_price = 16;
  /// Two steps are split only if the square of their distance is at least this share of the mean
  /// square of a total. At most half of that square can be gained.
  static constexpr std::uint64_t share_to_gain = 5;
  static constexpr std::size_t no_split = std::numeric_limits<std::size_t>::max();

  using apart_type = std::array<std::int32_t, R>;
  struct bundle_load {
    apart_type apart;
    /// The position in descending order of a kind.
    std::array<std::uint32_t, R> position;
  };

  struct split_choice {
    /// The first merged bundle of the first step.
    std::size_t first = no_split;
    /// The total of the first step.
    std::array<std::int64_t, R> total{};
    /// The decrease of the cost of both steps.
    std::int64_t gain = 0;
  };
  /// The largest loads of two steps, added for each kind.
  using largest_type = std::array<std::int64_t, R>;

  /// Measures the distances of bundles from the mean in a kind, and the price of waiting time.
  void measure(std::size_t r, double of_random_step) {
    uint128 sum = 0;
    for (auto const& level : levels_) sum += level[r];
    double const mean = static_cast<double>(sum) / static_cast<double>(loads_.size());
    double const scale = of_random_step > 0 ? random_step / of_random_step : 0;
    for (std::size_t bundle = 0; bundle != loads_.size(); ++bundle) {
      double const apart = (static_cast<double>(levels_[bundle][r]) - mean) * scale;
      loads_[bundle].apart[r] = static_cast<std::int32_t>(std::clamp(apart, -max_apart, max_apart));
    }
    auto const goal = static_cast<double>(std::max<std::int64_t>(goals_[r], 1));
    of_waiting_[r] = mean * scale / static_cast<double>(whole_step);
    double const may_wait = goal * of_waiting_[r] / static_cast<double>(totals_.size());
    double const price = may_wait > 0 ? first_price / may_wait : 0;
    prices_[r] = static_cast<std::int64_t>(std::min(price, largest_price));
  }

  void add(std::array<std::int64_t, R>& total, std::uint32_t bundle) const {
    for (std::size_t r = 0; r != R; ++r) total[r] += loads_[bundle].apart[r];
  }

  [[nodiscard]] std::span<std::uint32_t> bundles_of(std::size_t r, std::size_t step) {
    return std::span(sorted_[r]).subspan(step * ranks_, ranks_);
  }
  [[nodiscard]] std::span<std::uint32_t const> bundles_of(std::size_t r, std::size_t step) const {
    return std::span(sorted_[r]).subspan(step * ranks_, ranks_);
  }

  /// For each kind, sorts the bundles of each step by descending load.
  void sort_steps(std::span<std::uint32_t const> order) {
    std::vector<std::uint32_t> step_of(loads_.size());
    for (std::size_t place = 0; place != order.size(); ++place) {
      step_of[order[place]] = static_cast<std::uint32_t>(place / ranks_);
    }
    for (std::size_t r = 0; r != R; ++r) {
      auto const descending =
          order_descending(loads_.size(), [&](std::size_t bundle) { return levels_[bundle][r]; });
      std::vector<std::uint32_t> count(totals_.size(), 0);
      sorted_[r].resize(loads_.size());
      for (std::uint32_t position = 0; position != descending.size(); ++position) {
        std::uint32_t const bundle = descending[position];
        loads_[bundle].position[r] = position;
        bundles_of(r, step_of[bundle])[count[step_of[bundle]]++] = bundle;
      }
    }
  }

  /// Returns the steps by descending total of a kind.
  [[nodiscard]] std::vector<std::uint32_t> order_steps(std::size_t r) const {
    return order_descending(totals_.size(), [&](std::size_t step) {
      return static_cast<std::uint64_t>(totals_[step][r] + offset_of_totals);
    });
  }

  /// Returns the bundles of each step in ascending order, which is random.
  [[nodiscard]] std::vector<std::uint32_t> order_of_steps() {
    for (std::size_t step = 0; step != totals_.size(); ++step) {
      auto const of_step = bundles_of(0, step);
      std::sort(of_step.begin(), of_step.end());
    }
    return std::move(sorted_[0]);
  }

  /// Merges the bundles of two steps in descending order of a kind.
  void merge(std::size_t r, std::size_t one, std::size_t other) {
    auto const left = bundles_of(r, one);
    auto const right = bundles_of(r, other);
    std::merge(left.begin(), left.end(), right.begin(), right.end(), merged_.begin(),
               [&](std::uint32_t a, std::uint32_t b) {
                 return loads_[a].position[r] < loads_[b].position[r];
               });
  }

  [[nodiscard]] static apart_type larger(apart_type const& a, apart_type const& b) {
    apart_type result;
    for (std::size_t r = 0; r != R; ++r) result[r] = std::max(a[r], b[r]);
    return result;
  }

  [[nodiscard]] static apart_type lowest() {
    apart_type result;
    result.fill(std::numeric_limits<std::int32_t>::min());
    return result;
  }

  /// Computes the largest loads of ranges of merged bundles: [k, ranks), [ranks, ranks + k), [0, k)
  /// and [ranks + k, 2 * ranks).
  void measure_merged() {
    for (std::size_t k = 0; k != ranks_; ++k) {
      most_[k + 1][1] = larger(most_[k][1], loads_[merged_[ranks_ + k]].apart);
      most_[k + 1][2] = larger(most_[k][2], loads_[merged_[k]].apart);
    }
    for (std::size_t k = ranks_; k-- != 0;) {
      most_[k][0] = larger(most_[k + 1][0], loads_[merged_[k]].apart);
      most_[k][3] = larger(most_[k + 1][3], loads_[merged_[ranks_ + k]].apart);
    }
  }

  /// Returns the cost of two steps: the squares of the totals of `one` and of the rest of `both`,
  /// and the price of the largest loads.
  [[nodiscard]] std::int64_t cost(std::array<std::int64_t, R> const& one,
                                  std::array<std::int64_t, R> const& both,
                                  largest_type const& largest) const {
    std::int64_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const x = std::clamp(one[r], -max_of_total, max_of_total);
      std::int64_t const y = std::clamp(both[r] - one[r], -max_of_total, max_of_total);
      result += prices_[r] * largest[r] + x * x + y * y;
    }
    return result;
  }
  /// Returns the cost of two steps, measured anew.
  [[nodiscard]] std::int64_t measured_cost(std::uint32_t one, std::uint32_t other) const {
    std::array<std::int64_t, R> of_one{};
    std::array<std::int64_t, R> both{};
    largest_type largest{};
    for (std::uint32_t const step : {one, other}) {
      apart_type most = lowest();
      for (std::uint32_t const item : bundles_of(0, step)) {
        if (step == one) add(of_one, item);
        add(both, item);
        most = larger(most, loads_[item].apart);
      }
      for (std::size_t r = 0; r != R; ++r) largest[r] += most[r];
    }
    return cost(of_one, both, largest);
  }

  /// Returns the square of the distance between the totals of two steps.
  [[nodiscard]] std::uint64_t squares_apart(std::uint32_t one, std::uint32_t other) const {
    std::uint64_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const apart =
          std::clamp(totals_[one][r] - totals_[other][r], -max_of_total, max_of_total);
      result += static_cast<std::uint64_t>(apart * apart);
    }
    return result;
  }

  [[nodiscard]] uint128 squares_of_totals() const {
    uint128 result = 0;
    for (auto const& total : totals_) {
      for (std::int64_t const of_kind : total) {
        std::int64_t const x = std::clamp(of_kind, -max_of_total, max_of_total);
        result += static_cast<std::uint64_t>(x * x);
      }
    }
    return result;
  }

  /// Returns about the allowed increase of the sum of the largest loads of two steps.
  [[nodiscard]] std::int64_t spare(std::size_t r) const {
    std::int64_t const may_rise = std::max<std::int64_t>(goals_[r] - waiting_[r], 0);
    double const result = static_cast<double>(may_rise) * of_waiting_[r];
    return static_cast<std::int64_t>(std::min(result, 4 * max_apart));
  }

  /// Returns the gain of a split of two steps with the total `both`: the decrease of their cost.
  [[nodiscard]] std::int64_t evaluate_split(split_choice const& split,
                                            std::array<std::int64_t, R> const& both,
                                            largest_type const& largest,
                                            std::int64_t before) const {
    return before - cost(split.total, both, largest);
  }

  /// Returns the largest loads of two merged steps after a split.
  [[nodiscard]] largest_type largest_after(std::size_t first) const {
    auto const& most = most_[first];
    largest_type result;
    for (std::size_t r = 0; r != R; ++r) {
      result[r] = std::int64_t{std::max(most[0][r], most[1][r])} + std::max(most[2][r], most[3][r]);
    }
    return result;
  }
  [[nodiscard]] static bool are_within(largest_type const& largest, largest_type const& limits) {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && largest[r] <= limits[r];
    return result;
  }

  /// Returns the best split of two merged steps within the limit on waiting time, if it costs less
  /// than the present split.
  [[nodiscard]] split_choice best_split(std::uint32_t one, std::uint32_t other) {
    split_choice now;
    split_choice best;
    largest_type largest;
    largest_type may_be;
    std::array<std::int64_t, R> both;
    for (std::size_t k = 0; k != ranks_; ++k) add(now.total, merged_[k]);
    for (std::size_t r = 0; r != R; ++r) {
      largest[r] = std::int64_t{loads_[bundles_of(r, one)[0]].apart[r]} +
                   loads_[bundles_of(r, other)[0]].apart[r];
      may_be[r] = largest[r] + spare(r);
      both[r] = totals_[one][r] + totals_[other][r];
    }
    std::int64_t const before = cost(totals_[one], both, largest);
    for (now.first = 0;; ++now.first) {
      largest = largest_after(now.first);
      now.gain = evaluate_split(now, both, largest, before);
      if (are_within(largest, may_be) && now.gain > best.gain) best = now;
      if (now.first == ranks_) return best;
      apart_type const& leaves = loads_[merged_[now.first]].apart;
      apart_type const& comes = loads_[merged_[ranks_ + now.first]].apart;
      for (std::size_t r = 0; r != R; ++r) now.total[r] += comes[r] - leaves[r];
    }
  }

  /// Splits two steps again in the best way, if that is better and within the limit on waiting
  /// time.
  void split(std::uint32_t one, std::uint32_t other, std::size_t r) {
    merge(r, one, other);
    measure_merged();
    split_choice const best = best_split(one, other);
    if (best.first == no_split) return;
    auto const waits = evaluate_waiting(one, other, best.first);
    if (!may_wait(waits)) return;
    std::int64_t const more = std::accumulate(waits.begin(), waits.end(), std::int64_t{0});
    auto const waiting_time = [&] { return measured_waiting(one) + measured_waiting(other); };
    auto const cost_of_both = [&] { return measured_cost(one, other); };
    apply_checked({"step_mixer", "waiting time of a split"}, -more, waiting_time, [&] {
      apply_checked({"step_mixer", "split"}, best.gain, cost_of_both,
                    [&] { apply_split(one, other, r, best); });
    });
    for (std::size_t q = 0; q != R; ++q) waiting_[q] += waits[q];
  }

  [[nodiscard]] waiting_times<R> waiting(std::span<std::uint32_t const> bundles) const {
    step_load<R> load;
    for (std::uint32_t const bundle : bundles) load.add(levels_[bundle]);
    return load.waiting(ranks_);
  }

  /// Returns the waiting time of a step in all kinds, measured anew.
  [[nodiscard]] std::int64_t measured_waiting(std::uint32_t step) const {
    auto const waits = waiting(bundles_of(0, step));
    return std::accumulate(waits.begin(), waits.end(), std::int64_t{0});
  }

  /// Returns the increase of the waiting time by such a split.
  [[nodiscard]] std::array<std::int64_t, R> evaluate_waiting(std::uint32_t one, std::uint32_t other,
                                                             std::size_t first) const {
    step_load<R> middle;
    step_load<R> rest;
    for (std::size_t k = 0; k != merged_.size(); ++k) {
      (k - first < ranks_ ? middle : rest).add(levels_[merged_[k]]);
    }
    auto const left = middle.waiting(ranks_);
    auto const right = rest.waiting(ranks_);
    auto const old_left = waiting(bundles_of(0, one));
    auto const old_right = waiting(bundles_of(0, other));
    std::array<std::int64_t, R> more;
    for (std::size_t r = 0; r != R; ++r) more[r] = left[r] + right[r] - old_left[r] - old_right[r];
    return more;
  }
  /// Returns whether this increase of the waiting time is within the limit.
  [[nodiscard]] bool may_wait(std::array<std::int64_t, R> const& more) const {
    for (std::size_t r = 0; r != R; ++r) {
      if (more[r] > 0 && waiting_[r] + more[r] > goals_[r]) return false;
    }
    return true;
  }

  /// Assigns to `one` the merged bundles from the first of the split on, and to `other` the rest.
  void apply_split(std::uint32_t one, std::uint32_t other, std::size_t r,
                   split_choice const& split) {
    std::uint32_t const first_position = loads_[merged_[split.first]].position[r];
    std::uint32_t const last_position = loads_[merged_[split.first + ranks_ - 1]].position[r];
    for (std::size_t q = 0; q != R; ++q) {
      totals_[other][q] += totals_[one][q] - split.total[q];
    }
    totals_[one] = split.total;
    for (std::size_t q = 0; q != R; ++q) {
      merge(q, one, other);
      auto to_one = bundles_of(q, one).begin();
      auto to_other = bundles_of(q, other).begin();
      for (std::uint32_t const bundle : merged_) {
        std::uint32_t const position = loads_[bundle].position[r];
        bool const is_in_one = position >= first_position && position <= last_position;
        (is_in_one ? *to_one++ : *to_other++) = bundle;
      }
    }
  }

  std::span<load_levels<R> const> levels_;
  std::size_t ranks_;
  std::size_t rounds_;
  waiting_times<R> goals_;
  std::array<std::int64_t, R> prices_{};
  /// The excess of the largest load over the mean if ranks wait for one unit of a `whole_step`.
  std::array<double, R> of_waiting_{};
  /// A sum over all steps.
  waiting_times<R> waiting_{};
  std::vector<bundle_load> loads_;
  /// The distances of the totals of steps from the mean.
  std::vector<std::array<std::int64_t, R>> totals_;
  /// The bundles of all steps, in descending order of a kind within each step.
  std::array<std::vector<std::uint32_t>, R> sorted_;
  /// The bundles of two steps, and their largest loads.
  std::vector<std::uint32_t> merged_;
  std::vector<std::array<apart_type, 4>> most_;
};

}  // namespace omnibal::inline v0::detail
