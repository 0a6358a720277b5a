// SPDX-License-Identifier: Apache-2.0
#include "readers.hpp"
#include "text_lines.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace examples {

namespace {

[[noreturn]] void fail_header(file_text const& text, std::string const& problem) {
  fail({text.name()}, "is a NumPy array " + problem);
}

/// What stands behind `'key':` in the header of an array.
std::string_view entry(file_text const& text, std::string_view header, std::string_view key) {
  std::size_t const found = header.find(key);
  std::size_t const begin = header.find_first_not_of(": ", found + key.size());
  if (found == header.npos || begin == header.npos) fail_header(text, "with a damaged header");
  return header.substr(begin);
}

/// The header of an array, and what follows it.
std::pair<std::string_view, std::string_view> split_header(file_text const& text) {
  std::string_view const all = text.view();
  if (!all.starts_with("\x93NUMPY")) fail({text.name()}, "is no NumPy array");
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(all[i]); };
  if (all.size() > 6 && (byte(6) < 1 || byte(6) > 3)) {
    fail_header(text, "of version " + std::to_string(byte(6)) + ", must have 1, 2 or 3");
  }
  bool const is_short = all.size() >= 10 && byte(6) == 1;
  std::size_t const begin = is_short ? 10 : 12;
  if (all.size() < begin) fail_header(text, "that is truncated in its header");
  std::size_t size = byte(8) + std::size_t{byte(9)} * 256;
  if (!is_short) size += (std::size_t{byte(10)} + std::size_t{byte(11)} * 256) << 16;
  if (all.size() - begin < size) fail_header(text, "that is truncated in its header");
  return {all.substr(begin, size), all.substr(begin + size)};
}

struct npy_shape {
  std::size_t rows = 0;
  std::size_t columns = 1;
};

/// The extents that a tuple of Python such as `(3, 2)` or `(3,)` has; none where it is no such.
std::vector<std::size_t> extents_of(std::string_view tuple) {
  constexpr char const* blank = " ";
  std::vector<std::size_t> extents;
  if (tuple.size() < 2 || tuple.front() != '(' || tuple.back() != ')') return {};
  tuple = tuple.substr(1, tuple.size() - 2);
  bool has_comma = false;
  while (true) {
    tuple.remove_prefix(std::min(tuple.find_first_not_of(blank), tuple.size()));
    if (tuple.empty()) break;
    if (!extents.empty() && !has_comma) return {};
    std::size_t extent = 0;
    auto const [end, error] = std::from_chars(tuple.data(), tuple.data() + tuple.size(), extent);
    if (error != std::errc{}) return {};
    extents.push_back(extent);
    tuple.remove_prefix(static_cast<std::size_t>(end - tuple.data()));
    // Python 2 writes (3L,).
    if (tuple.starts_with('L')) tuple.remove_prefix(1);
    tuple.remove_prefix(std::min(tuple.find_first_not_of(blank), tuple.size()));
    has_comma = tuple.starts_with(',');
    if (has_comma) tuple.remove_prefix(1);
  }
  // Python writes (3,) for one extent; (3) is a number.
  if (extents.size() == 1 && !has_comma) return {};
  return extents;
}

npy_shape shape_of(file_text const& text, std::string_view header) {
  std::string_view const tuple = entry(text, header, "'shape'");
  std::string const shown(tuple.substr(0, std::min(tuple.find(')'), tuple.find('\n')) + 1));
  npy_shape shape;
  auto const extents = extents_of(shown);
  bool const is_list = extents.size() == 1;
  bool const is_table = extents.size() == 2 && (extents[1] == 1 || extents[1] == 2);
  if (!is_list && !is_table) {
    fail_header(text, "of shape " + shown +
                          ", must have (n,), tokens, or (n, 2), images and tokens of each sample");
  }
  shape.rows = extents[0];
  if (is_table) shape.columns = extents[1];
  bool const by_columns = entry(text, header, "'fortran_order'").starts_with("True");
  if (by_columns && shape.columns != 1) {
    fail_header(text, "in Fortran's order; numpy.ascontiguousarray changes that");
  }
  return shape;
}

struct npy_integer {
  std::size_t bytes;
  bool is_signed;
  bool is_big_endian;
};

