#pragma once

/// \file
/// What an algorithm on the device found wrong with values that the host does not see.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace omnibal::inline v0::gpu {

/// Throws what the host's algorithm would throw for these faults: `std::invalid_argument`,
/// `std::overflow_error` or `std::length_error`; returns where there is none. `function` names the
/// algorithm in the text.
inline void check(fault faults, std::string_view function) {
  auto const name = std::string("gpu::").append(function);
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

/// Waits for the stream, reads the faults and throws for them as `check` does.
template <device_resource Resource>
void synchronise_and_check(execution<Resource> const& exec, device_span<fault const> faults,
                           std::string_view function) {
  for (fault const word : download(exec, faults)) check(word, function);
}

}  // namespace omnibal::inline v0::gpu
