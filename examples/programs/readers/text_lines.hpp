// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Characters and lines of a text.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace examples {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The character at which lines end. A carriage return ends them where the text has no line feed,
/// as old programs write it; else it is a blank before one.
[[nodiscard]] inline char line_end_of(std::string_view text) {
  bool const has_feed = text.find('\n') != text.npos;
  return has_feed || text.find('\r') == text.npos ? '\n' : '\r';
}

/// Without their ends. The last one may lack its end.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace examples
