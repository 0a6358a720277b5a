#pragma once

/// \file
/// Measured times of layers from a file, in place of the modelled ones.

#include "vlm_layers.hpp"

#include <filesystem>
#include <span>

namespace examples {

/// Replaces the times of the layers that a CSV file names; the others keep theirs.
///
/// The header has `layer`, `forward_ms` and `backward_ms`, other columns are ignored. A layer is a
/// number from zero, or a run of layers that take the same, such as `1-45`; no layer may occur
/// twice. Milliseconds are decimal numbers from 0 to 10^9 for one micro-batch on one rank, rounded
/// to nanoseconds; the backward pass includes what is made again.
///
/// Errors: `input_error`; the layers are as before then.
void use_measured_times(std::filesystem::path const& path, std::span<vlm_layer> layers);

}  // namespace examples
