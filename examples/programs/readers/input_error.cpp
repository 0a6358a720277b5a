// SPDX-License-Identifier: Apache-2.0
#include "input_error.hpp"

#include "text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <system_error>
#include <vector>

namespace examples {

namespace {

/// Long values are cut, so that one bad field cannot fill a terminal.
std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return std::string(text);
  return std::string(text.substr(0, longest)) + "...";
}

/// What is wrong with `text` as a count, where the text itself does not say it.
std::string_view complaint(std::string_view text) {
  if (text.empty() || text == "null") return "";
  switch (text.front()) {
    case '"': return "is a string";
    case 't':
    case 'f': return "is not a number";
    case '{': return "begins an object";
    case '[': return "begins a list";
    default: break;
  }
  bool const negative = text.front() == '-';
  std::string_view const digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || !is_digit(digits.front())) return "is not a number";
  if (!std::ranges::all_of(digits, is_digit)) return "is not an integer";
  if (negative) return "is negative";
  if (digits.size() > 1 && digits.front() == '0') return "has a leading zero";
  return "does not fit a 64-bit signed integer";
}

/// The number of single-letter edits between two names (Levenshtein).
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i != from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j != to.size(); ++j) {
      std::size_t const replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string in_quotes(std::string_view name) { return '"' + excerpt(name) + '"'; }

}  // namespace

std::string to_text(position const& where) {
  std::string result(where.file);
  if (where.record != 0) result += ": record " + std::to_string(where.record);
  if (where.line != 0) {
    std::string const line = "line " + std::to_string(where.line);
    result += where.record != 0 ? " (" + line + ")" : ": " + line;
  }
  return result;
}

void fail(position const& where, std::string_view problem) {
  throw input_error(to_text(where) + ": " + std::string(problem));
}

void fail_value(position const& where, std::string_view field, std::string_view text) {
  fail_value(where, field, text, complaint(text), "an integer from 0 to 9223372036854775807");
}

void fail_value(position const& where, std::string_view field, std::string_view text,
                std::string_view problem, std::string_view rule) {
  std::string whole = field.empty() ? "" : "field " + in_quotes(field) + " ";
  whole += "is " + (text.empty() ? "empty" : excerpt(text));
  if (!problem.empty()) whole.append(", which ").append(problem);
  fail(where, whole.append("; it must be ").append(rule));
}

void fail_missing(position const& where, std::string_view field,
                  std::span<std::string const> present) {
  throw missing_field(to_text(where) + ": no field " + in_quotes(field) + hint_at(field, present),
                      field);
}

std::string hint_at(std::string_view name, std::span<std::string const> present,
                    std::string_view plural) {
  if (present.empty()) return "; there are no " + std::string(plural) + " at all";
  // A name that was begun, or goes on, is near.
  auto const distance = [&](std::string const& other) -> std::size_t {
    bool const is_begun = name.size() > 2 && other.starts_with(name);
    bool const goes_on = other.size() > 2 && name.starts_with(other);
    return is_begun || goes_on ? 1 : edit_distance(name, other);
  };
  auto const nearest = std::ranges::min_element(present, {}, distance);
  std::size_t const tolerated = std::max<std::size_t>(2, name.size() / 3);
  if (distance(*nearest) <= tolerated) {
    return "; did you mean " + in_quotes(*nearest) + "?";
  }
  constexpr std::size_t most = 8;
  std::string result = "; the " + std::string(plural) + " are ";
  for (std::size_t i = 0; i != std::min(most, present.size()); ++i) {
    result += (i == 0 ? "" : ", ") + in_quotes(present[i]);
  }
  return present.size() > most ? result + ", ..." : result;
}

std::int64_t parse_count(position const& where, std::string_view field, std::string_view text) {
  std::int64_t result = 0;
  char const* const last = text.data() + text.size();
  auto const [end, error] = std::from_chars(text.data(), last, result);
  if (error != std::errc{} || end != last || text.front() == '-') fail_value(where, field, text);
  return result;
}

}  // namespace examples
