// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choice of a capacity, as text.

#include "pack_options.hpp"
#include "pack_samples.hpp"

#include <omnibal/pack/capacity_warnings.hpp>

#include <ostream>
#include <vector>

namespace examples {

/// Prints the capacity that was chosen and how good it is.
void print_choice(chosen_capacity const& choice, pack_options const& options, std::ostream& out);

/// Prints what is hopeless about a capacity, and what would not be.
void print_warnings(std::vector<omnibal::capacity_warning<>> const& warnings, std::ostream& out);

}  // namespace examples
