// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Round numbers for the axes of a diagram, and how they are written.

#include <string>
#include <vector>

namespace examples {

enum class number_kind { any, whole };

/// One, two or five times a power of ten: the least that cuts `length` into at most `max_parts`,
/// and no less than one for whole values.
[[nodiscard]] double nice_step(double length, int max_parts, number_kind kind);

/// The multiples of `step` from `least` to `most`.
[[nodiscard]] std::vector<double> multiples(double least, double most, double step);

/// A multiple of `step` as text: `0.25`, `1,500`, `2.5 M`, with the digits that the step needs.
[[nodiscard]] std::string tick_text(double value, double step);

}  // namespace examples
