// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The statistics of a data set, as text.

#include "dataset.hpp"

#include <omnibal/resources.hpp>

#include <ostream>

namespace examples {

/// Prints the sources and the distribution of images and tokens, of text of tokens alone.
void describe(dataset const& data, std::ostream& out);

/// Prints how many samples exceed the capacity.
void describe_oversized(dataset const& data, omnibal::resources<2> const& capacity,
                        std::ostream& out);

}  // namespace examples
