// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The predicted step of a configuration as a picture.

#include <omnibal/plan/configuration_plan.hpp>

#include <ostream>
#include <string>

namespace examples {

/// Draws the passes of all stages by `write_pipeline_picture`. The title has the choices, the
/// seconds of the passes, and the seconds of gradients and optimizer behind them, which are not
/// drawn.
void write_configuration_picture(std::string const& choices,
                                 omnibal::planned_configuration const& planned, std::ostream& out);

}  // namespace examples
