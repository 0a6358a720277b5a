// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Search for capacities: many capacities are tried on a part of the samples, the best on larger
/// parts, and the last few on all samples.

#include <omnibal/check.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/run_bodies.hpp>
#include <omnibal/executor.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/objective.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/tune_capacity_options.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns an amount in another type, rounded up. The result is limited so that two results can be
/// added.
template <class T>
[[nodiscard]] T rounded_to(double amount) {
  if constexpr (std::floating_point<T>) {
    return std::min(amount, std::numeric_limits<T>::max() / 4);
  } else {
    constexpr double most = 4611686018427387904.0;
    return static_cast<T>(std::ceil(std::min(amount, most)));
  }
}

/// The multiples of a granularity in [first, last].
template <class T>
struct capacity_axis {
  T first{};
  T last{};
  /// The step between capacities; zero if any amount of a floating-point resource is possible.
  T granularity{};
  T commonest{};
  /// The mean demand.
  double mean = 0.0;

  /// Returns the number of capacities; infinity if any amount is possible.
  [[nodiscard]] double size() const {
    if (!(last > first)) return 1.0;
    return static_cast<double>(last - first) / static_cast<double>(granularity) + 1.0;
  }

  /// Returns at most `points` evenly spread capacities, ascending.
  [[nodiscard]] std::vector<T> even_values(std::size_t points) const {
    std::vector<T> result{first};
    for (std::size_t k = 1; k < points && last > first; ++k) result.push_back(at(k, points));
    return in_order(std::move(result));
  }

  /// Returns capacities from `amount / 2` to `2 * amount`: `amount` and `levels` capacities on
  /// either side of it. Distances are smaller closer to `amount`.
  [[nodiscard]] std::vector<T> values_near(double amount, std::size_t levels) const {
    std::vector<T> result;
    auto const add = [&](double value) {
      T const capacity = next_multiple(rounded_to<T>(value), granularity);
      if (capacity >= first && capacity <= last) result.push_back(capacity);
    };
    for (std::size_t level = 0; level <= levels; ++level) {
      double const factor = static_cast<double>(levels * levels + level * level) /
                            static_cast<double>(levels * levels);
      add(amount * factor);
      add(amount / factor);
    }
    return in_order(std::move(result));
  }

  /// Returns `values` and, for each value, the largest multiple of the commonest demand up to this
  /// value, rounded up to the granularity. The result is ascending.
  [[nodiscard]] std::vector<T> with_multiples(std::vector<T> values) const {
    for (std::size_t k = values.size(); commonest > T{} && k-- != 0;) {
      T const whole = next_multiple(whole_multiple(values[k], commonest), granularity);
      if (whole >= first && whole <= last) values.push_back(whole);
    }
    return in_order(std::move(values));
  }

  /// Returns the distance of neighbors among even capacities, halved `halvings` times. Returns zero
  /// if no capacity is between neighbors.
  [[nodiscard]] T distance(std::size_t points, std::size_t halvings) const {
    T result = points < 2 ? T{} : (last - first) / static_cast<T>(points - 1);
    for (std::size_t k = 0; k != halvings; ++k) result /= 2;
    return result < granularity ? T{} : next_multiple(result, granularity);
  }

 private:
  [[nodiscard]] T at(std::size_t k, std::size_t points) const {
    T const intervals = static_cast<T>(points - 1);
    T const whole = (last - first) / intervals;
    T const rest = (last - first) - whole * intervals;
    T const value = first + whole * static_cast<T>(k) + rest * static_cast<T>(k) / intervals;
    return std::min(last, next_multiple(value, granularity));
  }

  [[nodiscard]] static T whole_multiple(T value, T unit) {
    if constexpr (std::floating_point<T>) {
      return std::floor(value / unit) * unit;
    } else {
      return value / unit * unit;
    }
  }

  [[nodiscard]] static std::vector<T> in_order(std::vector<T> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }
};

