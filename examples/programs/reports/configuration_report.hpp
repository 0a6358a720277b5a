// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a search for a configuration found, on one screen.

#include "configuration_search.hpp"
#include "configure_options.hpp"

#include <omnibal/plan/configuration_plan.hpp>

#include <ostream>
#include <string>

namespace examples {

/// `TP 4, PP 8 x 4, DP 16, micro-batch 2, selective, optimizer`: the choices that are not one.
[[nodiscard]] std::string choices_text(omnibal::planned_configuration const& given);

/// Prints the best configuration, its parts and memory, the next best ones, the reasons of the
/// other families, other machines, and the compared configuration.
void print_configurations(std::ostream& out, configure_options const& options,
                          configuration_results const& results);

}  // namespace examples
