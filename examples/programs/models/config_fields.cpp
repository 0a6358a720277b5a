// SPDX-License-Identifier: Apache-2.0
#include "config_fields.hpp"

#include "input_error.hpp"

#include <algorithm>

namespace examples {

namespace {

std::string name_in_class(std::string const& name, std::vector<field_alias> const& aliases) {
  auto const known = std::ranges::find(aliases, name, &field_alias::alias);
  return known == aliases.end() ? name : std::string(known->name);
}

/// The object of the file by the names of the class.
nlohmann::json renamed(json_fields const& given, std::vector<field_alias> const& aliases) {
  nlohmann::json result = nlohmann::json::object();
  for (std::string const& name : given.names()) {
    std::string const own = name_in_class(name, aliases);
    nlohmann::json const& value = given.value(name.c_str());
    if (result.contains(own) && !result[own].is_null() && !value.is_null() &&
        result[own] != value) {
      given.refuse(name.c_str(), "but \"" + own + "\" means the same and has another value");
    }
    if (!result.contains(own) || result[own].is_null()) result[own] = value;
  }
  return result;
}

/// The defaults of the class, and in their place the values of the file.
nlohmann::json merged(nlohmann::json const& defaults, nlohmann::json const& own,
                      std::vector<field_alias> const& aliases) {
  nlohmann::json result = nlohmann::json::object();
  for (auto const& [name, value] : defaults.items()) result[name_in_class(name, aliases)] = value;
  for (auto const& [name, value] : own.items()) result[name] = value;
  return result;
}

std::set<std::string, std::less<>> names_of(nlohmann::json const& object) {
  std::set<std::string, std::less<>> result;
  for (auto const& item : object.items()) result.insert(item.key());
  return result;
}

}  // namespace

config_fields::config_fields(json_fields const& given, nlohmann::json const& defaults,
                             std::vector<field_alias> const& aliases)
    : in_file_(names_of(renamed(given, aliases))),
      merged_(merged(defaults, renamed(given, aliases), aliases)),
      fields_(given.file(), given.path(), merged_) {}

std::string config_fields::mark(std::string_view name) const { return *seen_.emplace(name).first; }

bool config_fields::has(std::string_view name) const { return fields_.has(mark(name).c_str()); }

bool config_fields::is_in_file(std::string_view name) const { return in_file_.contains(name); }

std::int64_t config_fields::integer(std::string_view name, std::int64_t least) const {
  return fields_.integer(mark(name).c_str(), least, max_of_model);
}

std::int64_t config_fields::integer_or(std::string_view name, std::int64_t otherwise,
                                       std::int64_t least) const {
  return has(name) ? integer(name, least) : otherwise;
}

double config_fields::number(std::string_view name) const {
  return fields_.number(mark(name).c_str(), 0, static_cast<double>(max_of_model));
}

bool config_fields::flag(std::string_view name, bool otherwise) const {
  return fields_.flag_or(mark(name).c_str(), otherwise);
}

std::string config_fields::text(std::string_view name) const {
  return fields_.text(mark(name).c_str());
}

nlohmann::json const& config_fields::at(std::string_view name) const {
  return fields_.at(mark(name).c_str());
}

std::vector<std::int64_t> config_fields::integers(std::string_view name) const {
  return fields_.integers<std::int64_t>(mark(name).c_str(), 0, max_of_model);
}

std::vector<std::string> config_fields::texts(std::string_view name) const {
  nlohmann::json const& list = at(name);
  std::vector<std::string> result;
  if (!list.is_array()) refuse(name, "must be a list of texts");
  for (auto const& element : list) {
    if (!element.is_string()) refuse(name, "must be a list of texts");
    result.push_back(element.get<std::string>());
  }
  return result;
}

json_fields config_fields::object(std::string_view name) const {
  return fields_.object(mark(name).c_str());
}

void config_fields::skip(std::initializer_list<std::string_view> names) const {
  for (std::string_view const name : names) seen_.emplace(name);
}

void config_fields::refuse(std::string_view name, std::string const& rule) const {
  fields_.refuse(std::string(name).c_str(), rule);
}

void config_fields::check_all_read(std::string_view family, field_rules const& rules) const {
  nlohmann::json rest = nlohmann::json::object();
  for (std::string const& name : in_file_) {
    if (!seen_.contains(name)) rest[name] = merged_[name];
  }
  check_fields(json_fields(fields_.file(), fields_.path(), rest), family, rules);
}

}  // namespace examples
