#pragma once

/// \file
/// The arguments of collectives, as one rank can check them.

#include <omnibal/check.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

inline void check_size(std::string_view function, std::string_view argument, std::uint64_t size,
                       std::uint64_t wanted) {
  if (size == wanted) return;
  throw_invalid(function,
                std::string(argument) + " is " + to_text(size) + ", must be " + to_text(wanted));
}

/// Throws unless there is a count for each rank and they add up to so many bytes.
inline void check_counts(std::string_view function, std::string_view argument,
                         std::span<std::uint64_t const> counts, std::size_t ranks,
                         std::size_t bytes) {
  check_size(function, "the number of " + std::string(argument), counts.size(), ranks);
  std::uint64_t sum = 0;
  for (std::uint64_t const count : counts) {
    checked_add(function, "the sum of the " + std::string(argument), sum, count);
  }
  check_size(function, "the sum of the " + std::string(argument), sum, bytes);
}

}  // namespace omnibal::inline v0::detail
