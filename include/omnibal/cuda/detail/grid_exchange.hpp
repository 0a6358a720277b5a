#pragma once

/// \file
/// The memory through which the blocks of a grid pass values.

#include <cstddef>

namespace omnibal::inline v0::gpu::detail {

/// The most blocks of a grid.
inline constexpr std::size_t most_grid_blocks = 1024;

/// A value of at most 32 bytes for each block: twice, so that one is free while the other is read.
inline constexpr std::size_t grid_exchange_bytes = 2 * 32 * most_grid_blocks;

}  // namespace omnibal::inline v0::gpu::detail
