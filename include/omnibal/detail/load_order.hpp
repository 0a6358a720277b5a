// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order in which parts receive samples.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// A part and its load. The smallest element receives the next sample: the part with the smaller
/// load, or the lower part if loads are equal.
template <class Load>
struct load_order {
  Load load;
  std::uint32_t part;

  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator<(load_order left,
                                                                    load_order right) {
    return left.load < right.load || (left.load == right.load && left.part < right.part);
  }
};

}  // namespace omnibal::inline v0::detail
