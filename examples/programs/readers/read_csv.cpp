// SPDX-License-Identifier: Apache-2.0
#include "csv_records.hpp"
#include "input_error.hpp"
#include "readers.hpp"

#include <cstddef>
#include <string_view>

namespace examples {

namespace {

/// The separator that a header has outside of quotes.
char separator_of(std::string_view text) {
  bool in_quotes = false;
  bool has_semicolon = false;
  bool has_comma = false;
  for (char const c : text) {
    if (c == '"') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (c == '\n' || c == '\r') break;
    if (c == '\t') return '\t';
    has_semicolon = has_semicolon || c == ';';
    has_comma = has_comma || c == ',';
  }
  return has_semicolon && !has_comma ? ';' : ',';
}

}  // namespace

void read_csv(file_text const& text, record_fields const& fields, progress& shown, dataset& data) {
  fields.check_no_list({text.name()}, "CSV");
  if (fields.has_images()) data.kind = sample_kind::images_and_text;
  auto const& names = fields.names();
  auto const take = [&](position const& where, auto const& values) {
    record_fields::counts counts{};
    for (std::size_t i = 0; i != values.size(); ++i) {
      counts[i] = fields.count(where, i, {values[i]});
    }
    data.samples.push_back(fields.make(where, counts));
    shown.update(where.record, 0);
  };
  std::size_t const first = text.view().find_first_not_of(" \r\n");
  char const separator = separator_of(text.view().substr(first));
  switch (names.size()) {
    case 1: return for_each_csv_record(text, separator, take, names[0]);
    case 2: return for_each_csv_record(text, separator, take, names[0], names[1]);
    default: for_each_csv_record(text, separator, take, names[0], names[1], names[2]);
  }
}

}  // namespace examples
