// SPDX-License-Identifier: Apache-2.0
#include "decimal.hpp"
#include "input_error.hpp"
#include "readers.hpp"
#include "text_lines.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <simdjson.h>

namespace examples {

namespace {

/// simdjson 3.0 knows no argument, 3.6 no default for it: whether to replace what is no character.
template <class Field>
[[nodiscard]] auto key_of(Field& field) {
  if constexpr (requires { field.unescaped_key(); }) {
    return field.unescaped_key();
  } else {
    return field.unescaped_key(false);
  }
}

namespace json = simdjson::ondemand;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  std::size_t const first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

[[noreturn]] void fail_syntax(position const& where, simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR: fail(where, "is not valid UTF-8");
    case simdjson::CAPACITY: fail(where, "is above 4 GiB, more than one JSON file may have");
    case simdjson::MEMALLOC: fail(where, "does not fit in memory");
    default:
      fail(where,
           std::string("is not valid JSON, or truncated (") + simdjson::error_message(error) + ")");
  }
}

void check(position const& where, simdjson::error_code error) {
  if (error != simdjson::SUCCESS) [[unlikely]] {
    fail_syntax(where, error);
  }
}

/// The token at which a value begins, as it stands in the file.
std::string_view token_text(json::value value) { return trimmed(value.raw_json_token()); }

/// Numbers that JSON does not have and Python writes.
bool is_non_finite(std::string_view text) {
  return text == "NaN" || text == "Infinity" || text == "-Infinity";
}

/// Checks the escapes of a string without its meaning: half of a surrogate pair, which Python
/// writes, has none. The parser has found the closing quote.
void check_escapes(position const& where, json::raw_json_string string) {
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view hexadecimal = "0123456789abcdefABCDEF";
  for (char const* next = string.raw(); *next != '"'; ++next) {
    if (*next != '\\') continue;
    ++next;
    if (letters.find(*next) != letters.npos) continue;
    bool is_good = *next == 'u';
    for (std::size_t i = 0; is_good && i != 4; ++i) {
      ++next;
      is_good = *next != '"' && hexadecimal.find(*next) != hexadecimal.npos;
    }
    if (!is_good) fail_syntax(where, simdjson::STRING_ERROR);
  }
}

/// Parses a value that nobody asked for, because a parser on demand checks only what is read.
void check_ignored(position const& where, json::value value, std::size_t depth = 1);

void check_ignored_object(position const& where, json::value value, std::size_t depth) {
  json::object object;
  check(where, value.get_object().get(object));
  for (auto item : object) {
    json::field field;
    check(where, std::move(item).get(field));
    check_escapes(where, field.key());
    check_ignored(where, field.value(), depth);
  }
}

void check_ignored_array(position const& where, json::value value, std::size_t depth) {
  json::array array;
  check(where, value.get_array().get(array));
  for (auto item : array) {
    json::value element;
    check(where, std::move(item).get(element));
    check_ignored(where, element, depth);
  }
}

void check_ignored(position const& where, json::value value, std::size_t depth) {
  // The parser itself goes 1,024 deep, the stack of a thread some thousand calls.
  constexpr std::size_t deepest = 1000;
  std::string_view const token = token_text(value);
  char const first = token.empty() ? '\0' : token.front();
  if (first == '{' || first == '[') {
    if (depth > deepest) {
      fail(where, "has lists and objects in more than " + std::to_string(deepest) + " others");
    }
    return first == '{' ? check_ignored_object(where, value, depth + 1)
                        : check_ignored_array(where, value, depth + 1);
  }
  if (first == '"') {
    json::raw_json_string string;
    check(where, value.get_raw_json_string().get(string));
    return check_escapes(where, string);
  }
  bool const is_word = token == "null" || token == "true" || token == "false";
  if (is_word || is_non_finite(token) || is_json_number(token)) return;
  constexpr std::size_t longest = 60;
  fail(where, "is not valid JSON: it has `" + std::string(token.substr(0, longest)) +
                  "` where a value must be");
}

/// The key of a field. None if it has half of a surrogate pair: it has no meaning then, and is the
/// name of no field.
std::optional<std::string_view> known_key(position const& where, json::field& field) {
  json::raw_json_string const raw_key = field.key();
  std::string_view key;
  if (key_of(field).get(key) == simdjson::SUCCESS) return key;
  check_escapes(where, raw_key);
  return {};
}

/// The key as it stands in the file. The parser has room to unescape every key once only.
std::string key_text(json::field& field) {
  char const* const first = field.key().raw();
  char const* last = first;
  while (*last != '"') last += *last == '\\' ? 2 : 1;
  return std::string(first, last);
}

std::int64_t count_of(position const& where, std::string_view field, json::value value) {
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS || number < 0) {
    fail_value(where, field, token_text(value));
  }
  return number;
}

