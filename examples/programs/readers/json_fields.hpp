// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fields of JSON files, with errors that name the file, the field and the value. For the
/// sources that read one.

#include "file_text.hpp"
#include "input_error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

/// The value in a text. Errors: `input_error` with the line where it ends to be JSON, and for an
/// object that has a field twice.
inline nlohmann::json parse_json(std::string_view name, std::string_view text) {
  using event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> seen;
  auto const check_names = [&](int, event kind, nlohmann::json& value) {
    if (kind == event::object_start) seen.emplace_back();
    if (kind == event::object_end) seen.pop_back();
    if (kind == event::key && !seen.back().insert(value.get<std::string>()).second) {
      fail({name}, "field \"" + value.get<std::string>() + "\" occurs twice in an object");
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, check_names);
  } catch (nlohmann::json::parse_error const& error) {
    auto const before = text.substr(0, std::min(error.byte, text.size()));
    auto const line = 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
    std::string_view const whole = error.what();
    std::size_t const reason = whole.rfind("; last read");
    std::string const last =
        reason == std::string_view::npos ? "" : std::string(whole.substr(reason + 1));
    fail({name, 0, line}, "is no JSON, or is cut off" + (last.empty() ? "" : ":" + last));
  }
}

/// An object of a file. Its fields are named with those that lead to it: `language.heads`.
class json_fields {
 public:
  /// Errors: `input_error` where the value is no object.
  json_fields(std::string file, std::string path, nlohmann::json const& value)
      : file_(std::move(file)), path_(std::move(path)), value_(&value) {
    if (value.is_object()) return;
    fail({file_}, (path_.empty() ? "" : "field \"" + path_ + "\" ") + "is " + shown(value) +
                      ", must be an object");
  }

  [[nodiscard]] std::string const& file() const { return file_; }
  /// The fields that lead to the object.
  [[nodiscard]] std::string const& path() const { return path_; }

  /// True where the field is there, also with null.
  [[nodiscard]] bool mentions(char const* name) const { return value_->contains(name); }

  /// True where the field is there and not null.
  [[nodiscard]] bool has(char const* name) const {
    return value_->contains(name) && !(*value_)[name].is_null();
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (auto const& item : value_->items()) result.push_back(item.key());
    return result;
  }

  /// The field with those that lead to it, as errors name it.
  [[nodiscard]] std::string path_of(char const* name) const {
    return path_.empty() ? name : path_ + '.' + name;
  }

  /// The value of a field, which may be null. Precondition: the field is there.
  [[nodiscard]] nlohmann::json const& value(char const* name) const { return (*value_)[name]; }

  /// The value of a field. Errors: `input_error` where there is none.
  [[nodiscard]] nlohmann::json const& at(char const* name) const {
    if (mentions(name) && !has(name)) {
      fail({file_}, "field \"" + path_of(name) + "\" is null, must have a value");
    }
    if (!has(name)) fail({file_}, "no field \"" + path_of(name) + "\"" + hint_at(name, present()));
    return (*value_)[name];
  }

  [[nodiscard]] std::int64_t integer(char const* name, std::int64_t least,
                                     std::int64_t most) const {
    auto const& field = at(name);
    bool const is_whole =
        field.is_number_integer() &&
        !(field.is_number_unsigned() && field.get<std::uint64_t>() > largest_signed);
    if (!is_whole || field.get<std::int64_t>() < least || field.get<std::int64_t>() > most) {
      refuse(name,
             "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return field.get<std::int64_t>();
  }
  [[nodiscard]] std::int64_t integer_or(char const* name, std::int64_t otherwise,
                                        std::int64_t least, std::int64_t most) const {
    return has(name) ? integer(name, least, most) : otherwise;
  }

  /// A number with or without a fraction.
  [[nodiscard]] double number(char const* name, double least, double most) const {
    auto const& field = at(name);
    if (!field.is_number() || !(field.get<double>() >= least && field.get<double>() <= most)) {
      refuse(name, "must be a number from " + nlohmann::json(least).dump() + " to " +
                       nlohmann::json(most).dump());
    }
    return field.get<double>();
  }

  [[nodiscard]] std::string text(char const* name) const {
    auto const& field = at(name);
    if (!field.is_string()) refuse(name, "must be a text");
    return field.get<std::string>();
  }

  [[nodiscard]] bool flag_or(char const* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    auto const& field = (*value_)[name];
    if (!field.is_boolean()) refuse(name, "must be true or false");
    return field.get<bool>();
  }

  [[nodiscard]] json_fields object(char const* name) const {
    return {file_, path_of(name), at(name)};
  }

  /// The elements of a list. Errors: `input_error` where the field is none, or an element is no
  /// integer from `least` to `most`.
  template <class Integer>
  [[nodiscard]] std::vector<Integer> integers(
      char const* name, Integer least = 0,
      Integer most = std::numeric_limits<Integer>::max()) const {
    auto const& field = at(name);
    if (!field.is_array()) refuse(name, "must be a list of integers");
    std::vector<Integer> result;
    result.reserve(field.size());
    for (auto const& element : field) {
      bool const is_whole = element.is_number_unsigned() ||
                            (element.is_number_integer() && element.get<std::int64_t>() >= 0);
      if (!is_whole || element.get<std::uint64_t>() < static_cast<std::uint64_t>(least) ||
          element.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
        fail({file_}, "field \"" + path_of(name) + "\" has " + shown(element) +
                          ", must have integers from " + std::to_string(least) + " to " +
                          std::to_string(most));
      }
      result.push_back(element.get<Integer>());
    }
    return result;
  }

  /// The place of the field's text among `names`. Errors: `input_error` where it is none of them.
  template <class Names>
  [[nodiscard]] std::size_t choice(char const* name, Names const& choices) const {
    std::string const given = text(name);
    std::vector<std::string> known(std::begin(choices), std::end(choices));
    auto const found = std::ranges::find(known, given);
    if (found == known.end()) {
      fail({file_}, "field \"" + path_of(name) + "\" is \"" + given + "\"" +
                        hint_at(given, known, "values"));
    }
    return static_cast<std::size_t>(found - known.begin());
  }

  /// Errors: `input_error` for a field that is none of these.
  void allow(std::vector<std::string> const& known) const {
    for (std::string const& name : names()) {
      if (std::ranges::find(known, name) != known.end()) continue;
      fail({file_}, "unknown field \"" + path_of(name.c_str()) + "\"" + hint_at(name, known));
    }
  }

  /// Fails because of the value of a field, which may be a default.
  [[noreturn]] void refuse(char const* name, std::string const& rule) const {
    std::string const value = mentions(name) ? shown((*value_)[name]) : "not in the file";
    fail({file_}, "field \"" + path_of(name) + "\" is " + value + ", " + rule);
  }

 private:
  static constexpr auto largest_signed =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  /// The names of the fields that have a value.
  [[nodiscard]] std::vector<std::string> present() const {
    std::vector<std::string> result = names();
    std::erase_if(result, [&](std::string const& name) { return !has(name.c_str()); });
    return result;
  }

  /// A value, cut where it is long.
  static std::string shown(nlohmann::json const& value) {
    constexpr std::size_t longest = 60;
    if (value.is_object()) return "an object";
    if (value.is_array() && !value.empty()) return "a list";
    std::string text = value.dump();
    return text.size() <= longest ? text : text.substr(0, longest) + "...";
  }

  std::string file_;
  std::string path_;
  nlohmann::json const* value_;
};

}  // namespace examples
