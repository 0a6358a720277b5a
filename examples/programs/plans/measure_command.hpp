// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cuts that a command of the user measures.

#include <cstdint>
#include <span>
#include <string>

namespace examples {

/// Runs a command of the shell with the first layer of each stage but the first behind it, and
/// gives the seconds that it prints: a positive number, or `inf` where the cuts cannot run. What it
/// writes to the standard error is shown.
///
/// Errors: `std::runtime_error` with the whole command where it cannot run, ends with another
/// status than 0 or prints anything else.
[[nodiscard]] double measure_by_command(std::string const& command,
                                        std::span<std::uint32_t const> boundaries);

}  // namespace examples
