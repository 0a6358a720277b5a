#pragma once

/// \file
/// Checks of what the host knows about arguments on the device.

#include <omnibal/check.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace omnibal::inline v0::gpu::detail {

/// Throws `std::invalid_argument` where an output has room for fewer elements than are written.
inline void check_room(std::string_view function, std::string_view output, std::size_t size,
                       std::size_t needed) {
  if (size >= needed) return;
  omnibal::detail::throw_invalid(function,
                                 std::string(output) + " has " + omnibal::detail::to_text(size) +
                                     " elements, must have " + omnibal::detail::to_text(needed));
}

}  // namespace omnibal::inline v0::gpu::detail
