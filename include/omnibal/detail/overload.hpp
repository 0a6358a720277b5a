#pragma once

/// \file
/// How far above a lower bound a load may be.

#include <omnibal/check.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Throws unless `max_overload` is finite and not negative.
inline void check_max_overload(std::string_view function, double max_overload) {
  check_weight(function, "options.max_overload", max_overload);
}

/// The bound and the share `tolerance` of it, computed in `double`, or the largest integer.
[[nodiscard]] inline std::int64_t with_overload(std::int64_t bound, double max_overload) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  double const slack = static_cast<double>(bound) * max_overload;
  if (slack >= static_cast<double>(most - bound)) return most;
  return bound + static_cast<std::int64_t>(slack);
}

}  // namespace omnibal::inline v0::detail
