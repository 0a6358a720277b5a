#include "input_error.hpp"
#include "readers.hpp"

#include <string_view>

// The file is in memory already; a reading thread would only cost.
#define CSV_IO_NO_THREAD
#if defined(__GNUC__) && !defined(__clang__)
// The library cuts long file names on purpose; g++ warns of that after inlining.
#pragma GCC diagnostic ignored "-Wstringop-truncation"
#endif
#include <libfccp/csv.h>

namespace examples {

namespace {

using csv_reader = io::CSVReader<2, io::trim_chars<' ', '\t'>, io::double_quote_escape<',', '"'>,
                                 io::throw_on_overflow, io::empty_line_comment>;

/// The names in the first line, for an error message only.
std::vector<std::string> column_names(std::string_view text) {
  std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  std::vector<std::string> names;
  while (true) {
    std::size_t const comma = line.find(',');
    names.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

void read_csv(file_text const& text, field_names const& fields, progress& shown,
              std::vector<sample>& samples) {
  std::string_view const all = text.view();
  position where{text.name()};
  // The CSV library would end the line there.
  if (all.find('\0') != std::string_view::npos) fail(where, "holds a zero byte, so it is not CSV");
  csv_reader reader(text.name(), all.data(), all.data() + all.size());
  try {
    reader.read_header(io::ignore_extra_column, fields.images, fields.tokens);
    char* images = nullptr;
    char* tokens = nullptr;
    while (true) {
      ++where.record;
      if (!reader.read_row(images, tokens)) return;
      where.line = reader.get_file_line();
      samples.push_back(
          {parse_count(where, fields.images, images), parse_count(where, fields.tokens, tokens)});
      shown.update(where.record, 0);
    }
  } catch (io::error::missing_column_in_header const& error) {
    fail_missing(where, error.column_name, column_names(all));
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
