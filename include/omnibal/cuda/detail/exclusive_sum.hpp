// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Prefix sums on any backend, in two launches.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

inline constexpr std::size_t sum_tile = 4096;

/// Each block writes the prefix sums of one tile and the sum of the tile. The last block writes the
/// prefix sums of these sums.
template <class F, class T>
struct sum_tiles {
  F f;
  std::size_t n;
  T* out;
  T* of_tiles;
  /// The counter of finished blocks for `is_last_of`; zero before the launch.
  std::uint32_t* arrived;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const first = index * sum_tile;
    T const sum = block.exclusive_sum_of(
        smaller_of(sum_tile, n - first),
        [&](std::size_t i) { return static_cast<T>(f(first + i)); }, out + first);
    block.once([&] { of_tiles[index] = sum; });
    std::size_t const tiles = parts_of(n, sum_tile);
    if (block.is_last_of(tiles, arrived)) static_cast<void>(block.exclusive_sum(of_tiles, tiles));
  }
};

template <class T>
struct add_tiles_before {
  T const* of_tiles;
  T* out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    out[i] = static_cast<T>(out[i] + of_tiles[i / sum_tile]);
  }
};

/// Writes to `out[i]` the sum of `f(0) .. f(i - 1)`. `f(i)` is called twice and may read `out[i]`.
template <kernel_backend Backend, class F, class T>
void exclusive_sum_of(Backend& backend, std::size_t n, F const& f, T* out) {
  std::size_t const tiles = parts_of(n, sum_tile);
  auto* const of_tiles = backend.template scratch<T>(tiles);
  auto* const arrived = backend.template scratch<std::uint32_t>(1);
  backend.fill_zero(arrived, 1);
  backend.template for_each_block<512>(tiles, 0, sum_tiles<F, T>{f, n, out, of_tiles, arrived});
  backend.for_each(n, add_tiles_before<T>{of_tiles, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
