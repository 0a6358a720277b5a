// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The levels of long and short samples as one picture: which samples they hold, how uneven their
/// packs are, how long ranks wait.

#include "dataset.hpp"
#include "long_context_plans.hpp"

#include <ostream>
#include <span>

namespace examples {

/// Draws the samples and the plans as an SVG file of less than 100 KB whatever their number. The
/// levels are those of the last plan; all are compared by their waiting. Equal input gives equal
/// bytes. Precondition: there is a plan.
void write_levels(dataset const& data, std::span<long_context_plan const> plans, std::ostream& out);

}  // namespace examples