/// The capacities for a wanted mean group size.
template <std::size_t R, class T>
class capacity_grid {
 public:
  capacity_grid(double target, tune_capacity_options<R, T> const& options,
                amount_profile<T> const (&profiles)[R])
      : largest_group_(target + options.width) {
    for (std::size_t r = 0; r != R; ++r) {
      axes_[r] = axis_of(target, options.granularity[r], profiles[r]);
    }
    if (options.walk == capacity_walk::together) {
      walk_together(options.candidates);
    } else {
      walk_each_alone(options.candidates);
    }
    if (!capacities_.empty()) return;
    resources<R, T> smallest{};
    for (std::size_t r = 0; r != R; ++r) smallest[r] = axes_[r].first;
    capacities_.push_back(smallest);
  }

  /// Returns true if no capacity is between the capacities of the grid.
  [[nodiscard]] bool is_complete() const { return points_ == 0; }

  /// Returns the capacities of the grid: at least one, without duplicates.
  [[nodiscard]] std::vector<resources<R, T>> const& capacities() const { return capacities_; }

  /// Returns the neighbors of a capacity in each resource, after `halvings` halvings of the
  /// distance between the even capacities. Returns none if no capacity is left between them.
  [[nodiscard]] std::vector<resources<R, T>> around(resources<R, T> const& capacity,
                                                    std::size_t halvings) const {
    std::vector<resources<R, T>> result;
    for (std::size_t r = 0; r != R; ++r) {
      auto const& axis = axes_[r];
      T const distance = axis.distance(points_, halvings);
      if (!(distance > T{})) continue;
      auto neighbor = capacity;
      if (capacity[r] - axis.first >= distance) {
        neighbor[r] = capacity[r] - distance;
        result.push_back(neighbor);
      }
      if (axis.last - capacity[r] >= distance) {
        neighbor[r] = capacity[r] + distance;
        if (is_worth_a_try(neighbor)) result.push_back(neighbor);
      }
    }
    return result;
  }

  /// Returns the least capacity, not above `capacity`, that holds groups with these loads.
  [[nodiscard]] resources<R, T> tightened(resources<R, T> capacity,
                                          std::vector<resources<R, T>> const& loads) const {
    for (std::size_t r = 0; r != R; ++r) {
      T largest = axes_[r].first;
      for (auto const& load : loads) largest = std::max(largest, load[r]);
      capacity[r] = std::min(capacity[r], next_multiple(largest, axes_[r].granularity));
    }
    return capacity;
  }

 private:
  /// The largest capacity of a resource, as a multiple of the average need of the largest wanted
  /// groups.
  static constexpr double spare = 2.0;
  /// The largest capacity of the scarcest resource, as a multiple of the same need.
  static constexpr double spare_of_scarcest = 1.25;

  [[nodiscard]] capacity_axis<T> axis_of(double target, T granularity,
                                         amount_profile<T> const& profile) const {
    T const finest = std::max(granularity, std::integral<T> ? T{1} : T{0});
    T const need = std::max(profile.reach, rounded_to<T>(target * profile.mean));
    // If no sample requires the resource, any capacity is right.
    T const first = next_multiple(need > T{} ? need : T{1}, finest);
    T const last = next_multiple(rounded_to<T>(spare * largest_group_ * profile.mean), finest);
    return {first, std::max(first, last), finest, profile.commonest, profile.mean};
  }

