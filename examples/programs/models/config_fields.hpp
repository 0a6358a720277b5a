// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fields of a public configuration with the defaults of its class, and which of them were
/// read.

#include "field_rules.hpp"
#include "json_fields.hpp"
#include "tower_connector.hpp"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

/// Another name of a field, as in older files.
struct field_alias {
  std::string_view alias;
  std::string_view name;
};

/// The fields of an object of a file. A field that the file lacks has the default of the class, if
/// there is one. A field that is null has no value, whatever the default is.
///
/// Reading a field marks it; `check_all_read` fails for a field of the file that nothing marked.
class config_fields {
 public:
  /// Errors: `input_error` for two names of one field with different values.
  config_fields(json_fields const& given, nlohmann::json const& defaults,
                std::vector<field_alias> const& aliases);
  config_fields(config_fields const&) = delete;
  config_fields& operator=(config_fields const&) = delete;

  /// True if the field has a value.
  [[nodiscard]] bool has(std::string_view name) const;
  /// True if the file itself has the field, also with null.
  [[nodiscard]] bool is_in_file(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t least = 1) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view name, std::int64_t otherwise,
                                        std::int64_t least = 0) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name, bool otherwise = false) const;
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] nlohmann::json const& at(std::string_view name) const;
  /// A list of integers. Errors: `input_error` for another value.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name) const;
  /// A list of texts. Errors: `input_error` for another value.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  /// An object within. Its fields have no defaults.
  [[nodiscard]] json_fields object(std::string_view name) const;

  /// Marks fields that change nothing here.
  void skip(std::initializer_list<std::string_view> names) const;
  [[noreturn]] void refuse(std::string_view name, std::string const& rule) const;
  /// Errors: `input_error` that names the field and the family.
  void check_all_read(std::string_view family, field_rules const& rules) const;

 private:
  [[nodiscard]] std::string mark(std::string_view name) const;

  std::set<std::string, std::less<>> in_file_;
  nlohmann::json merged_;
  json_fields fields_;
  mutable std::set<std::string, std::less<>> seen_;
};

}  // namespace examples
