#pragma once

/// \file
/// The bits that an algorithm on the device sets where it meets a wrong value.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu {

/// A set of faults, one word on the device. An algorithm sets bits and never clears one, so that one
/// word serves a sequence of calls; the caller zeroes it first. Where a bit is set the other
/// results are unspecified, but nothing outside the outputs was written.
enum class fault : std::uint32_t {
  none = 0,
  /// A demand, cost or length is negative or not finite.
  invalid_amount = 1,
  /// A sum exceeds its type.
  overflow = 2,
  /// An index is not below the number of elements.
  unknown_index = 4,
  /// An output given by the caller has too few elements.
  no_room = 8,
  /// Equal counts are asked for, but the parts do not divide the samples.
  uneven_counts = 16,
};

/// All faults of both sets.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr fault operator|(fault left, fault right) {
  return static_cast<fault>(static_cast<std::uint32_t>(left) | static_cast<std::uint32_t>(right));
}

/// True where `faults` contains `which`.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool has(fault faults, fault which) {
  return (static_cast<std::uint32_t>(faults) & static_cast<std::uint32_t>(which)) != 0;
}

}  // namespace omnibal::inline v0::gpu
