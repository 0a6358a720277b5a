#pragma once

/// \file
/// Floating-point costs as integers on which ranks agree.

#include <cstdint>

namespace omnibal::inline v0::detail {

/// floor(cost * 2^31 / largest), zero where the largest cost is zero. Precondition: `cost` is in
/// [0, largest].
[[nodiscard]] inline std::int64_t quantised(double cost, double largest) {
  if (!(largest > 0.0)) return 0;
  // In this order nothing overflows, and the factor is exact.
  return static_cast<std::int64_t>(cost / largest * 0x1p31);
}

}  // namespace omnibal::inline v0::detail
