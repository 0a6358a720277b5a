// SPDX-License-Identifier: Apache-2.0
#include "csv_records.hpp"

#include "text_lines.hpp"

namespace examples {

namespace {

constexpr char quote = '"';

}  // namespace

csv_splitter::csv_splitter(file_text const& text, char separator)
    : all_(text.view()), separator_(separator), line_end_(line_end_of(text.view())) {
  if (all_.find('\0') != std::string_view::npos) {
    fail({text.name()}, "holds a zero byte, so it is not CSV");
  }
}

std::size_t csv_splitter::after_blanks(std::size_t place) const {
  auto const is_blank = [&](char c) {
    return c == ' ' || (c == '\r' && line_end_ == '\n') || (c == '\t' && separator_ != '\t');
  };
  while (place != all_.size() && is_blank(all_[place])) ++place;
  return place;
}

std::size_t csv_splitter::end_of_value(position const& where, std::size_t begin) {
  std::size_t place = after_blanks(begin);
  if (separator_ == '\t' || ends_line(place) || all_[place] != quote) {
    while (!ends_line(place) && all_[place] != separator_) ++place;
    return place;
  }
  for (++place;; ++place) {
    if (place == all_.size()) fail(where, "a quote is not closed");
    if (all_[place] == line_end_) ++line_;
    if (all_[place] != quote) continue;
    bool const is_doubled = place + 1 != all_.size() && all_[place + 1] == quote;
    if (!is_doubled) break;
    ++place;
  }
  place = after_blanks(place + 1);
  if (!ends_line(place) && all_[place] != separator_) {
    fail(where, "text follows a closing quote: `" + std::string(all_.substr(place, 1)) +
                    "`; a quote inside of quotes is doubled");
  }
  return place;
}

bool csv_splitter::next(position& where, std::vector<std::string_view>& values) {
  values.clear();
  while (begin_ != all_.size()) {
    std::size_t const first = after_blanks(begin_);
    if (!ends_line(first)) break;
    begin_ = std::min(first + 1, all_.size());
    ++line_;
  }
  if (begin_ == all_.size()) return false;
  // The header is no record.
  where.record = record_++;
  where.line = line_;
  while (true) {
    std::size_t const end = end_of_value(where, begin_);
    values.push_back(all_.substr(begin_, end - begin_));
    bool const is_last = ends_line(end);
    begin_ = std::min(end + 1, all_.size());
    if (!is_last) {
      // A separator at the end of the file: an empty value follows it.
      if (end + 1 == all_.size()) {
        values.emplace_back();
        return true;
      }
      continue;
    }
    ++line_;
    return true;
  }
}

std::string_view csv_splitter::meaning(std::string_view value, std::string& room) {
  constexpr std::string_view blank = " \t\r";
  std::size_t const first = value.find_first_not_of(blank);
  if (first == value.npos) return {};
  value = value.substr(first, value.find_last_not_of(blank) + 1 - first);
  if (value.size() < 2 || value.front() != quote || value.back() != quote) return value;
  value = value.substr(1, value.size() - 2);
  if (value.find(quote) == value.npos) return value;
  room.clear();
  for (std::size_t i = 0; i != value.size(); ++i) {
    room.push_back(value[i]);
    bool const is_doubled = value[i] == quote && i + 1 != value.size() && value[i + 1] == quote;
    if (is_doubled) ++i;
  }
  return room;
}

std::vector<std::string> column_names(file_text const& text, char separator) {
  csv_splitter splitter(text, separator);
  position where{text.name()};
  std::vector<std::string_view> cells;
  splitter.next(where, cells);
  std::vector<std::string> names;
  std::string room;
  for (std::string_view const cell : cells) {
    names.emplace_back(csv_splitter::meaning(cell, room));
  }
  return names;
}

std::vector<std::size_t> places_of(file_text const& text, std::vector<std::string> const& names,
                                   std::vector<std::string_view> const& columns) {
  std::vector<std::size_t> places;
  for (std::string_view const column : columns) {
    auto const found = std::ranges::find(names, column);
    if (found == names.end()) fail_missing({text.name()}, column, names);
    if (std::ranges::count(names, column) != 1) {
      fail({text.name()}, "field \"" + std::string(column) + "\" occurs twice in the header");
    }
    places.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return places;
}

void fail_columns(position const& where, char separator, std::size_t count, std::size_t expected) {
  std::string problem =
      count < expected ? "has fewer columns than the header" : "has more columns than the header";
  problem += ": " + std::to_string(count) + ", not " + std::to_string(expected);
  if (separator == '\t') {
    problem += "; beside tabulators a quote is a letter, so no value has a tabulator or line break";
  }
  fail(where, problem);
}

}  // namespace examples
