// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Token ids in JSON lines.

#include "progress.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace examples {

/// Reads the token ids of a sequence from each line: a list, or an object with the list in
/// `input_ids` or `tokens`, or in two parts in `prompt_ids` and `completion_ids`. Empty lines do
/// not count. Errors: `input_error` that names the file, the line and the value.
[[nodiscard]] std::vector<std::vector<std::int64_t>> read_token_lines(
    std::filesystem::path const& path, progress& shown);

}  // namespace examples
