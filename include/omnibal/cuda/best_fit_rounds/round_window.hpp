#pragma once

/// \file
/// Which samples a round of `best_fit_rounds` deals with, and how many groups it opens.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// How many groups of this capacity a sum fills, the last one perhaps in part.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t filled_groups(
    omnibal::detail::uint128 sum, std::uint64_t capacity) {
  return static_cast<std::uint64_t>((sum + capacity - 1) / capacity);
}

/// The numbers of a round that samples and groups look at.
///
/// A round deals with a window: the largest samples that wait and those above 3/4 of the largest, or
/// all where the largest is below 1/64 of the capacity. A group that holds one sample of the window
/// and not two takes the best one; one with room for q of the largest takes up to q.
struct round_window {
  std::uint64_t largest;
  /// The least size in the window.
  std::uint64_t least;

  /// The least size that belongs to the window of a largest one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::uint64_t low(std::uint64_t largest,
                                                                       std::uint64_t capacity) {
    return largest <= capacity / 64 ? 1 : largest - largest / 4;
  }

  /// How many groups to open. `too_large` samples of the window, `large` of them above half of the
  /// capacity, exceed the room of every group, and sum to `too_large_sum`; the window sums to `sum`,
  /// the rooms that hold the least sample to `rooms`. No packing of the window into the groups that
  /// are there needs fewer.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t groups_to_open(
      std::uint64_t capacity, std::uint64_t large, omnibal::detail::uint128 too_large_sum,
      omnibal::detail::uint128 sum, omnibal::detail::uint128 rooms) const {
    std::uint64_t result = filled_groups(too_large_sum, capacity);
    if (result < large) result = large;
    // Small samples fill a group wherever they go: what they will need can be opened at once.
    if (largest <= capacity / 8 && sum > rooms) {
      std::uint64_t const volume = filled_groups(sum - rooms, capacity);
      if (result < volume) result = volume;
    }
    return result;
  }

  /// True for a group that takes as many of the window as fit, false for one that takes one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool holds_two(std::uint64_t room) const {
    return room >= largest && room - largest >= largest;
  }
};

}  // namespace omnibal::inline v0::gpu::detail
