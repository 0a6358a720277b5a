#pragma once

/// \file
/// The capacities that are worth a try.

#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/tune_capacity_options.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// An amount as one of a type that may be an integer, rounded up; at most half of the range of
/// that, so that two have a sum.
template <class T>
[[nodiscard]] T rounded_up(double amount) {
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
  /// Zero for any amount of a floating-point resource.
  T granularity{};
  T commonest{};
  /// The mean demand.
  double mean = 0.0;

  /// How many capacities there are; infinite for any amount.
  [[nodiscard]] double size() const {
    if (!(last > first)) return 1.0;
    return static_cast<double>(last - first) / static_cast<double>(granularity) + 1.0;
  }

  /// At most `points` evenly spread capacities, ascending.
  [[nodiscard]] std::vector<T> even_values(std::size_t points) const {
    std::vector<T> result{first};
    for (std::size_t k = 1; k < points && last > first; ++k) result.push_back(at(k, points));
    return in_order(std::move(result));
  }

  /// Capacities from `amount / 2` to `2 * amount`, closer to each other the closer they are to
  /// `amount`: that amount and `levels` on either side of it.
  [[nodiscard]] std::vector<T> values_near(double amount, std::size_t levels) const {
    std::vector<T> result;
    auto const add = [&](double value) {
      T const capacity = next_multiple(rounded_up<T>(value), granularity);
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

  /// These capacities and below each a multiple of the commonest demand, ascending.
  [[nodiscard]] std::vector<T> with_multiples(std::vector<T> values) const {
    for (std::size_t k = values.size(); commonest > T{} && k-- != 0;) {
      T const whole = next_multiple(whole_multiple(values[k], commonest), granularity);
      if (whole >= first && whole <= last) values.push_back(whole);
    }
    return in_order(std::move(values));
  }

  /// The distance of neighbours among `points` even capacities, halved `halvings` times; zero where
  /// nothing lies between them.
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

  /// True where there is nothing between the capacities.
  [[nodiscard]] bool is_complete() const { return points_ == 0; }

  /// Without duplicates, at least one.
  [[nodiscard]] std::vector<resources<R, T>> const& capacities() const { return capacities_; }

  /// The neighbours of a capacity in each resource, after so many halvings of the distance between
  /// the even capacities; none where nothing is left between them.
  [[nodiscard]] std::vector<resources<R, T>> around(resources<R, T> const& capacity,
                                                    std::size_t halvings) const {
    std::vector<resources<R, T>> result;
    for (std::size_t r = 0; r != R; ++r) {
      auto const& axis = axes_[r];
      T const distance = axis.distance(points_, halvings);
      if (!(distance > T{})) continue;
      auto neighbour = capacity;
      if (capacity[r] - axis.first >= distance) {
        neighbour[r] = capacity[r] - distance;
        result.push_back(neighbour);
      }
      if (axis.last - capacity[r] >= distance) {
        neighbour[r] = capacity[r] + distance;
        if (is_worth_a_try(neighbour)) result.push_back(neighbour);
      }
    }
    return result;
  }

  /// The least capacity, not above this one, that holds groups with these loads.
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
  /// A resource gets up to so many times what the largest wanted groups need of it in the mean.
  static constexpr double spare = 2.0;
  /// The same for the scarcest resource of a capacity.
  static constexpr double spare_of_scarcest = 1.25;

  [[nodiscard]] capacity_axis<T> axis_of(double target, T granularity,
                                         amount_profile<T> const& profile) const {
    T const finest = std::max(granularity, std::integral<T> ? T{1} : T{0});
    T const need = std::max(profile.reach, rounded_up<T>(target * profile.mean));
    // Of a resource that no sample takes any capacity will do.
    T const first = next_multiple(need > T{} ? need : T{1}, finest);
    T const last = next_multiple(rounded_up<T>(spare * largest_group_ * profile.mean), finest);
    return {first, std::max(first, last), finest, profile.commonest, profile.mean};
  }

  /// True where the groups need not be larger than wanted.
  [[nodiscard]] bool is_worth_a_try(resources<R, T> const& capacity) const {
    double largest = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r != R; ++r) {
      if (!(axes_[r].mean > 0.0)) continue;
      largest = std::min(largest, static_cast<double>(capacity[r]) / axes_[r].mean);
    }
    return largest <= spare_of_scarcest * largest_group_;
  }

  /// The resource whose mean demand has the fewest granules.
  [[nodiscard]] std::size_t coarsest() const {
    auto const is_coarser = [](capacity_axis<T> const& left, capacity_axis<T> const& right) {
      if (!(left.mean > 0.0) || !(right.mean > 0.0)) return left.mean > 0.0;
      return left.mean / static_cast<double>(left.granularity) <
             right.mean / static_cast<double>(right.granularity);
    };
    std::size_t result = 0;
    for (std::size_t r = 1; r < R; ++r) {
      if (is_coarser(axes_[r], axes_[result])) result = r;
    }
    return result;
  }

  /// Every capacity where these are few; else of the coarsest resource even capacities, and of the
  /// others, whose best capacities are near the proportion of the means, capacities around that.
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

  /// Even capacities that go with so many levels on either side.
  [[nodiscard]] static constexpr std::size_t points_of(std::size_t levels) {
    return 2 * (2 * levels + 1);
  }

  /// All combinations worth a try of `values(axis, amount)` of each resource, where `amount` is in
  /// proportion to that of the coarsest resource, and zero for this.
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

  /// Even capacities of the coarsest resource, and of the others so many times their amount for one
  /// granule of it.
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
    return std::clamp(next_multiple(rounded_up<T>(result), axis.granularity), axis.first,
                      axis.last);
  }

  double largest_group_;
  capacity_axis<T> axes_[R];
  /// Even capacities of a resource; zero where nothing is left between the capacities.
  std::size_t points_ = 0;
  std::vector<resources<R, T>> capacities_;
};

}  // namespace omnibal::inline v0::detail
