#pragma once

/// \file
/// How far above a lower bound a load may be.

#include <omnibal/check.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Throws unless the tolerance is finite and not negative.
inline void check_tolerance(std::string_view function, double tolerance) {
  if (is_valid_weight(tolerance)) return;
  throw_invalid(function,
                "options.tolerance is " + to_text(tolerance) + ", must be finite and not negative");
}

/// The bound and the share `tolerance` of it, computed in `double`, or the largest integer.
[[nodiscard]] inline std::int64_t with_tolerance(std::int64_t bound, double tolerance) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  double const slack = static_cast<double>(bound) * tolerance;
  if (slack >= static_cast<double>(most - bound)) return most;
  return bound + static_cast<std::int64_t>(slack);
}

}  // namespace omnibal::inline v0::detail
