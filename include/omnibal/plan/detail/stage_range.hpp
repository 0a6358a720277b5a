// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layers of a stage.

#include <cstddef>
#include <cstdint>
#include <limits>

namespace omnibal::inline v0::detail {

/// The time of a stage that is impossible; larger than the time of any stage.
inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();

/// A stage that runs the layers [first, last).
struct stage_range {
  std::size_t stage;
  std::size_t first;
  std::size_t last;
};

}  // namespace omnibal::inline v0::detail
