// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Files of other programs, which are named and not read.

#include <string_view>

namespace examples {

/// What a file is that begins with `bytes`, such as "a Parquet file"; empty where it is none of
/// those that are known. docs/reference/files.md shows how to convert each.
[[nodiscard]] std::string_view foreign_kind(std::string_view bytes);

}  // namespace examples
