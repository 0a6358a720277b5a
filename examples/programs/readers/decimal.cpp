// SPDX-License-Identifier: Apache-2.0
#include "decimal.hpp"

#include "text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <system_error>

namespace examples {

namespace {

__extension__ using wide = unsigned __int128;

/// True if `text` begins with digits, which are removed.
bool skip_digits(std::string_view& text) {
  std::size_t const end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end != 0;
}

/// An exponent with its sign. Values beyond a million are cut to it: with at most 19 digits such
/// numbers are too large anyway, or round up to 1.
std::int64_t parse_exponent(std::string_view text) {
  constexpr std::int64_t most = 1'000'000;
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return text.front() == '-' ? -most : most;
  return std::clamp(value, -most, most);
}

template <class Float>
std::string shortest_text(Float number) {
  char text[32];
  std::string result(text, std::to_chars(text, text + sizeof(text), number).ptr);
  return result.find_first_not_of("-0123456789") == result.npos ? result + ".0" : result;
}

}  // namespace

std::string decimal_text(float number) { return shortest_text(number); }

std::string decimal_text(double number) { return shortest_text(number); }

bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  bool const is_zero = text.starts_with('0');
  if (is_zero) {
    text.remove_prefix(1);
  } else if (!skip_digits(text)) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!skip_digits(text)) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (!skip_digits(text)) return false;
  }
  return text.empty();
}

std::optional<decimal> parse_decimal(std::string_view text) {
  if (!is_json_number(text)) return {};
  bool const is_negative = text.front() == '-';
  if (is_negative) text.remove_prefix(1);
  std::size_t const mantissa = std::min(text.find_first_of("eE"), text.size());
  decimal result{0, mantissa == text.size() ? 0 : parse_exponent(text.substr(mantissa + 1))};
  std::string digits;
  bool is_behind_point = false;
  for (char const c : text.substr(0, mantissa)) {
    if (c == '.') {
      is_behind_point = true;
      continue;
    }
    if (is_behind_point) --result.exponent;
    if (c != '0' || !digits.empty()) digits += c;
  }
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++result.exponent;
  }
  constexpr std::size_t most_digits = std::numeric_limits<std::uint64_t>::digits10;
  if (digits.size() > most_digits || (is_negative && !digits.empty())) return {};
  for (char const c : digits) {
    result.digits = 10 * result.digits + static_cast<std::uint64_t>(c - '0');
  }
  return result;
}

std::optional<std::int64_t> rounded_up_product(decimal const& a, decimal const& b) {
  constexpr wide largest = std::numeric_limits<std::int64_t>::max();
  // At most 38 digits.
  wide product = wide{a.digits} * b.digits;
  if (product == 0) return 0;
  std::int64_t exponent = a.exponent + b.exponent;
  bool is_cut = false;
  for (; exponent < 0; ++exponent) {
    is_cut = is_cut || product % 10 != 0;
    product /= 10;
    if (product == 0) return 1;
  }
  for (; exponent > 0 && product <= largest; --exponent) product *= 10;
  if (is_cut) ++product;
  if (product > largest) return {};
  return static_cast<std::int64_t>(product);
}

}  // namespace examples
