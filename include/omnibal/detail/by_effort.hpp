// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Values for each level of effort.

#include <omnibal/solve_status.hpp>

namespace omnibal::inline v0::detail {

/// A value for each level of effort.
template <class T>
struct by_effort {
  T fast;
  T normal;
  T thorough;

  [[nodiscard]] constexpr T const& operator[](effort level) const {
    switch (level) {
      case effort::fast: return fast;
      case effort::normal: return normal;
      case effort::thorough: break;
    }
    return thorough;
  }
};

}  // namespace omnibal::inline v0::detail
