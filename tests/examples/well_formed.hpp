// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What is wrong with a small XML document as the examples write it, without comments, declarations
/// or CDATA, or nothing where it is well-formed.
inline std::string xml_complaint(std::string_view text) {
  auto const is_entity = [](std::string_view rest) {
    return std::ranges::any_of(
        std::vector<std::string_view>{"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"},
        [&](std::string_view entity) { return rest.starts_with(entity); });
  };
  std::vector<std::string_view> open;
  bool had_root = false;
  std::size_t i = 0;
  while (i != text.size()) {
    if (text[i] == '&' && !is_entity(text.substr(i))) return "a bare ampersand";
    if (text[i] == '>') return "a bare >";
    if (text[i] != '<') {
      if (open.empty() && text[i] != '\n') return "text outside of the root";
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    bool quoted = false;
    for (; end != text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return "a < inside of a tag";
      if (text[end] == '&' && !is_entity(text.substr(end))) return "a bare ampersand in a tag";
    }
    if (end == text.size()) return "a tag without end";
    std::string_view const tag = text.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "</ of another element";
      open.pop_back();
      continue;
    }
    if (open.empty() && had_root) return "a second root";
    had_root = true;
    if (!tag.ends_with('/')) open.push_back(tag.substr(0, tag.find(' ')));
  }
  if (!open.empty()) return "an element without end";
  return had_root ? "" : "no root";
}
