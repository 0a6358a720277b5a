// SPDX-License-Identifier: Apache-2.0
#include "xml_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace examples {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

std::uint32_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// The length of the character that begins `text`, or zero where its bytes are not UTF-8 or XML
/// does not allow it.
std::size_t character_length(std::string_view text) {
  std::uint32_t const first = byte_at(text, 0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  std::size_t const length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7Fu >> length);
  for (std::size_t i = 1; i != length; ++i) {
    if ((byte_at(text, i) & 0xC0u) != 0x80) return 0;
    code = code << 6 | (byte_at(text, i) & 0x3Fu);
  }
  constexpr std::uint32_t least[]{0, 0, 0x80, 0x800, 0x10000};
  bool const surrogate = code >= 0xD800 && code <= 0xDFFF;
  bool const excluded = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < least[length] || surrogate || excluded ? 0 : length;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    std::size_t const length = character_length(text);
    std::string_view const character = text.substr(0, std::max<std::size_t>(1, length));
    text.remove_prefix(character.size());
    if (length == 0) {
      result += replacement;
      continue;
    }
    switch (character.front()) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&apos;"; break;
      default: result += character; break;
    }
  }
  return result;
}

}  // namespace examples