/// The names of the fields that an object has.
std::vector<std::string> field_names_of(position const& where, json::object object) {
  std::vector<std::string> present;
  object.reset();
  for (auto item : object) {
    json::field field;
    check(where, std::move(item).get(field));
    present.push_back(key_text(field));
  }
  return present;
}

/// Calls `take(place, value)` for each of the fields that `fields` names, once each. Errors:
/// `input_error` for one that is missing or occurs twice.
template <class Take>
void for_each_wanted(position const& where, json::object object, record_fields const& fields,
                     Take const& take) {
  std::array<bool, record_fields::most> is_there{};
  auto const names = fields.names();
  for (auto item : object) {
    json::field field;
    check(where, std::move(item).get(field));
    auto const key = known_key(where, field);
    std::size_t const place = key ? fields.find(*key) : names.size();
    if (place == names.size()) {
      check_ignored(where, field.value());
      continue;
    }
    if (is_there[place]) fail(where, "field \"" + names[place] + "\" occurs twice");
    is_there[place] = true;
    take(place, field.value());
  }
  for (std::size_t place = 0; place != names.size(); ++place) {
    if (!is_there[place]) fail_missing(where, names[place], field_names_of(where, object));
  }
}

/// Checks a value, and returns what counts are made of.
field_value value_of(position const& where, json::value value) {
  field_value result{token_text(value)};
  if (!result.text.starts_with('[')) {
    check_ignored(where, value);
    return result;
  }
  json::array list;
  check(where, value.get_array().get(list));
  result.elements = 0;
  for (auto item : list) {
    json::value element;
    check(where, std::move(item).get(element));
    check_ignored(where, element);
    ++*result.elements;
  }
  return result;
}

/// Finds the fields of one record by name or by path. Among several ways along a path the one with
/// the longest first name counts, so that a field with the whole name comes first.
class field_search {
 public:
  field_search(position const& where, record_fields const& fields)
      : where_(where), fields_(fields) {}

  sample read(json::object object) {
    auto const names = fields_.names();
    std::vector<target> targets;
    for (std::size_t place = 0; place != names.size(); ++place) {
      targets.push_back({place, names[place]});
    }
    search(object, targets);
    record_fields::counts counts{};
    for (std::size_t place = 0; place != names.size(); ++place) {
      if (found_[place].steps.empty()) {
        std::vector<std::string> present;
        object.reset();
        add_names(object, "", names[place], present);
        fail_missing(where_, names[place], present);
      }
      counts[place] = fields_.count(where_, place, found_[place].value);
    }
    return fields_.make(where_, counts);
  }

 private:
  /// The names that lead on to the field at a place among those of the fields.
  struct target {
    std::size_t place;
    std::string_view rest;
  };

  struct found_field {
    /// The sizes of the names that lead to the value; none if it was not found.
    std::vector<std::size_t> steps;
    field_value value;
  };

