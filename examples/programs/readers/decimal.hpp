// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Numbers as texts write them, and their products without rounding.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace examples {

/// The number `digits` x 10^`exponent`.
struct decimal {
  std::uint64_t digits = 1;
  std::int64_t exponent = 0;
};

/// True if a text is a number of JSON, of any size.
[[nodiscard]] bool is_json_number(std::string_view text);

/// The number that a text writes, such as `12.5` or `1e-3`. Nothing if the text is no number of
/// JSON, is negative, or has more than 19 digits from the first to the last one that is not zero.
[[nodiscard]] std::optional<decimal> parse_decimal(std::string_view text);

/// The shortest text that means a number of this type, with a fraction or an exponent, such as
/// `3.0`.
[[nodiscard]] std::string decimal_text(float number);
[[nodiscard]] std::string decimal_text(double number);

/// The least integer that is not below the exact product. Nothing above 2^63 - 1.
[[nodiscard]] std::optional<std::int64_t> rounded_up_product(decimal const& a, decimal const& b);

}  // namespace examples
