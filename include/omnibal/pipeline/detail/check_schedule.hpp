#pragma once

/// \file
/// Checks that all schedules share.

#include <omnibal/check.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0::detail {

inline void check_at_least_one(std::string_view function, std::string_view argument,
                               std::size_t value) {
  check_positive(function, argument, value);
  check_index_count(function, argument, value);
}

}  // namespace omnibal::inline v0::detail
