// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange of bundles between steps for more similar totals, within the limit on idle time.
///
/// The input is the levels of the bundles, which `join_groups` made of several groups each, and the
/// order in which `sorted_cells` assigned these bundles to steps. The output is a new order of the
/// same bundles. A bundle is an index into the levels.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/step_bundles.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/step_load.hpp>
#include <omnibal/config.hpp>
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
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the number of rounds of the mixer. There are fewer bundles if bundles have more groups.
[[nodiscard]] constexpr std::size_t mixer_rounds(std::uint32_t groups_per_rank) {
  return 3 * std::size_t{groups_per_rank} - 1;
}

/// Divides the bundles of two steps anew, pair after pair, if that brings the totals of both steps
/// nearer to the mean at an acceptable cost in idle time. Such a division is a split.
///
/// A split sorts the bundles of both steps by a kind of load. One step gets neighbors in this
/// order, and the other step gets the rest: the heaviest and the lightest bundles. Each round pairs
/// steps with large totals with steps with small totals. Among the splits within the limit on idle
/// time, the mixer selects the split with the least cost: squares of totals, and a price for idle
/// time. The price decreases from round to round, so that splits with the largest gain per idle
/// time come first.
template <std::size_t R>
class step_mixer {
 public:
  /// Creates the mixer of bundles in `order`. `deviation` is the standard deviation of the loads of
  /// groups, `goals` the limit on the idle time of all steps, in each kind. Precondition: there are
  /// at least two steps.
  step_mixer(std::span<load_levels<R> const> levels, step_grid const& grid,
             std::span<std::uint32_t const> order, std::array<double, R> const& deviation,
             std::uint32_t groups_per_rank, waiting_times<R> const& goals)
      : levels_(levels),
        ranks_(grid.ranks),
        rounds_(mixer_rounds(groups_per_rank)),
        goals_(goals),
        bundles_(levels, grid, order),
        totals_(grid.steps),
        largest_of_(ranks_ + 1) {
    double const in_step = static_cast<double>(ranks_) * groups_per_rank;
    for (std::size_t r = 0; r != R; ++r) measure_kind(r, deviation[r] * std::sqrt(in_step));
    for (std::uint32_t step = 0; step != grid.steps; ++step) {
      for (std::uint32_t const bundle : bundles_.of_step(step)) add(totals_[step], bundle);
      auto const of_step = waiting_of(step);
      for (std::size_t r = 0; r != R; ++r) waiting_[r] += of_step[r];
    }
  }

  /// Returns the new order.
  [[nodiscard]] std::vector<std::uint32_t> mix(rng::engine words) && {
    std::size_t const steps = totals_.size();
    std::size_t const half = steps / 2;
    for (search_budget budget(rounds_); !budget.is_spent(); budget.spend()) {
      std::size_t const round = budget.spent();
      auto const order = order_steps(round % R);
      uint128 const min_squares = squares_of_totals() / (steps * share_to_gain);
      // Each step of the upper half is paired with a step of the lower half, at a random distance.
      std::size_t const gap = rng::below(words, half);
      for (std::size_t k = 0; k != half; ++k) {
        std::uint32_t const first_step = order[k];
        std::uint32_t const second_step = order[steps - half + (k + gap) % half];
        if (squared_distance(first_step, second_step) >= min_squares)
          split(first_step, second_step, (round / R + k) % R);
      }
      // The halvings of the price are spread evenly over the rounds.
      std::size_t const halvings =
          halvings_of_price * (round + 1) / rounds_ - halvings_of_price * round / rounds_;
      for (auto& price : prices_) price >>= halvings;
    }
    return bundles_.order();
  }

 private:
  /// The unit of distances: the total of a random step has this standard deviation.
  static constexpr double random_step = 0x1p14;
  /// The limit on a total. Sums of squares within it fit.
  static constexpr std::int64_t max_of_total = std::int64_t{1} << 28;
  /// The number that makes all totals positive, for a sort.
  static constexpr std::int64_t offset_of_totals = std::int64_t{1} << 62;
  /// The allowed average idle time initially costs the same as 10 squares of `random_step`, and
  /// next to nothing in the last round.
  static constexpr double first_price = 10 * random_step * random_step;
  static constexpr double max_price = 0x1p27;
  static constexpr std::size_t halvings_of_price = 16;
  /// Two steps are split only if the square of their distance is at least this share of the mean
  /// square of a total. At most half of that square can be gained.
  static constexpr std::uint64_t share_to_gain = 5;
  static constexpr std::size_t no_split = std::numeric_limits<std::size_t>::max();

