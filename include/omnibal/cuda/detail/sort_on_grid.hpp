#pragma once

/// \file
/// Sorting pairs within a launch whose blocks all run at once.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The pairs that a block sorts in its shared memory.
inline constexpr std::size_t sort_tile = 512;
inline constexpr std::size_t sort_tile_bytes =
    sort_tile * (sizeof(std::uint64_t) + sizeof(std::uint32_t));

/// Distinct pairs of a key and a value, and memory for as many again.
struct sorted_pairs {
  std::uint64_t* keys;
  std::uint32_t* values;
  std::uint64_t* spare_keys;
  std::uint32_t* spare_values;

  OMNIBAL_HOST_DEVICE void swap() {
    std::uint64_t* const other_keys = spare_keys;
    std::uint32_t* const other_values = spare_values;
    spare_keys = keys;
    spare_values = values;
    keys = other_keys;
    values = other_values;
  }

  /// Sorts the first `n` pairs, ascending by key and then by value: blocks sort tiles, and then each
  /// pair finds its place in the other one of two sorted runs.
  template <class Grid>
  OMNIBAL_HOST_DEVICE void sort(Grid& grid, std::size_t n) {
    grid.for_each_block(parts_of(n, sort_tile), [&](auto& block, std::size_t tile) {
      std::size_t const first = tile * sort_tile;
      std::size_t const size = smaller_of(sort_tile, n - first);
      auto* const tile_keys = block.template shared<std::uint64_t>(sort_tile);
      auto* const tile_values = block.template shared<std::uint32_t>(sort_tile);
      block.for_each(size, [&](std::size_t i) {
        tile_keys[i] = keys[first + i];
        tile_values[i] = values[first + i];
      });
      block.sort_pairs(tile_keys, tile_values, size);
      block.for_each(size, [&](std::size_t i) {
        keys[first + i] = tile_keys[i];
        values[first + i] = tile_values[i];
      });
    });
    for (std::size_t width = sort_tile; width < n; width *= 2) {
      grid.for_each(n, [&](std::size_t i) {
        std::size_t const place = place_of(i, width, n);
        spare_keys[place] = keys[i];
        spare_values[place] = values[i];
      });
      swap();
    }
  }

 private:
  /// Where pair i comes where its run of `width` pairs and the neighbouring one are merged.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t place_of(std::size_t i, std::size_t width,
                                                         std::size_t n) const {
    std::size_t const run = i / width;
    std::size_t const other = smaller_of((run ^ 1) * width, n);
    std::size_t const other_last = smaller_of(other + width, n);
    std::size_t first = other;
    std::size_t last = other_last;
    while (first != last) {
      std::size_t const middle = first + (last - first) / 2;
      bool const precedes =
          keys[middle] < keys[i] || (keys[middle] == keys[i] && values[middle] < values[i]);
      if (precedes) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    std::size_t const before_both = run / 2 * 2 * width;
    return before_both + (i - run * width) + (first - other);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
