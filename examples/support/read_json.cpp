#include "input_error.hpp"
#include "readers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <simdjson.h>

namespace examples {

namespace {

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

/// Parses a value that nobody asked for, because a parser on demand checks only what is read.
void check_ignored(position const& where, json::value value);

void check_ignored_object(position const& where, json::value value) {
  json::object object;
  check(where, value.get_object().get(object));
  for (auto item : object) {
    json::field field;
    check(where, std::move(item).get(field));
    check_ignored(where, field.value());
  }
}

void check_ignored_array(position const& where, json::value value) {
  json::array array;
  check(where, value.get_array().get(array));
  for (auto item : array) {
    json::value element;
    check(where, std::move(item).get(element));
    check_ignored(where, element);
  }
}

void check_ignored(position const& where, json::value value) {
  auto type = json::json_type::null;
  check(where, value.type().get(type));
  switch (type) {
    case json::json_type::object: return check_ignored_object(where, value);
    case json::json_type::array: return check_ignored_array(where, value);
    case json::json_type::boolean: return check(where, value.get_bool().error());
    case json::json_type::string: return check(where, value.get_string().error());
    case json::json_type::number:
      // Any number will do here, one that fits no type of C++ too.
      static_cast<void>(value.get_double().error());
      return;
    default: {
      bool null = false;
      check(where, value.is_null().get(null));
      if (!null) fail_syntax(where, simdjson::N_ATOM_ERROR);
    }
  }
}

/// The token at which a value begins, as it stands in the file.
std::string_view token_text(json::value value) { return trimmed(value.raw_json_token()); }

/// The key as it stands in the file. The parser has room to unescape every key once only.
std::string key_text(json::field& field) {
  char const* const first = field.key().raw();
  char const* last = first;
  while (*last != '"') last += *last == '\\' ? 2 : 1;
  return std::string(first, last);
}

void take_count(position const& where, std::string_view field, json::value value,
                std::optional<std::int64_t>& count) {
  if (count) fail(where, "field \"" + std::string(field) + "\" occurs twice");
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS || number < 0) {
    fail_value(where, field, token_text(value));
  }
  count = number;
}

sample read_record(position const& where, json::object object, field_names const& fields) {
  std::optional<std::int64_t> images;
  std::optional<std::int64_t> tokens;
  if (fields.images.empty()) images = 0;
  for (auto item : object) {
    json::field field;
    check(where, std::move(item).get(field));
    std::string_view key;
    check(where, field.unescaped_key().get(key));
    if (!fields.images.empty() && key == fields.images) {
      take_count(where, key, field.value(), images);
    } else if (key == fields.tokens) {
      take_count(where, key, field.value(), tokens);
    } else {
      check_ignored(where, field.value());
    }
  }
  if (images && tokens) return {*images, *tokens};

  std::vector<std::string> present;
  object.reset();
  for (auto item : object) {
    json::field field;
    check(where, std::move(item).get(field));
    present.push_back(key_text(field));
  }
  fail_missing(where, images ? fields.tokens : fields.images, present);
}

/// The number of elements that begin in the outermost list or object of a text that breaks off.
std::size_t elements_begun(std::string_view text) {
  std::size_t depth = 0;
  std::size_t begun = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (depth++ == 1) ++begun;
    } else if ((c == ']' || c == '}') && depth != 0) {
      --depth;
    }
  }
  return begun;
}

/// Fails because the outermost bracket is never closed.
[[noreturn]] void fail_truncated(file_text const& text, std::string_view kind) {
  constexpr std::size_t shown = 40;
  std::string_view const body = trimmed(text.view());
  std::string end(body.substr(body.size() - std::min(shown, body.size())));
  std::ranges::replace(end, '\n', ' ');
  fail({text.name(), elements_begun(body)}, "the file is truncated: its " + std::string(kind) +
                                                " is not closed, it ends with `" + end + "`");
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
  if (body.back() != brackets.back()) fail_truncated(text, kind);

  json::document document;
  simdjson::padded_string_view const padded(text.view().data(), text.view().size(),
                                            text.readable());
  auto const error = parser.iterate(padded).get(document);
  if (error == simdjson::UNCLOSED_STRING) fail_truncated(text, kind);
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

void read_json_list(file_text const& text, field_names const& fields, progress& shown,
                    std::vector<sample>& samples) {
  json::parser parser;
  json::document document = open_document(parser, text, "[]", "list");
  position where{text.name()};
  json::array list;
  check(where, document.get_array().get(list));
  for (auto item : list) {
    ++where.record;
    json::value value;
    check(where, std::move(item).get(value));
    json::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) {
      fail(where, "is " + std::string(token_text(value)) + ", must be an object");
    }
    samples.push_back(read_record(where, object, fields));
    if (where.record % 1024 == 0) {
      char const* location = nullptr;
      check(where, document.current_location().get(location));
      shown.update(static_cast<std::size_t>(location - text.view().data()), text.view().size());
    }
  }
  check_end({text.name()}, document);
}

void read_json_lines(file_text const& text, field_names const& fields, progress& shown,
                     std::vector<sample>& samples) {
  json::parser parser;
  position where{text.name()};
  std::string_view const all = text.view();
  for (std::size_t begin = 0; begin < all.size();) {
    ++where.line;
    std::size_t const end = std::min(all.find('\n', begin), all.size());
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
    samples.push_back(read_record(where, object, fields));
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
    check(where, field.unescaped_key().get(name));
    manifest_entry entry{std::string(name), ""};
    std::string const subject = "entry \"" + entry.name + "\" ";
    if (std::ranges::count(entries, entry.name, &manifest_entry::name) != 0) {
      fail(where, subject + "occurs twice");
    }
    json::value value = field.value();
    json::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) {
      fail(where, subject + "is " + std::string(token_text(value)) + ", must be an object");
    }
    for (auto inner : object) {
      json::field property;
      check(where, std::move(inner).get(property));
      std::string_view key;
      check(where, property.unescaped_key().get(key));
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
    if (entry.path.empty()) fail(where, subject + "has no \"token_lengths\"");
    entries.push_back(std::move(entry));
  }
  check_end(where, document);
  return entries;
}

}  // namespace examples