  /// Returns true if the capacity does not force groups to be larger than wanted.
  [[nodiscard]] bool is_worth_a_try(resources<R, T> const& capacity) const {
    double largest = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r != R; ++r) {
      if (!(axes_[r].mean > 0.0)) continue;
      largest = std::min(largest, static_cast<double>(capacity[r]) / axes_[r].mean);
    }
    return largest <= spare_of_scarcest * largest_group_;
  }

  /// Returns the resource whose mean demand has the fewest granules.
  [[nodiscard]] std::size_t coarsest() const {
    auto const granules = [this](std::size_t r) {
      capacity_axis<T> const& axis = axes_[r];
      return axis.mean > 0.0 ? axis.mean / static_cast<double>(axis.granularity)
                             : std::numeric_limits<double>::infinity();
    };
    std::size_t result = 0;
    for (std::size_t r = 1; r < R; ++r) result = granules(r) < granules(result) ? r : result;
    return result;
  }

  /// Selects all capacities if there are at most `candidates`. Otherwise, selects evenly spread
  /// capacities of the coarsest resource. For other resources, it selects capacities near the
  /// amount in proportion to the mean demands, because the best capacities are there.
  void walk_each_alone(std::size_t candidates) {
    double all = 1.0;
    for (auto const& axis : axes_) all *= axis.size();
    if (all <= static_cast<double>(candidates)) {
      capacities_ = combinations([](capacity_axis<T> const& axis, double) {
        return axis.even_values(static_cast<std::size_t>(axis.size()));
      });
      return;
    }
    for (std::size_t levels = 1; points_of(levels) <= candidates || levels == 1; ++levels) {
      auto next = combinations([levels](capacity_axis<T> const& axis, double amount) {
        return axis.with_multiples(amount > 0.0 ? axis.values_near(amount, levels)
                                                : axis.even_values(points_of(levels)));
      });
      if (next.size() > candidates && levels != 1) return;
      capacities_ = std::move(next);
      points_ = points_of(levels);
    }
  }

  /// Returns the number of evenly spaced capacities that `levels` levels on either side give.
  [[nodiscard]] static constexpr std::size_t points_of(std::size_t levels) {
    return 2 * (2 * levels + 1);
  }

  /// Returns all combinations worth a try of `values_of(axis, amount)` for each resource. `amount`
  /// is zero for the coarsest resource, and in proportion to the amount of the coarsest resource
  /// for the others.
  template <class Values>
  [[nodiscard]] std::vector<resources<R, T>> combinations(Values const& values_of) const {
    std::vector<resources<R, T>> result;
    auto const lead = coarsest();
    for (T const amount : values_of(axes_[lead], 0.0)) {
      std::vector<T> values[R];
      for (std::size_t r = 0; r != R; ++r) {
        double const share = axes_[lead].mean > 0.0 ? axes_[r].mean / axes_[lead].mean : 0.0;
        values[r] = r == lead     ? std::vector<T>{amount}
                    : share > 0.0 ? values_of(axes_[r], share * static_cast<double>(amount))
                                  : std::vector<T>{axes_[r].first};
      }
      add_product(values, result);
    }
    return result;
  }

  void add_product(std::vector<T> const (&values)[R], std::vector<resources<R, T>>& result) const {
    for (auto const& one : values) {
      if (one.empty()) return;
    }
    std::size_t chosen[R] = {};
    for (std::size_t r = 0; r != R;) {
      resources<R, T> capacity{};
      for (std::size_t k = 0; k != R; ++k) capacity[k] = values[k][chosen[k]];
      if (is_worth_a_try(capacity)) result.push_back(capacity);
      for (r = 0; r != R && ++chosen[r] == values[r].size(); ++r) chosen[r] = 0;
    }
  }

  /// Selects evenly spread capacities of the coarsest resource, and the corresponding multiples of
  /// the granularity of the other resources.
  void walk_together(std::size_t candidates) {
    auto const lead = coarsest();
    for (T const amount : axes_[lead].even_values(candidates)) {
      resources<R, T> capacity{};
      for (std::size_t r = 0; r != R; ++r) {
        capacity[r] = r == lead ? amount : in_proportion(axes_[r], axes_[lead], amount);
      }
      if (is_worth_a_try(capacity)) capacities_.push_back(capacity);
    }
  }

  [[nodiscard]] static T in_proportion(capacity_axis<T> const& axis, capacity_axis<T> const& lead,
                                       T amount) {
    if (!(lead.mean > 0.0)) return axis.first;
    double const ratio = axis.mean / lead.mean;
    double result = ratio * static_cast<double>(amount);
    if (axis.granularity > T{} && lead.granularity > T{}) {
      auto const granularity = static_cast<double>(axis.granularity);
      double const unit = ratio * static_cast<double>(lead.granularity) / granularity;
      result = std::max(1.0, std::round(unit)) * granularity *
               static_cast<double>(amount / lead.granularity);
    }
    return std::clamp(next_multiple(rounded_to<T>(result), axis.granularity), axis.first,
                      axis.last);
  }

  double largest_group_;
  capacity_axis<T> axes_[R];
  /// The number of even capacities of a resource; zero if no capacity is left between the
  /// capacities.
  std::size_t points_ = 0;
  std::vector<resources<R, T>> capacities_;
};

