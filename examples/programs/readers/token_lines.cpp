// SPDX-License-Identifier: Apache-2.0
#include "token_lines.hpp"

#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "text_lines.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// Appends the token ids of a list.
void append_tokens(position const& where, std::string const& field, nlohmann::json const& list,
                   std::vector<std::int64_t>& tokens) {
  std::string const name = field.empty() ? "the line" : "field \"" + field + "\"";
  if (!list.is_array()) fail(where, name + " is no list of token ids");
  for (nlohmann::json const& token : list) {
    if (!token.is_number_integer()) {
      fail(where, name + " has " + token.dump() + ", must have integers only");
    }
    tokens.push_back(token.get<std::int64_t>());
  }
}

std::vector<std::int64_t> tokens_of(position const& where, nlohmann::json const& line) {
  std::vector<std::int64_t> tokens;
  if (!line.is_object()) {
    append_tokens(where, "", line, tokens);
    return tokens;
  }
  for (char const* const field : {"input_ids", "tokens"}) {
    if (!line.contains(field)) continue;
    append_tokens(where, field, line[field], tokens);
    return tokens;
  }
  if (!line.contains("prompt_ids")) {
    fail(where, "has none of the fields \"input_ids\", \"tokens\" and \"prompt_ids\"");
  }
  append_tokens(where, "prompt_ids", line["prompt_ids"], tokens);
  if (line.contains("completion_ids")) {
    append_tokens(where, "completion_ids", line["completion_ids"], tokens);
  }
  return tokens;
}

}  // namespace

std::vector<std::vector<std::int64_t>> read_token_lines(std::filesystem::path const& path,
                                                        progress& shown) {
  file_text const text(path, shown);
  std::vector<std::vector<std::int64_t>> result;
  std::size_t number = 0;
  for (std::string_view const line : lines_of(text.view())) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    position const where{text.name(), 0, number};
    nlohmann::json parsed;
    try {
      parsed = nlohmann::json::parse(line);
    } catch (nlohmann::json::parse_error const&) {
      fail(where, "is no JSON, or is cut off");
    }
    result.push_back(tokens_of(where, parsed));
  }
  return result;
}

}  // namespace examples
