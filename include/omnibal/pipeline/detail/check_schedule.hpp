#pragma once

/// \file
/// Checks that all schedules share.

#include <omnibal/check.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

inline void check_at_least_one(std::string_view function, std::string_view argument,
                               std::size_t value) {
  if (value == 0) throw_invalid(function, std::string(argument) + " is 0, must be positive");
  check_index_count(function, argument, value);
}

}  // namespace omnibal::inline v0::detail