template <std::size_t R, class T, class Packer, class Objective, executor Executor>
class capacity_search {
 public:
  using demands_type = std::span<resources<R, T> const>;

  /// Keeps references to the arguments, which must outlive this object. Precondition: there are
  /// demands.
  capacity_search(demands_type demands, double target, Packer const& packer,
                  Objective const& objective, tune_capacity_options<R, T> const& options,
                  capacity_grid<R, T> const& grid, Executor const& executor)
      : demands_(demands),
        target_(target),
        grid_(grid),
        packer_(packer),
        objective_(objective),
        options_(options),
        executor_(executor) {}

  /// Tries the capacities of the grid and capacities between the best of them.
  void run(tuned<R, T>& result) {
    std::size_t count = first_count();
    auto const part = part_of(count);
    double const tolerance = count == demands_.size() ? 0.0 : sampling_error;
    try_on(part, grid_.capacities(), tolerance);
    rank();
    refine(part, tolerance);
    while (count != demands_.size()) {
      // Continues with all samples if the next part has half of the samples or more.
      bool const is_last = count >= demands_.size() / (2 * growth);
      count = is_last ? demands_.size() : count * growth;
      narrow(count);
    }
    for (trial const& tried : trials_) result.finalists.push_back(tried.judged);
    result.best = result.finalists.front();
    result.status = trials_.front().miss > 0.0 ? solve_status::not_found : solve_status::solved;
    result.packings = packings_;
  }

 private:
  struct trial {
    tuned_capacity<R, T> judged{};
    /// The least capacity of the grid that holds every group.
    resources<R, T> tight{};
    /// The violation of the limits on the group size and on oversized samples, beyond the
    /// tolerance; zero if the capacity is accepted.
    double miss = 0.0;
    /// True if the group size and the oversized samples are accepted without any tolerance.
    bool wanted = false;
  };

  static constexpr std::size_t growth = 4;
  /// One in `selection` of the capacities that were tried on a part is tried on the next larger
  /// part.
  static constexpr std::size_t selection = 8;
  /// The maximum number of capacities that are tried on all samples if none is accepted, as a
  /// multiple of the finalists.
  static constexpr std::size_t max_tries = 4;
  static constexpr std::size_t max_halvings = 8;
  /// The relative deviation from the target that a group size on a part may have.
  static constexpr double sampling_error = 0.02;
  /// The number of groups for which the samples of a part should suffice.
  static constexpr double groups_of_part = 256.0;

  [[nodiscard]] std::size_t first_count() const {
    double const wanted = std::max(static_cast<double>(options_.first_samples),
                                   groups_of_part * (target_ + options_.width));
    auto const all = static_cast<double>(demands_.size());
    return wanted < all ? static_cast<std::size_t>(wanted) : demands_.size();
  }

