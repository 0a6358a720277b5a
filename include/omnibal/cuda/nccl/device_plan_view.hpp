#pragma once

/// \file
/// A plan of an exchange in device memory.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::nccl {

/// The arrays of an `exchange_plan` on a device, and what the host knows of their sizes. Trivially
/// copyable; the arrays live elsewhere, such as in a `device_plan`. Equal on all ranks but for
/// `most_home` and `most_arrivals`.
struct device_plan_view {
  /// Rank r has the samples [home_offsets[r], home_offsets[r + 1]) before, and the slots
  /// [arrival_offsets[r], arrival_offsets[r + 1]) after.
  std::uint32_t const* home_offsets = nullptr;
  std::uint32_t const* arrival_offsets = nullptr;
  /// The sample in each slot, and the slot of each sample.
  std::uint32_t const* item_at = nullptr;
  std::uint32_t const* slot_of = nullptr;
  std::uint32_t ranks = 0;
  /// The most samples of all ranks together; what this rank may have before and after.
  std::uint32_t most_samples = 0;
  std::uint32_t most_home = 0;
  std::uint32_t most_arrivals = 0;

  /// The plan that takes everything back to where it was.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr device_plan_view inverse() const {
    return {arrival_offsets, home_offsets, slot_of,       item_at,
            ranks,           most_samples, most_arrivals, most_home};
  }
};

}  // namespace omnibal::inline v0::nccl