npy_integer type_of(file_text const& text, std::string_view header) {
  std::string_view const descr = entry(text, header, "'descr'");
  // A structured type is a list of names and types.
  bool const is_structured = descr.starts_with('[');
  std::size_t const end = is_structured ? descr.rfind(']') : descr.find('\'', 1);
  std::string const shown(descr.substr(0, end == descr.npos ? end : end + 1));
  if (is_structured) {
    fail_header(text, "of the structured type " + shown +
                          ", must have integers; numpy.stack of its columns makes one of them");
  }
  bool const is_integer = shown.size() == 5 && (shown[2] == 'i' || shown[2] == 'u');
  std::size_t const bytes = is_integer ? static_cast<std::size_t>(shown[3] - '0') : 0;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
    fail_header(text,
                "of type " + shown + ", must have integers, such as those of astype('int64')");
  }
  bool const is_native = shown[1] == '=';
  bool const is_big = is_native ? std::endian::native == std::endian::big : shown[1] == '>';
  return {bytes, shown[2] == 'i', is_big};
}

/// Nothing where the integer is negative or above 2^63 - 1.
std::int64_t read_integer(position const& where, char const* from, npy_integer const& type) {
  unsigned char bytes[8]{};
  std::memcpy(bytes, from, type.bytes);
  if (type.is_big_endian) std::reverse(bytes, bytes + type.bytes);
  std::uint64_t value = 0;
  for (std::size_t i = type.bytes; i-- != 0;) value = value << 8 | bytes[i];
  bool const is_negative = type.is_signed && (value >> (8 * type.bytes - 1)) != 0;
  if (is_negative || value > static_cast<std::uint64_t>(INT64_MAX)) {
    std::uint64_t const above = type.bytes == 8 ? 0 : ~std::uint64_t{0} << (8 * type.bytes);
    fail(where, "is " +
                    (is_negative ? std::to_string(static_cast<std::int64_t>(value | above))
                                 : std::to_string(value)) +
                    ", must be from 0 to 9223372036854775807");
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace

void read_numbers(file_text const& text, record_fields const& fields, progress& shown,
                  dataset& data) {
  fields.check_nameless({text.name()}, "a list of numbers");
  constexpr std::string_view blank = " \t\r";
  char const line_end = line_end_of(text.view());
  position where{text.name()};
  std::string_view const all = text.view();
  for (std::size_t begin = 0; begin < all.size();) {
    ++where.line;
    std::size_t const end = std::min(all.find(line_end, begin), all.size());
    std::string_view line = all.substr(begin, end - begin);
    begin = end + 1;
    std::size_t const first = line.find_first_not_of(blank);
    if (first == line.npos) continue;
    ++where.record;
    line = line.substr(first, line.find_last_not_of(blank) + 1 - first);
    data.samples.push_back({0, fields.tokens(where, line)});
    shown.update(end, all.size());
  }
}

void read_npy(file_text const& text, record_fields const& fields, dataset& data) {
  fields.check_nameless({text.name()}, "a NumPy array");
  auto const [header, body] = split_header(text);
  npy_integer const type = type_of(text, header);
  npy_shape const shape = shape_of(text, header);
  std::size_t const row_bytes = shape.columns * type.bytes;
  if (body.size() / row_bytes != shape.rows || body.size() % row_bytes != 0) {
    fail_header(text, "of " + std::to_string(shape.rows) + " rows of " + std::to_string(row_bytes) +
                          " bytes, but has " + std::to_string(body.size()) + " bytes of them");
  }
  bool const has_images = shape.columns == 2 && fields.has_images();
  if (has_images) data.kind = sample_kind::images_and_text;
  position where{text.name()};
  for (std::size_t row = 0; row != shape.rows; ++row) {
    ++where.record;
    record_fields::counts counts{};
    // Without images the first column of two is one that nobody asked for.
    std::size_t const first = has_images ? 0 : shape.columns - 1;
    for (std::size_t column = first; column != shape.columns; ++column) {
      counts[column - first] =
          read_integer(where, body.data() + row * row_bytes + column * type.bytes, type);
    }
    std::int64_t& tokens = counts[has_images ? 1 : 0];
    if (fields.has_scale()) tokens = fields.tokens(where, std::to_string(tokens));
    data.samples.push_back(has_images ? fields.make(where, counts) : sample{0, tokens});
  }
}

}  // namespace examples