  /// Returns `count` samples chosen at random, in their order. A larger part includes the smaller
  /// parts.
  [[nodiscard]] demands_type part_of(std::size_t count) {
    if (count == demands_.size()) return demands_;
    if (order_.empty()) {
      order_.resize(demands_.size());
      std::iota(order_.begin(), order_.end(), std::uint32_t{0});
      rng::fisher_yates{options_.seed}(std::span(order_), 0);
    }
    std::span<std::uint32_t> const chosen = std::span(order_).first(count);
    std::sort(chosen.begin(), chosen.end());
    part_.resize(count);
    for (std::size_t i = 0; i != count; ++i) part_[i] = demands_[chosen[i]];
    return part_;
  }

  /// Tries capacities around each of the best capacities. The distance from these capacities is
  /// halved in each round.
  void refine(demands_type part, double tolerance) {
    if (grid_.is_complete()) return;
    for (std::size_t halvings = 1; halvings <= max_halvings; ++halvings) {
      std::vector<resources<R, T>> untried;
      for (trial const& center : best_different(options_.finalists)) {
        auto around = grid_.around(center.judged.capacity, halvings);
        around.push_back(center.tight);
        for (auto const& capacity : around) {
          bool const is_listed =
              std::find(untried.begin(), untried.end(), capacity) != untried.end();
          if (!is_listed && !is_tried(capacity)) untried.push_back(capacity);
        }
      }
      try_on(part, untried, tolerance);
      rank();
    }
  }

  /// Tries the best capacities on `count` samples and forgets the others. On all samples, tries
  /// more capacities until one is accepted, at most `max_tries` times the finalists.
  void narrow(std::size_t count) {
    bool const is_last = count == demands_.size();
    demands_type const part = part_of(count);
    std::size_t const kept =
        is_last ? options_.finalists : std::max(options_.finalists, trials_.size() / selection);
    std::vector<trial> const ranked = best_different(is_last ? max_tries * kept : kept);
    trials_.clear();
    std::vector<resources<R, T>> capacities;
    for (trial const& chosen : ranked) capacities.push_back(chosen.judged.capacity);
    std::span<resources<R, T> const> const all(capacities);
    double const tolerance = is_last ? 0.0 : sampling_error;
    std::size_t const first = std::min(kept, all.size());
    try_on(part, all.first(first), tolerance);
    auto const is_accepted = [](trial const& tried) { return !(tried.miss > 0.0); };
    bool accepted = std::any_of(trials_.begin(), trials_.end(), is_accepted);
    for (std::size_t k = first; k != all.size() && !accepted; ++k) {
      try_on(part, all.subspan(k, 1), tolerance);
      accepted = is_accepted(trials_.back());
    }
    rank();
  }

  /// Returns the best trials, at most `count`: in turn the best trial with a wanted group size, and
  /// the best trial of any group size. On a part of the samples, a group size just outside may be
  /// due to chance. Among trials with the same groups, only the trial with the smallest capacity is
  /// returned.
  [[nodiscard]] std::vector<trial> best_different(std::size_t count) const {
    std::vector<trial> result;
    std::size_t next[] = {0, 0};
    auto const is_new = [&](trial const& candidate) {
      return std::none_of(result.begin(), result.end(), [&](trial const& taken) {
        return taken.judged.groups == candidate.judged.groups &&
               taken.judged.objective == candidate.judged.objective;
      });
    };
    for (bool wanted = true; result.size() != count; wanted = !wanted) {
      std::size_t& k = next[wanted ? 0 : 1];
      while (k != trials_.size() && ((wanted && !trials_[k].wanted) || !is_new(trials_[k]))) ++k;
      if (k != trials_.size()) {
        result.push_back(trials_[k]);
      } else if (!wanted) {
        break;
      }
    }
    return result;
  }

  [[nodiscard]] bool is_tried(resources<R, T> const& capacity) const {
    return std::any_of(trials_.begin(), trials_.end(),
                       [&](trial const& tried) { return tried.judged.capacity == capacity; });
  }

