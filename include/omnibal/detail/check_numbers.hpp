#pragma once

/// \file
/// Checks of the numbers of configurations and workloads.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// amount / ranks, rounded up. Precondition: neither is negative, and ranks are positive.
[[nodiscard]] constexpr int128 share_of(int128 amount, std::int64_t ranks) {
  return (amount + ranks - 1) / ranks;
}

/// The least multiple of `ranks` that is not below `amount`.
[[nodiscard]] constexpr int128 rounded_up(int128 amount, std::int64_t ranks) {
  return share_of(amount, ranks) * ranks;
}

/// The most tokens of a workload.
inline constexpr std::int64_t most_tokens = std::int64_t{1} << 40;

/// No number of a configuration is above this, and no product of a number of heads and their size,
/// so that no product of numbers of a configuration and a workload leaves 128 bits.
inline constexpr std::int64_t most_width = std::int64_t{1} << 24;

[[noreturn]] inline void throw_number(std::string_view function, std::string_view argument,
                                      std::int64_t value, std::string_view rule) {
  throw_invalid(function,
                std::string(argument) + " is " + to_text(value) + ", " + std::string(rule));
}

/// Throws unless `value` is in [least, most].
constexpr void check_between(std::string_view function, std::string_view argument,
                             std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) [[likely]] {
    return;
  }
  throw_number(function, argument, value,
               "must be from " + to_text(least) + " to " + to_text(most));
}

constexpr void check_width(std::string_view function, std::string_view argument,
                           std::int64_t value) {
  check_between(function, argument, value, 1, most_width);
}

/// Throws unless `divisor` divides `value`.
constexpr void check_multiple(std::string_view function, std::string_view argument,
                              std::int64_t value, std::string_view divisor_name,
                              std::int64_t divisor) {
  if (value % divisor == 0) return;
  throw_number(
      function, argument, value,
      "must be a multiple of " + std::string(divisor_name) + ", which is " + to_text(divisor));
}

}  // namespace omnibal::inline v0::detail
