#pragma once

/// \file
/// The place of a process among those that train together.

#include <cstddef>

namespace omnibal::inline v0 {

/// One of `ranks` processes that train together; `rank` counts from zero.
struct shard {
  std::size_t ranks = 1;
  std::size_t rank = 0;

  [[nodiscard]] friend constexpr bool operator==(shard const&, shard const&) = default;
};

}  // namespace omnibal::inline v0
