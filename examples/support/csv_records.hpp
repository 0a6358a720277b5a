#pragma once

/// \file
/// The records of a CSV file, with errors that name the file, the record and the line. For the
/// sources that read one.

#include "file_text.hpp"
#include "input_error.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

// The file is in memory already; a reading thread would only cost.
#define CSV_IO_NO_THREAD
#if defined(__GNUC__) && !defined(__clang__)
// The library cuts long file names on purpose; g++ warns of that after inlining.
#pragma GCC diagnostic ignored "-Wstringop-truncation"
#endif
#include <libfccp/csv.h>

namespace examples {

/// The names in the first line, for an error message only.
inline std::vector<std::string> column_names(std::string_view text, char separator) {
  std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  std::vector<std::string> names;
  while (true) {
    std::size_t const end = line.find(separator);
    names.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return names;
    line.remove_prefix(end + 1);
  }
}

/// Calls `visit(where, values)` for each record, with a value for each of the columns; others are
/// ignored. Errors: `input_error` for a text that is no CSV, a header without the columns, and a
/// record with more or fewer values than the header.
template <char Separator = ',', class Visit, class... Names>
void for_each_csv_record(file_text const& text, Visit const& visit, Names const&... columns) {
  // A separator is not trimmed.
  using trimmed =
      std::conditional_t<Separator == '\t', io::trim_chars<' '>, io::trim_chars<' ', '\t'>>;
  using reader_type =
      io::CSVReader<sizeof...(Names), trimmed, io::double_quote_escape<Separator, '"'>,
                    io::throw_on_overflow, io::empty_line_comment>;
  std::string_view const all = text.view();
  position where{text.name()};
  // The CSV library would end the line there.
  if (all.find('\0') != std::string_view::npos) fail(where, "holds a zero byte, so it is not CSV");
  reader_type reader(text.name(), all.data(), all.data() + all.size());
  try {
    reader.read_header(io::ignore_extra_column, columns...);
    std::array<char*, sizeof...(Names)> values{};
    auto const read_row = [&](auto*&... value) { return reader.read_row(value...); };
    while (true) {
      ++where.record;
      if (!std::apply(read_row, values)) return;
      where.line = reader.get_file_line();
      visit(where, values);
    }
  } catch (io::error::missing_column_in_header const& error) {
    fail_missing(where, error.column_name, column_names(all, Separator));
  } catch (io::error::too_few_columns const&) {
    where.line = reader.get_file_line();
    fail(where, "has fewer columns than the header");
  } catch (io::error::too_many_columns const&) {
    where.line = reader.get_file_line();
    fail(where, "has more columns than the header");
  } catch (io::error::base const& error) {
    fail(where, error.what());
  }
}

}  // namespace examples
