// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layers of a stage.

#include <cstddef>
#include <cstdint>
#include <limits>

namespace omnibal::inline v0::detail {

/// A time that no stage has.
inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();

/// Layers as a stage.
struct stage_range {
  std::size_t stage;
  std::size_t first;
  std::size_t last;
};

}  // namespace omnibal::inline v0::detail
