// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The speeds of parts as whole numbers, and exact comparisons of loads over speeds.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/lvalue_span.hpp>
#include <omnibal/detail/quotients.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A view of the speed of each part in an option. No value means equal speeds, one value is the
/// speed of all parts.
using speed_list = lvalue_span<double>;

/// A load over a speed: the time of a part. Comparisons are exact.
struct part_time {
  std::int64_t load = 0;
  /// The speed of the part, or the sum of several speeds.
  std::int64_t speed = 1;

  [[nodiscard]] constexpr double value() const {
    return static_cast<double>(load) / static_cast<double>(speed);
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator<(part_time const& a,
                                                                    part_time const& b) {
    return int128{a.load} * b.speed < int128{b.load} * a.speed;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator>(part_time const& a,
                                                                    part_time const& b) {
    return b < a;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator<=(part_time const& a,
                                                                     part_time const& b) {
    return !(b < a);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator==(part_time const& a,
                                                                     part_time const& b) {
    return int128{a.load} * b.speed == int128{b.load} * a.speed;
  }
};

/// Two parts of equal speed that share a load.
struct even_pair {
  /// Returns the larger load.
  [[nodiscard]] static constexpr std::int64_t larger(std::int64_t load, std::int64_t other) {
    return std::max(load, other);
  }
  /// Returns the amount that must move to the other part to make the loads equal, rounded towards
  /// zero.
  [[nodiscard]] static constexpr std::int64_t gap(std::int64_t load, std::int64_t other) {
    return (load - other) / 2;
  }
  /// Returns the share of the first part at equal loads, rounded up.
  [[nodiscard]] static constexpr std::int64_t share(std::int64_t both) { return both - both / 2; }
  /// Returns the smallest possible larger load.
  [[nodiscard]] static constexpr std::int64_t least(std::int64_t both) { return share(both); }
};

/// Two parts of different speed that share a load. Times are multiplied by the speeds of both
/// parts, so that they are whole numbers.
struct timed_pair {
  std::int64_t speed;
  std::int64_t other_speed;

  [[nodiscard]] constexpr int128 larger(std::int64_t load, std::int64_t other) const {
    return std::max(int128{load} * other_speed, int128{other} * speed);
  }
  /// Returns the amount that must move to the other part to make the times equal, rounded up. One
  /// unit less may be better or worse, so a search looks at both sides of this amount.
  [[nodiscard]] constexpr std::int64_t gap(std::int64_t load, std::int64_t other) const {
    int128 const apart = int128{load} * other_speed - int128{other} * speed;
    return static_cast<std::int64_t>(ceiled_quotient(apart, int128{speed} + other_speed));
  }
  [[nodiscard]] constexpr std::int64_t share(std::int64_t both) const {
    return static_cast<std::int64_t>(
        ceiled_quotient(int128{both} * speed, int128{speed} + other_speed));
  }
  [[nodiscard]] constexpr int128 least(std::int64_t both) const {
    std::int64_t const first = share(both);
    int128 const up = larger(first, both - first);
    return first == 0 ? up : std::min(up, larger(first - 1, both - first + 1));
  }
};

/// Equal speeds of all parts: the load of a part is its time.
struct equal_speeds {
  using time = std::int64_t;

  [[nodiscard]] static constexpr std::int64_t time_of(std::size_t, std::int64_t load) {
    return load;
  }
  [[nodiscard]] static constexpr even_pair pair(std::size_t, std::size_t) { return {}; }
};

/// The speeds of parts as whole numbers of at most 2^31 without a common divisor. Speeds are scaled
/// by a power of two such that the largest is from 2^30 to 2^31, and rounded to the nearest whole
/// number. Whole numbers below 2^31 and numbers such as 1.5 and 1 therefore keep their ratios.
/// Otherwise a speed changes by at most 2^-31 of the largest speed.
class part_speeds {
 public:
  using time = part_time;

  /// Creates the speeds of parts; `things` names the parts in error texts. Errors:
  /// `std::invalid_argument` if there are several speeds and not one for each part, or if a speed
  /// is not positive, not finite, or rounds to zero.
  part_speeds(std::string_view function, speed_list given, std::size_t parts,
              std::string_view things = "parts")
      : parts_(parts) {
    std::string_view const argument = "options.speeds";
    if (given.size() > 1) check_size(function, argument, given.size(), parts, things);
    double largest = 0.0;
    bool are_different = false;
    for (std::size_t k = 0; k != given.size(); ++k) {
      check_positive(function, argument, k, given[k]);
      largest = std::max(largest, given[k]);
      are_different |= given[k] != given[0];
    }
    // The same value for all parts is the usual case, and rounding costs more than the comparison.
    if (!are_different) return;
    int exponent = 0;
    static_cast<void>(std::frexp(largest, &exponent));
    std::int64_t divisor = 0;
    whole_.reserve(parts);
    for (std::size_t k = 0; k != parts; ++k) {
      auto const whole = static_cast<std::int64_t>(std::round(std::ldexp(given[k], 31 - exponent)));
      if (whole == 0) {
        throw_invalid(function, argument, "[", k, "] is ", given[k],
                      ", must be at least 2^-31 of the largest speed, which is ", largest);
      }
      whole_.push_back(whole);
      divisor = std::gcd(divisor, whole);
    }
    for (std::int64_t& speed : whole_) speed /= divisor;
    // Equal speeds are all one now, and are not stored.
    if (*std::max_element(whole_.begin(), whole_.end()) == 1) whole_.clear();
  }

  /// Renumbers the parts: part k gets the speed of the former part `former(k)`.
  template <class Former>
  void reorder(Former const& former) {
    std::vector<std::int64_t> const given = whole_;
    for (std::size_t k = 0; k != whole_.size(); ++k) whole_[k] = given[former(k)];
  }

  [[nodiscard]] bool are_equal() const { return whole_.empty(); }
  [[nodiscard]] std::size_t size() const { return parts_; }
  [[nodiscard]] std::int64_t operator[](std::size_t part) const {
    return are_equal() ? 1 : whole_[part];
  }
  /// Returns the sum of all speeds, which is below 2^63.
  [[nodiscard]] std::int64_t sum() const {
    return are_equal() ? static_cast<std::int64_t>(parts_)
                       : std::accumulate(whole_.begin(), whole_.end(), std::int64_t{0});
  }
  [[nodiscard]] std::int64_t largest() const {
    return are_equal() ? 1 : *std::max_element(whole_.begin(), whole_.end());
  }

  [[nodiscard]] part_time time_of(std::size_t part, std::int64_t load) const {
    return {load, (*this)[part]};
  }
  [[nodiscard]] timed_pair pair(std::size_t part, std::size_t other) const {
    return {(*this)[part], (*this)[other]};
  }

 private:
  std::size_t parts_;
  std::vector<std::int64_t> whole_;
};

/// Returns the parts from the fastest to the slowest, and by number if speeds are equal.
[[nodiscard]] inline std::vector<std::uint32_t> fastest_first(part_speeds const& speeds) {
  std::vector<std::uint32_t> parts(speeds.size());
  std::iota(parts.begin(), parts.end(), std::uint32_t{0});
  std::stable_sort(parts.begin(), parts.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return speeds[a] > speeds[b]; });
  return parts;
}

}  // namespace omnibal::inline v0::detail
