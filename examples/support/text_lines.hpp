#pragma once

/// \file
/// The lines of a text.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace examples {

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