  void search(json::object object, std::vector<target> const& targets) {
    for (auto item : object) {
      json::field field;
      check(where_, std::move(item).get(field));
      auto const key = known_key(where_, field);
      if (!key) {
        check_ignored(where_, field.value());
        continue;
      }
      std::vector<target> inner;
      target const* exact = nullptr;
      for (target const& one : targets) {
        if (!one.rest.starts_with(*key)) continue;
        if (one.rest.size() == key->size()) {
          exact = &one;
        } else if (one.rest[key->size()] == '.') {
          inner.push_back({one.place, one.rest.substr(key->size() + 1)});
        }
      }
      json::value value = field.value();
      steps_.push_back(key->size());
      if (exact != nullptr) {
        keep(exact->place, value_of(where_, value));
      } else if (!inner.empty() && token_text(value).starts_with('{')) {
        json::object nested;
        check(where_, value.get_object().get(nested));
        search(nested, inner);
      } else {
        check_ignored(where_, value);
      }
      steps_.pop_back();
    }
  }

  void keep(std::size_t place, field_value const& value) {
    found_field& found = found_[place];
    if (found.steps == steps_) {
      fail(where_, "field \"" + fields_.names()[place] + "\" occurs twice");
    }
    if (found.steps < steps_) found = {steps_, value};
  }

  /// The names of an object, and the paths on the way to a field.
  void add_names(json::object object, std::string const& before, std::string_view wanted,
                 std::vector<std::string>& names) const {
    for (auto item : object) {
      json::field field;
      check(where_, std::move(item).get(field));
      std::string const path = before + key_text(field);
      json::value value = field.value();
      bool const leads_on = wanted.starts_with(path + '.') && token_text(value).starts_with('{');
      if (!leads_on) {
        names.push_back(path);
        continue;
      }
      json::object nested;
      check(where_, value.get_object().get(nested));
      add_names(nested, path + '.', wanted, names);
    }
  }

  position const& where_;
  record_fields const& fields_;
  std::vector<std::size_t> steps_;
  std::array<found_field, record_fields::most> found_;
};

sample read_record(position const& where, json::object object, record_fields const& fields) {
  if (!fields.are_plain()) return field_search(where, fields).read(object);
  record_fields::counts counts{};
  for_each_wanted(where, object, fields, [&](std::size_t place, json::value value) {
    counts[place] = count_of(where, fields.names()[place], value);
  });
  return fields.make(where, counts);
}

/// What to do about an object that was taken for something else than a record.
constexpr std::string_view record_hint = "; if the object is a record, give --format jsonl";

std::vector<std::int64_t> read_column(position where, record_fields const& fields,
                                      std::size_t place, json::value value) {
  std::string const& field = fields.names()[place];
  json::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) {
    fail(where, "field \"" + field + "\" is " + std::string(token_text(value)) +
                    ", must be a list as the first field is" + std::string(record_hint));
  }
  std::vector<std::int64_t> column;
  for (auto item : list) {
    ++where.record;
    json::value element;
    check(where, std::move(item).get(element));
    column.push_back(fields.are_plain() ? count_of(where, field, element)
                                        : fields.count(where, place, value_of(where, element)));
  }
  return column;
}

/// The number of elements that begin in the outermost list or object of a text, and where it ends.
struct json_extent {
  std::size_t begun = 0;
  std::size_t end = std::string_view::npos;
};

json_extent extent_of(std::string_view text) {
  json_extent result;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (depth++ == 1) ++result.begun;
    } else if ((c == ']' || c == '}') && depth != 0 && --depth == 0) {
      result.end = i + 1;
      return result;
    }
  }
  return result;
}

/// The first letters of a text.
std::string beginning(std::string_view text) {
  constexpr std::size_t shown = 40;
  std::string result(text.substr(0, shown));
  std::ranges::replace(result, '\n', ' ');
  return result;
}

/// Fails because the outermost bracket is never closed, or text follows it.
[[noreturn]] void fail_end(file_text const& text, std::string_view kind) {
  constexpr std::size_t shown = 40;
  std::string_view const body = trimmed(text.view());
  json_extent const extent = extent_of(body);
  if (extent.end != body.npos && extent.end != body.size()) {
    fail({text.name()}, "text follows the end of the JSON " + std::string(kind) + ": `" +
                            beginning(trimmed(body.substr(extent.end))) + "`");
  }
  fail({text.name(), extent.begun},
       "the file is truncated: its " + std::string(kind) + " is not closed, it ends with `" +
           beginning(body.substr(body.size() - std::min(shown, body.size()))) + "`");
}

