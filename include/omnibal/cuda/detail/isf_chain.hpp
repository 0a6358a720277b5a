#pragma once

/// \file
/// The first half of a round of `isf`: shuffle, sums of demands, and next-fit as a chain.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/isf_state.hpp>
#include <omnibal/cuda/detail/narrow_permutation.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Shuffles a tile of the pool and adds the demands in it.
template <class Amount, std::size_t R>
struct isf_gather {
  isf_input<Amount, R> input;
  isf_state const* state;
  std::uint32_t const* pool;
  std::uint32_t* shuffled;
  isf_sums sums;

  static constexpr int threads = 256;
  static constexpr std::size_t shared_bytes = R * isf_tile * sizeof(std::int64_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::uint32_t const size = state->pool_size;
    auto const begin = static_cast<std::uint32_t>(index) * isf_tile;
    if (begin >= size) return;
    std::uint32_t const count = smaller_of(isf_tile, size - begin);
    bool const is_end = size - begin == count;
    narrow_permutation const order = state->order;
    auto* const amounts = block.template shared<std::int64_t>(R * isf_tile);
    block.for_each(count, [&](std::size_t i) {
      std::uint32_t const sample = pool[order(begin + static_cast<std::uint32_t>(i))];
      shuffled[begin + i] = sample;
      for (std::size_t r = 0; r != R; ++r) amounts[r * isf_tile + i] = input.amount(sample, r);
    });
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t* const of_kind = amounts + r * isf_tile;
      std::int64_t const sum = block.exclusive_sum(of_kind, count);
      std::int64_t* const in_tile = sums.in_tile + r * sums.in_tile_stride + begin;
      block.for_each(count, [&](std::size_t i) {
        in_tile[i] = of_kind[i];
        if (i != 0) return;
        sums.of_tiles[r * sums.of_tiles_stride + index] = sum;
        // The end of the pool, which may be the beginning of a tile.
        if (is_end) in_tile[count] = count == isf_tile ? 0 : sum;
      });
    }
  }
};

/// Adds the sums of the tiles.
template <std::size_t R>
struct isf_add_tiles {
  isf_state const* state;
  isf_sums sums;

  static constexpr int threads = 1024;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::size_t const tiles = parts_of(state->pool_size, isf_tile);
    if (tiles == 0) return;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t* const of_tiles = sums.of_tiles + r * sums.of_tiles_stride;
      std::int64_t const sum = block.exclusive_sum(of_tiles, tiles);
      block.once([&] { of_tiles[tiles] = sum; });
    }
  }
};

/// The groups of next-fit as a chain: the link of a position is the end of the group that would
/// begin there.
template <std::size_t R>
struct isf_chain {
  isf_state const* state;
  isf_sums sums;
  resources<R> capacity;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size(std::size_t) const {
    return state->pool_size;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t next(std::size_t, std::uint32_t i) const {
    std::uint32_t const end = state->pool_size;
    resources<R> const start = before(i);
    // A search in steps that double, then by halves; a sample alone fits.
    std::uint32_t low = i + 1;
    std::uint32_t high = end;
    for (std::uint32_t step = 1; low != end; step *= 2) {
      std::uint32_t const probe = end - low <= step ? end : low + step;
      if (!fits(start, probe)) {
        high = probe;
        break;
      }
      low = probe;
    }
    while (high - low > 1) {
      std::uint32_t const middle = low + (high - low) / 2;
      (fits(start, middle) ? low : high) = middle;
    }
    return low;
  }

  /// The demands of the samples from `first` to `last`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE resources<R> load(std::uint32_t first,
                                                      std::uint32_t last) const {
    return before(last) - before(first);
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE resources<R> before(std::uint32_t i) const {
    resources<R> result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = sums.before(i, r);
    return result;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool fits(resources<R> const& start, std::uint32_t end) const {
    return (before(end) - start).fits(capacity);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
