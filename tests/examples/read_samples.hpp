// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples of a file, as the programs read them.

#include "read_lengths.hpp"

#include <filesystem>
#include <vector>

/// Returns the samples of a file without a report of the progress.
inline std::vector<examples::sample> read_samples(
    std::filesystem::path const& path, examples::field_names const& fields,
    examples::input_format format = examples::input_format::detect) {
  examples::progress hidden(examples::visibility::hidden);
  examples::dataset data;
  examples::read_lengths(path, format, fields, hidden, data);
  return data.samples;
}