  using distances = load_distances<R>;
  /// A sum of distances, in each kind: the total of a step, or the largest loads of two steps.
  using distance_sums = std::array<std::int64_t, R>;

  /// A split of two steps whose bundles are merged in descending order of a kind: step `first_step`
  /// gets the merged bundles [first, first + ranks), and step `second_step` the rest.
  struct split_choice {
    std::size_t first = no_split;
    /// The total of step `first_step` after the split.
    distance_sums total{};
    /// The decrease of the cost of both steps.
    std::int64_t gain = 0;
  };

  /// The largest loads of ranges of merged bundles, for a split at k.
  struct largest_loads {
    /// [k, ranks) and [ranks, ranks + k): the bundles of step `first_step`.
    distances one_before_middle = lowest();
    distances one_from_middle = lowest();
    /// [0, k) and [ranks + k, 2 * ranks): the bundles of step `second_step`.
    distances other_before = lowest();
    distances other_behind = lowest();
  };

  /// Measures the distances of bundles from the mean in a kind, and the price of idle time.
  /// `deviation` is the standard deviation of the total of a random step.
  void measure_kind(std::size_t r, double deviation) {
    uint128 sum = 0;
    for (auto const& level : levels_) sum += level[r];
    double const mean = static_cast<double>(sum) / static_cast<double>(ranks_ * totals_.size());
    double const scale = deviation > 0 ? random_step / deviation : 0;
    bundles_.measure_distances(levels_, r, mean, scale);
    auto const goal = static_cast<double>(std::max<std::int64_t>(goals_[r], 1));
    load_per_waiting_[r] = mean * scale / static_cast<double>(whole_step);
    double const allowed_load = goal * load_per_waiting_[r] / static_cast<double>(totals_.size());
    double const price = allowed_load > 0 ? first_price / allowed_load : 0;
    prices_[r] = static_cast<std::int64_t>(std::min(price, max_price));
  }

  void add(distance_sums& total, std::uint32_t bundle) const {
    for (std::size_t r = 0; r != R; ++r) total[r] += bundles_.distance(bundle)[r];
  }

  /// Returns the steps by descending total of a kind.
  [[nodiscard]] std::vector<std::uint32_t> order_steps(std::size_t r) const {
    return order_descending(totals_.size(), [&](std::size_t step) {
      return static_cast<std::uint64_t>(totals_[step][r] + offset_of_totals);
    });
  }

  [[nodiscard]] static distances larger(distances const& a, distances const& b) {
    distances result;
    for (std::size_t r = 0; r != R; ++r) result[r] = std::max(a[r], b[r]);
    return result;
  }

  [[nodiscard]] static distances lowest() {
    distances result;
    result.fill(std::numeric_limits<std::int32_t>::min());
    return result;
  }

  /// Computes the largest loads for the splits of the merged bundles.
  void measure_largest(std::span<std::uint32_t const> bundles) {
    for (std::size_t k = 0; k != ranks_; ++k) {
      largest_of_[k + 1].one_from_middle =
          larger(largest_of_[k].one_from_middle, bundles_.distance(bundles[ranks_ + k]));
      largest_of_[k + 1].other_before =
          larger(largest_of_[k].other_before, bundles_.distance(bundles[k]));
    }
    for (std::size_t k = ranks_; k-- != 0;) {
      largest_of_[k].one_before_middle =
          larger(largest_of_[k + 1].one_before_middle, bundles_.distance(bundles[k]));
      largest_of_[k].other_behind =
          larger(largest_of_[k + 1].other_behind, bundles_.distance(bundles[ranks_ + k]));
    }
  }

