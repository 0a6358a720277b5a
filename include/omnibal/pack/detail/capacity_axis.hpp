#pragma once

/// \file
/// The capacities of one resource that are worth a try.

#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/detail/amount_profile.hpp>

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

}  // namespace omnibal::inline v0::detail
