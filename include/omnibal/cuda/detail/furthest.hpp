#pragma once

/// \file
/// Searches for the largest distance that fits, from a guess.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The largest d in [1, most] for which `fits(d)`, where every smaller one fits, too. `likely` is a
/// guess, from which steps double. Precondition: `fits(1)`.
template <class Fits>
[[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t furthest(Fits const& fits, std::uint32_t most,
                                                         std::uint32_t likely) {
  std::uint32_t low = 1;
  std::uint32_t high = most;
  std::uint64_t step = likely / 16 + 1;
  std::uint32_t const guess = likely < 1 ? 1 : smaller_of(likely, most);
  if (fits(guess)) {
    for (low = guess; high - low >= step; step *= 2) {
      auto const probe = static_cast<std::uint32_t>(low + step);
      if (!fits(probe)) {
        high = probe - 1;
        break;
      }
      low = probe;
    }
  } else {
    for (high = guess - 1; high - low >= step; step *= 2) {
      auto const probe = static_cast<std::uint32_t>(high - step);
      if (fits(probe)) {
        low = probe;
        break;
      }
      high = probe - 1;
    }
  }
  while (low < high) {
    std::uint32_t const probe = high - (high - low) / 2;
    if (fits(probe)) {
      low = probe;
    } else {
      high = probe - 1;
    }
  }
  return low;
}

/// The same by the 32 threads of a block, which probe 32 distances at once.
template <class Block, class Fits>
[[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t furthest(Block& block, Fits const& fits,
                                                         std::uint32_t most, std::uint32_t likely) {
  constexpr std::uint32_t lanes = 32;
  std::uint64_t low = 1;
  std::uint64_t high = most;
  std::uint64_t step = likely / 16 + 1;
  while (low < high) {
    std::uint32_t const fitting = block.reduce(
        lanes,
        [&](std::size_t lane) {
          std::uint64_t const probe = low + step * (lane + 1);
          return std::uint32_t{probe <= high && fits(static_cast<std::uint32_t>(probe))};
        },
        add{}, std::uint32_t{0});
    low += fitting * step;
    if (fitting == lanes) {
      step *= lanes;
      continue;
    }
    high = smaller_of(high, low + step - 1);
    step = (high - low) / lanes + 1;
  }
  return static_cast<std::uint32_t>(low);
}

}  // namespace omnibal::inline v0::gpu::detail
