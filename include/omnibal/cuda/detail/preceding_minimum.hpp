#pragma once

/// \file
/// The nearest smaller value to the left.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Looks up the last index before a given one whose value is not above a limit, by a tree of minima
/// of 32, 32^2, ... values. Complexity of a look-up: at most 64 values in each level of the tree.
class preceding_minimum {
 public:
  /// `minima` has room for n / 31 + 8 elements.
  OMNIBAL_HOST_DEVICE preceding_minimum(std::uint32_t const* values, std::uint32_t* minima)
      : values_(values), minima_(minima) {}

  /// Builds the tree over `n` values.
  template <class Grid>
  OMNIBAL_HOST_DEVICE void build(Grid& grid, std::size_t n) {
    std::uint32_t const* below = values_;
    std::uint32_t* level = minima_;
    while (n > fan_out) {
      std::size_t const size = parts_of(n, fan_out);
      grid.for_each(size, [&](std::size_t k) {
        std::size_t const last = smaller_of((k + 1) * fan_out, n);
        std::uint32_t least = below[k * fan_out];
        for (std::size_t i = k * fan_out + 1; i < last; ++i) least = smaller_of(least, below[i]);
        level[k] = least;
      });
      starts_[levels_++] = static_cast<std::size_t>(level - minima_);
      below = level;
      level += size;
      n = size;
    }
  }

  /// The last index below `end` whose value is at most `limit`. Precondition: there is one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t find(std::size_t end, std::uint32_t limit) const {
    // Up, to the left of the block that is known not to have it.
    int level = -1;
    std::size_t i = end;
    for (;;) {
      std::size_t const first = i / fan_out * fan_out;
      while (i != first && at(level, i - 1) > limit) --i;
      if (i != first) break;
      i /= fan_out;
      ++level;
    }
    // Down, to its last value that is small enough.
    --i;
    for (; level >= 0; --level) {
      i = (i + 1) * fan_out;
      do --i;
      while (at(level - 1, i) > limit);
    }
    return i;
  }

 private:
  static constexpr std::size_t fan_out = 32;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t at(int level, std::size_t i) const {
    return level < 0 ? values_[i] : minima_[starts_[level] + i];
  }

  std::uint32_t const* values_;
  std::uint32_t* minima_;
  std::size_t starts_[7] = {};
  int levels_ = 0;
};

}  // namespace omnibal::inline v0::gpu::detail
