// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The records of a CSV file, with errors that name the file, the record and the line.

#include "file_text.hpp"
#include "input_error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// Splits a table into records and values, as RFC 4180 says.
///
/// A value in quotes may hold separators, line breaks and doubled quotes. Blanks around a value do
/// not count. Lines without a value are skipped. Where the separator is a tabulator, a quote is a
/// letter: a value has neither tabulators nor line breaks.
class csv_splitter {
 public:
  csv_splitter(file_text const& text, char separator);

  /// Reads the next record. False at the end of the file. The values are as they stand in the file.
  /// Errors: `input_error` for a quote that is not closed, and for text between the closing quote
  /// and the next separator.
  bool next(position& where, std::vector<std::string_view>& values);

  /// The meaning of a value: without its quotes. `room` holds one that stands nowhere in the file.
  [[nodiscard]] static std::string_view meaning(std::string_view value, std::string& room);

 private:
  [[nodiscard]] bool ends_line(std::size_t place) const {
    return place == all_.size() || all_[place] == line_end_;
  }
  [[nodiscard]] std::size_t after_blanks(std::size_t place) const;
  [[nodiscard]] std::size_t end_of_value(position const& where, std::size_t begin);

  std::string_view all_;
  char separator_;
  char line_end_;
  std::size_t begin_ = 0;
  std::size_t line_ = 1;
  std::size_t record_ = 0;
};

/// The names in the first record.
[[nodiscard]] std::vector<std::string> column_names(file_text const& text, char separator);

/// The places of `columns` among the names of a header. Errors: `input_error` for one that is
/// missing or occurs twice.
[[nodiscard]] std::vector<std::size_t> places_of(file_text const& text,
                                                 std::vector<std::string> const& names,
                                                 std::vector<std::string_view> const& columns);

/// Fails because a record has another number of values than the header.
[[noreturn]] void fail_columns(position const& where, char separator, std::size_t count,
                               std::size_t expected);

/// Calls `visit(where, values)` for each record, with a value for each of the columns; others are
/// ignored. Errors: `input_error` for a text that is no CSV, a header without the columns, and a
/// record with more or fewer values than the header.
template <class Visit, class... Names>
void for_each_csv_record(file_text const& text, char separator, Visit const& visit,
                         Names const&... columns) {
  auto const names = column_names(text, separator);
  auto const places = places_of(text, names, {std::string_view(columns)...});
  csv_splitter splitter(text, separator);
  position where{text.name()};
  std::vector<std::string_view> cells;
  splitter.next(where, cells);
  std::array<std::string, sizeof...(Names)> rooms;
  std::array<std::string_view, sizeof...(Names)> values;
  while (splitter.next(where, cells)) {
    if (cells.size() != names.size()) fail_columns(where, separator, cells.size(), names.size());
    for (std::size_t i = 0; i != values.size(); ++i) {
      values[i] = csv_splitter::meaning(cells[places[i]], rooms[i]);
    }
    visit(where, values);
  }
}

}  // namespace examples
