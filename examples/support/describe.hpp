#pragma once

/// \file
/// The statistics of a data set, as text.

#include "dataset.hpp"

#include <omnibal/resources.hpp>

#include <ostream>

namespace examples {

/// Prints the sources, the distribution of images and tokens, and how many samples exceed the
/// capacity.
void describe(dataset const& data, omnibal::resources<2> const& capacity, std::ostream& out);

}  // namespace examples
