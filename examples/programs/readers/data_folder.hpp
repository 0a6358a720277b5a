// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Folders that are a data set.

#include "progress.hpp"

#include <filesystem>
#include <vector>

namespace examples {

/// The files of a data set in their order: the index.json that MosaicML and litData write, or the
/// files that state.json of `save_to_disk` names. Errors: `input_error` for another folder, for one
/// of several data sets, and for one whose rows are selected by an index.
[[nodiscard]] std::vector<std::filesystem::path> files_of_folder(
    std::filesystem::path const& folder, progress& shown);

}  // namespace examples
