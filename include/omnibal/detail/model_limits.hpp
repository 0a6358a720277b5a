// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The largest numbers of a model and its micro-batches.

#include <omnibal/check.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The largest number of tokens of a `micro_batch_work`.
inline constexpr std::int64_t max_tokens = std::int64_t{1} << 40;

/// The largest number of a configuration, and the largest product of a number of heads and their
/// size. With this limit no product of numbers of a configuration and a micro-batch exceeds 128
/// bits.
inline constexpr std::int64_t max_width = std::int64_t{1} << 24;

/// The largest number of streams of residual sums.
inline constexpr std::int64_t max_streams = 64;

/// Throws unless a number of a configuration is positive and at most `max_width`.
constexpr void check_width(std::string_view function, std::string_view argument,
                           std::int64_t value) {
  check_between(function, argument, value, 1, max_width);
}

}  // namespace omnibal::inline v0::detail
