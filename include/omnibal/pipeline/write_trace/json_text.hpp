#pragma once

/// \file
/// Strings and numbers as JSON.

#include <omnibal/check.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// `text` in quotes, with quotes, backslashes and control characters escaped.
[[nodiscard]] inline std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "\"";
  for (char const character : text) {
    auto const code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result.append("\\").push_back(character);
    } else if (code < 0x20) {
      result.append("\\u00").push_back(digits[code / 16]);
      result.push_back(digits[code % 16]);
    } else {
      result.push_back(character);
    }
  }
  return result.append("\"");
}

/// `value`, not negative, times ten to the power of `shift`; exact for integers.
template <class T>
[[nodiscard]] std::string shifted_decimal(T value, int shift) {
  if constexpr (std::floating_point<T>) {
    T factor = 1;
    for (int digit = shift < 0 ? -shift : shift; digit != 0; --digit) factor *= 10;
    return to_text(shift < 0 ? value / factor : value * factor);
  } else {
    std::string digits = to_text(value);
    if (shift >= 0)
      return value == 0 ? digits : digits.append(static_cast<std::size_t>(shift), '0');
    auto const places = static_cast<std::size_t>(-shift);
    std::size_t const missing = digits.size() <= places ? places + 1 - digits.size() : 0;
    digits = std::string(missing, '0').append(digits);
    std::string result(digits, 0, digits.size() - places);
    result.push_back('.');
    return result.append(digits, digits.size() - places);
  }
}

}  // namespace omnibal::inline v0::detail