  /// Tries capacities on a part of the samples.
  void try_on(demands_type part, std::span<resources<R, T> const> capacities, double tolerance) {
    std::vector<trial> tried(capacities.size());
    run_bodies(name, executor_, tried.size(),
               [&](std::size_t k) { tried[k] = trial_of(part, capacities[k], tolerance); });
    packings_ += tried.size();
    trials_.insert(trials_.end(), tried.begin(), tried.end());
  }

  [[nodiscard]] trial trial_of(demands_type part, resources<R, T> const& capacity,
                               double tolerance) const {
    packing const packed = packer_(part, std::identity{}, capacity);
    tuned_capacity<R, T> judged{
        .capacity = capacity, .groups = packed.groups.size(), .oversized = packed.oversized.size()};
    std::size_t const placed = packed.groups.item_count();
    permutation_check named(name, "the packer", "samples", part.size());
    named.take(packed.groups.items());
    named.take(packed.oversized);
    named.finish();
    auto tight = capacity;
    judged.objective = std::numeric_limits<double>::infinity();
    if (judged.groups != 0) {
      auto const loads = group_loads(packed.groups, part, std::identity{});
      judged.mean_group_size = static_cast<double>(placed) / static_cast<double>(judged.groups);
      judged.fill = fill_of<R, T>(loads, capacity);
      judged.objective = value_of({capacity, part, packed.groups.view(), loads});
      tight = grid_.tightened(capacity, loads);
    }
    return {judged, tight, miss_of(judged, part.size(), tolerance),
            !(miss_of(judged, part.size(), 0.0) > 0.0)};
  }

  [[nodiscard]] double value_of(packed_samples<R, T> const& packed) const {
    auto const value = static_cast<double>(std::invoke(objective_, packed));
    if (is_finite(value)) return value;
    throw_invalid(name, "objective is " + to_text(value) + " for the capacity " +
                            list_text(packed.capacity.amounts) + ", must be finite");
  }

  /// Returns the sum of the violations of two limits, the mean group size and the share of
  /// oversized samples. The sum is portable, because there is no product that a compiler could fuse
  /// with an addition.
  [[nodiscard]] double miss_of(tuned_capacity<R, T> const& judged, std::size_t samples,
                               double tolerance) const {
    double const too_small = 1.0 - judged.mean_group_size / target_;
    double const too_large = judged.mean_group_size / (target_ + options_.width) - 1.0;
    double const left_out = static_cast<double>(judged.oversized) / static_cast<double>(samples) -
                            options_.max_oversized;
    double sum = 0.0;
    for (double const excess : {too_small, too_large, left_out}) {
      sum += std::max(0.0, excess - tolerance);
    }
    return sum;
  }

  /// Sorts trials, the best first; among equally good trials, the trial with the smaller capacities
  /// first.
  void rank() {
    std::sort(trials_.begin(), trials_.end(), [](trial const& left, trial const& right) {
      if (left.miss != right.miss) return left.miss < right.miss;
      if (left.judged.objective != right.judged.objective) {
        return left.judged.objective < right.judged.objective;
      }
      return std::lexicographical_compare(
          std::begin(left.judged.capacity.amounts), std::end(left.judged.capacity.amounts),
          std::begin(right.judged.capacity.amounts), std::end(right.judged.capacity.amounts));
    });
  }

  static constexpr std::string_view name = "tune_capacity";

  demands_type demands_;
  double target_;
  capacity_grid<R, T> const& grid_;
  Packer const& packer_;
  Objective const& objective_;
  tune_capacity_options<R, T> const& options_;
  Executor const& executor_;
  std::size_t packings_ = 0;
  /// The trials, the best first, except for trials since the last `rank`.
  std::vector<trial> trials_;
  std::vector<std::uint32_t> order_;
  std::vector<resources<R, T>> part_;
};

}  // namespace omnibal::inline v0::detail
