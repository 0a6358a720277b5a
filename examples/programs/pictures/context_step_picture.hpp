// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A step of long and short samples as one picture: who runs what when, and who waits.

#include "context_comparison.hpp"
#include "dataset.hpp"

#include <ostream>

namespace examples {

/// Draws the first step with one degree, with levels and with groups of any degree, one above the
/// other on the same scale of time: ranks against time, a box for each group, the darker the more
/// ranks it has, gray for what sharing samples costs, orange where ranks wait. Ways without a plan
/// are left out. Equal input gives equal bytes. Precondition: groups of any degree have a plan.
void write_step_picture(dataset const& data, context_setting const& setting,
                        context_comparison const& comparison, std::ostream& out);

}  // namespace examples