/// The outermost value of a file, which must begin and end with these brackets.
json::document open_document(json::parser& parser, file_text const& text, std::string_view brackets,
                             std::string_view kind) {
  std::string_view const body = trimmed(text.view());
  if (body.empty()) fail({text.name()}, "the file is empty");
  if (body.front() != brackets.front()) {
    fail({text.name()}, "must hold a JSON " + std::string(kind) + ", but begins with `" +
                            std::string(body.substr(0, 20)) + "`");
  }
  if (body.back() != brackets.back()) fail_end(text, kind);

  json::document document;
  simdjson::padded_string_view const padded(text.view().data(), text.view().size(),
                                            text.readable());
  auto const error = parser.iterate(padded).get(document);
  if (error == simdjson::UNCLOSED_STRING) fail_end(text, kind);
  check({text.name()}, error);
  return document;
}

void check_end(position const& where, json::document& document) {
  // Inside a document there is a current location; behind it there is none.
  if (document.current_location().error() == simdjson::SUCCESS) {
    fail(where, "text follows the end of the JSON value");
  }
}

}  // namespace

std::size_t end_of_json(std::string_view text) { return extent_of(text).end; }

void read_json_list(file_text const& text, record_fields const& fields, progress& shown,
                    dataset& data) {
  json::parser parser;
  json::document document = open_document(parser, text, "[]", "list");
  position where{text.name()};
  json::array list;
  check(where, document.get_array().get(list));
  auto first = json::json_type::object;
  for (auto item : list) {
    ++where.record;
    json::value value;
    check(where, std::move(item).get(value));
    auto type = json::json_type::null;
    check(where, value.type().get(type));
    if (where.record == 1) {
      first = type;
      if (type == json::json_type::number)
        fields.check_nameless({text.name()}, "a list of numbers");
      bool const has_images = type == json::json_type::object && fields.has_images();
      if (has_images) data.kind = sample_kind::images_and_text;
    }
    json::object object;
    if (first == json::json_type::number) {
      data.samples.push_back({0, fields.has_scale() ? fields.tokens(where, token_text(value))
                                                    : count_of(where, {}, value)});
    } else if (value.get_object().get(object) == simdjson::SUCCESS) {
      data.samples.push_back(read_record(where, object, fields));
    } else {
      fail(where, "is " + std::string(token_text(value)) + ", must be an object" +
                      (where.record == 1 ? " or a number" : " as the first one is"));
    }
    if (where.record % 1024 == 0) {
      char const* location = nullptr;
      check(where, document.current_location().get(location));
      shown.update(static_cast<std::size_t>(location - text.view().data()), text.view().size());
    }
  }
  check_end({text.name()}, document);
}

void read_json_columns(file_text const& text, record_fields const& fields, dataset& data) {
  json::parser parser;
  json::document document = open_document(parser, text, "{}", "object");
  position where{text.name()};
  json::object object;
  check(where, document.get_object().get(object));
  std::array<std::vector<std::int64_t>, record_fields::most> columns;
  auto const names = fields.names();
  for_each_wanted(where, object, fields, [&](std::size_t place, json::value value) {
    columns[place] = read_column(where, fields, place, value);
  });
  check_end(where, document);
  for (std::size_t place = 1; place != names.size(); ++place) {
    if (columns[place].size() == columns[0].size()) continue;
    fail(where, "field \"" + names[0] + "\" has " + std::to_string(columns[0].size()) +
                    " values and field \"" + names[place] + "\" " +
                    std::to_string(columns[place].size()));
  }
  if (fields.has_images()) data.kind = sample_kind::images_and_text;
  for (std::size_t i = 0; i != columns[0].size(); ++i) {
    where.record = i + 1;
    record_fields::counts counts{};
    for (std::size_t place = 0; place != names.size(); ++place) counts[place] = columns[place][i];
    data.samples.push_back(fields.make(where, counts));
  }
}

