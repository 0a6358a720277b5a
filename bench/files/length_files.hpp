// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The length files in the folder that the environment variable OMNIBAL_BENCH_LENGTHS names.

#include "samples.hpp"

#include <filesystem>
#include <vector>

namespace bench {

/// The files, by name; none where the variable is not set.
[[nodiscard]] std::vector<std::filesystem::path> length_files();

/// The samples of these files, one after the other.
[[nodiscard]] std::vector<sample> read_lengths(std::vector<std::filesystem::path> const& files);

}  // namespace bench