  /// Returns the cost of two steps: the squares of the total of one step and of the rest of `both`,
  /// and the price of the largest loads.
  [[nodiscard]] std::int64_t cost(distance_sums const& total, distance_sums const& both,
                                  distance_sums const& largest) const {
    std::int64_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const x = std::clamp(total[r], -max_of_total, max_of_total);
      std::int64_t const y = std::clamp(both[r] - total[r], -max_of_total, max_of_total);
      result += prices_[r] * largest[r] + x * x + y * y;
    }
    return result;
  }
  /// Returns the cost of two steps, computed from their bundles.
  [[nodiscard]] std::int64_t measured_cost(std::uint32_t first_step,
                                           std::uint32_t second_step) const {
    distance_sums of_one{};
    distance_sums both{};
    distance_sums largest{};
    for (std::uint32_t const step : {first_step, second_step}) {
      distances of_step = lowest();
      for (std::uint32_t const bundle : bundles_.of_step(step)) {
        if (step == first_step) add(of_one, bundle);
        add(both, bundle);
        of_step = larger(of_step, bundles_.distance(bundle));
      }
      for (std::size_t r = 0; r != R; ++r) largest[r] += of_step[r];
    }
    return cost(of_one, both, largest);
  }

  /// Returns the square of the distance between the totals of two steps.
  [[nodiscard]] std::uint64_t squared_distance(std::uint32_t first_step,
                                               std::uint32_t second_step) const {
    std::uint64_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const distance =
          std::clamp(totals_[first_step][r] - totals_[second_step][r], -max_of_total, max_of_total);
      result += static_cast<std::uint64_t>(distance * distance);
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

  /// Returns an estimate of the allowed increase of the sum of the largest loads of two steps.
  [[nodiscard]] std::int64_t allowed_increase(std::size_t r) const {
    std::int64_t const waiting_left = std::max<std::int64_t>(goals_[r] - waiting_[r], 0);
    double const result = static_cast<double>(waiting_left) * load_per_waiting_[r];
    return static_cast<std::int64_t>(std::min(result, 4 * step_bundles<R>::max_distance));
  }

  /// Returns the gain of a split of two steps with the total `both`: the decrease of their cost.
  [[nodiscard]] std::int64_t evaluate_split(split_choice const& split, distance_sums const& both,
                                            distance_sums const& largest,
                                            std::int64_t before) const {
    return before - cost(split.total, both, largest);
  }

  /// Returns the largest loads of two merged steps after a split.
  [[nodiscard]] distance_sums largest_after(std::size_t first) const {
    largest_loads const& largest = largest_of_[first];
    distances const of_one = larger(largest.one_before_middle, largest.one_from_middle);
    distances const of_other = larger(largest.other_before, largest.other_behind);
    distance_sums result;
    for (std::size_t r = 0; r != R; ++r) result[r] = std::int64_t{of_one[r]} + of_other[r];
    return result;
  }
  [[nodiscard]] static bool are_within(distance_sums const& largest, distance_sums const& limits) {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && largest[r] <= limits[r];
    return result;
  }

  /// Returns the best split of two merged steps within the limit on idle time, if it costs less
  /// than the present split.
  [[nodiscard]] split_choice best_split(std::uint32_t first_step, std::uint32_t second_step,
                                        std::span<std::uint32_t const> bundles) {
    split_choice present;
    split_choice best;
    distance_sums largest;
    distance_sums limits;
    distance_sums both;
    for (std::size_t k = 0; k != ranks_; ++k) add(present.total, bundles[k]);
    for (std::size_t r = 0; r != R; ++r) {
      largest[r] = std::int64_t{bundles_.distance(bundles_.of_step(first_step, r)[0])[r]} +
                   bundles_.distance(bundles_.of_step(second_step, r)[0])[r];
      limits[r] = largest[r] + allowed_increase(r);
      both[r] = totals_[first_step][r] + totals_[second_step][r];
    }
    std::int64_t const before = cost(totals_[first_step], both, largest);
    for (present.first = 0;; ++present.first) {
      largest = largest_after(present.first);
      present.gain = evaluate_split(present, both, largest, before);
      if (are_within(largest, limits) && present.gain > best.gain) best = present;
      if (present.first == ranks_) return best;
      distances const& leaves = bundles_.distance(bundles[present.first]);
      distances const& comes = bundles_.distance(bundles[ranks_ + present.first]);
      for (std::size_t r = 0; r != R; ++r) present.total[r] += comes[r] - leaves[r];
    }
  }

  /// Applies the best split of two steps by a kind, if it is better and within the limit on idle
  /// time.
  void split(std::uint32_t first_step, std::uint32_t second_step, std::size_t kind) {
    auto const bundles = bundles_.merge(first_step, second_step, kind);
    measure_largest(bundles);
    split_choice const best = best_split(first_step, second_step, bundles);
    if (best.first == no_split) return;
    waiting_times<R> const added_waiting =
        evaluate_waiting(first_step, second_step, bundles, best.first);
    if (!is_allowed(added_waiting)) return;
    std::int64_t const added_in_all =
        std::accumulate(added_waiting.begin(), added_waiting.end(), std::int64_t{0});
    auto const waiting_time = [&] {
      return measured_waiting(first_step) + measured_waiting(second_step);
    };
    auto const cost_of_both = [&] { return measured_cost(first_step, second_step); };
    apply_checked({"step_mixer", "waiting time of a split"}, -added_in_all, waiting_time, [&] {
      apply_checked({"step_mixer", "split"}, best.gain, cost_of_both,
                    [&] { apply_split(first_step, second_step, kind, bundles, best); });
    });
    for (std::size_t r = 0; r != R; ++r) waiting_[r] += added_waiting[r];
  }

  [[nodiscard]] waiting_times<R> waiting_of(std::uint32_t step) const {
    step_load<R> load;
    for (std::uint32_t const bundle : bundles_.of_step(step)) load.add(levels_[bundle]);
    return load.waiting(ranks_);
  }

  /// Returns the idle time of a step, summed over the kinds and computed from its bundles.
  [[nodiscard]] std::int64_t measured_waiting(std::uint32_t step) const {
    auto const of_step = waiting_of(step);
    return std::accumulate(of_step.begin(), of_step.end(), std::int64_t{0});
  }

  /// Returns the increase of the idle time if step `first_step` gets the merged bundles from
  /// `first` on.
  [[nodiscard]] waiting_times<R> evaluate_waiting(std::uint32_t first_step,
                                                  std::uint32_t second_step,
                                                  std::span<std::uint32_t const> bundles,
                                                  std::size_t first) const {
    step_load<R> of_one;
    step_load<R> of_other;
    for (std::size_t k = 0; k != bundles.size(); ++k) {
      (k - first < ranks_ ? of_one : of_other).add(levels_[bundles[k]]);
    }
    auto const new_one = of_one.waiting(ranks_);
    auto const new_other = of_other.waiting(ranks_);
    auto const old_one = waiting_of(first_step);
    auto const old_other = waiting_of(second_step);
    waiting_times<R> added_waiting;
    for (std::size_t r = 0; r != R; ++r)
      added_waiting[r] = new_one[r] + new_other[r] - old_one[r] - old_other[r];
    return added_waiting;
  }
  /// Returns whether this increase of the idle time is within the limit.
  [[nodiscard]] bool is_allowed(waiting_times<R> const& added_waiting) const {
    for (std::size_t r = 0; r != R; ++r) {
      if (added_waiting[r] > 0 && waiting_[r] + added_waiting[r] > goals_[r]) return false;
    }
    return true;
  }

  /// Divides the bundles of two steps by a split in the order of `kind`. Updates the sorted bundles
  /// of both steps in every kind.
  void apply_split(std::uint32_t first_step, std::uint32_t second_step, std::size_t kind,
                   std::span<std::uint32_t const> bundles, split_choice const& split) {
    for (std::size_t r = 0; r != R; ++r) {
      totals_[second_step][r] += totals_[first_step][r] - split.total[r];
    }
    totals_[first_step] = split.total;
    bundles_.split(first_step, second_step, kind, bundles[split.first],
                   bundles[split.first + ranks_ - 1]);
  }

  std::span<load_levels<R> const> levels_;
  std::size_t ranks_;
  std::size_t rounds_;
  waiting_times<R> goals_;
  std::array<std::int64_t, R> prices_{};
  /// The excess of the largest load over the mean if ranks are idle for 1 / `whole_step` of a step,
  /// in each kind.
  std::array<double, R> load_per_waiting_{};
  /// The idle time of all steps.
  waiting_times<R> waiting_{};
  step_bundles<R> bundles_;
  /// The distances of the totals of steps from the mean.
  std::vector<distance_sums> totals_;
  /// The largest loads for each split of two merged steps.
  std::vector<largest_loads> largest_of_;
};

}  // namespace omnibal::inline v0::detail