sample read_json_object(file_text const& text, std::string_view object, position const& where,
                        record_fields const& fields) {
  std::string_view const body = trimmed(object);
  if (!body.starts_with('{')) fail(where, "must be a JSON object");
  auto const before = static_cast<std::size_t>(body.data() - text.view().data());
  json::parser parser;
  json::document document;
  simdjson::padded_string_view const padded(body.data(), body.size(), text.readable() - before);
  check(where, parser.iterate(padded).get(document));
  json::object fields_of_object;
  check(where, document.get_object().get(fields_of_object));
  sample const result = read_record(where, fields_of_object, fields);
  check_end(where, document);
  return result;
}

void read_json_lines(file_text const& text, record_fields const& fields, progress& shown,
                     dataset& data) {
  if (fields.has_images()) data.kind = sample_kind::images_and_text;
  json::parser parser;
  position where{text.name()};
  std::string_view const all = text.view();
  char const line_end = line_end_of(all);
  for (std::size_t begin = 0; begin < all.size();) {
    ++where.line;
    std::size_t const end = std::min(all.find(line_end, begin), all.size());
    std::string_view const line = trimmed(all.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    ++where.record;
    if (line.front() != '{') fail(where, "must be a JSON object on a line of its own");

    std::size_t const before = static_cast<std::size_t>(line.data() - all.data());
    json::document document;
    check(where, parser
                     .iterate(simdjson::padded_string_view(line.data(), line.size(),
                                                           text.readable() - before))
                     .get(document));
    json::object object;
    check(where, document.get_object().get(object));
    data.samples.push_back(read_record(where, object, fields));
    check_end(where, document);
    shown.update(end, all.size());
  }
}

std::vector<manifest_entry> read_manifest(file_text const& text) {
  constexpr std::string_view path_field = "token_lengths";
  json::parser parser;
  json::document document = open_document(parser, text, "{}", "object");
  position const where{text.name()};
  json::object manifest;
  check(where, document.get_object().get(manifest));

  std::vector<manifest_entry> entries;
  for (auto item : manifest) {
    json::field field;
    check(where, std::move(item).get(field));
    std::string_view name;
    check(where, key_of(field).get(name));
    manifest_entry entry{std::string(name), ""};
    std::string const subject = "entry \"" + entry.name + "\" ";
    if (std::ranges::count(entries, entry.name, &manifest_entry::name) != 0) {
      fail(where, subject + "occurs twice");
    }
    json::value value = field.value();
    json::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) {
      fail(where, subject + "is " + std::string(token_text(value)) + ", must be an object" +
                      std::string(record_hint));
    }
    for (auto inner : object) {
      json::field property;
      check(where, std::move(inner).get(property));
      std::string_view key;
      check(where, key_of(property).get(key));
      if (key == "repeat_time") {
        json::value times = property.value();
        std::string const count(token_text(times));
        if (count != "1" && count != "1.0") {
          fail(where,
               subject + "has \"repeat_time\" " + count +
                   ", must be 1: samples are read once; list the entry as often as it counts");
        }
        continue;
      }
      if (key != path_field) {
        check_ignored(where, property.value());
        continue;
      }
      json::value path_value = property.value();
      std::string_view path;
      if (path_value.get_string().get(path) != simdjson::SUCCESS || path.empty()) {
        fail(where, subject + "has \"token_lengths\" " + std::string(token_text(path_value)) +
                        ", must be a path");
      }
      entry.path = path;
    }
    if (entry.path.empty())
      fail(where, subject + "has no \"token_lengths\", the path that an entry of a manifest has" +
                      std::string(record_hint));
    entries.push_back(std::move(entry));
  }
  check_end(where, document);
  return entries;
}

}  // namespace examples
