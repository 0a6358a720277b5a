// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The names of the kinds of layers in configurations.

#include <string_view>

namespace examples {

inline constexpr std::string_view full = "full_attention";
inline constexpr std::string_view linear = "linear_attention";
inline constexpr std::string_view sliding = "sliding_attention";

}  // namespace examples
