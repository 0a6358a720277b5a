// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bits that an algorithm on the device sets for wrong values.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace omnibal::inline v0::gpu {

/// A set of faults, stored as the bits of one word in device memory. An algorithm sets bits and
/// never clears a bit. Therefore one word serves a sequence of calls; the caller sets the word to
/// zero first. If a bit is set, the other results are unspecified, but nothing outside the outputs
/// was written.
///
/// A call without a word for faults traps at its first fault: the kernel ends, as after a failed
/// `assert`. Then the next call that waits for the stream throws `error`
/// (`cudaErrorLaunchFailure`), and the process can no longer use the device. Therefore no fault is
/// overlooked. A program that must know which fault occurred, or must continue after it, passes a
/// word.
enum class fault : std::uint32_t {
  none = 0,
  /// A demand, cost or length is negative or not finite.
  invalid_amount = 1,
  /// A sum exceeds the range of its type.
  overflow = 2,
  /// An index is not below the number of elements.
  unknown_index = 4,
  /// An output given by the caller has too few elements.
  no_room = 8,
  /// The options require equal counts, but the parts do not divide the samples.
  uneven_counts = 16,
};

/// Returns the union of two sets of faults.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr fault operator|(fault left, fault right) {
  return static_cast<fault>(static_cast<std::uint32_t>(left) | static_cast<std::uint32_t>(right));
}

/// Returns true if `faults` contains `which`.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool has(fault faults, fault which) {
  return (static_cast<std::uint32_t>(faults) & static_cast<std::uint32_t>(which)) != 0;
}

/// Throws the exception of the host's algorithm for these faults: `std::invalid_argument`,
/// `std::overflow_error` or `std::length_error`. Returns normally if there is no fault. `function`
/// names the algorithm in the text.
inline void check(fault faults, std::string_view function) {
  bool const is_qualified = function.find("::") != std::string_view::npos;
  auto const name = std::string(is_qualified ? "" : "gpu::").append(function);
  if (has(faults, fault::invalid_amount)) {
    omnibal::detail::throw_invalid(name, "an amount is negative or not finite");
  }
  if (has(faults, fault::unknown_index)) {
    omnibal::detail::throw_invalid(name, "an index names no element");
  }
  if (has(faults, fault::uneven_counts)) {
    omnibal::detail::throw_invalid(name, "equal counts, but the parts do not divide the samples");
  }
  if (has(faults, fault::overflow)) omnibal::detail::throw_overflow(name, "a sum");
  if (has(faults, fault::no_room)) {
    throw std::length_error(
        omnibal::detail::message(name, "an output has too few elements for the result"));
  }
}

}  // namespace omnibal::inline v0::gpu
