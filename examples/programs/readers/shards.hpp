// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Files of samples whose columns are bytes, as MosaicML and litData write them.

#include "byte_view.hpp"
#include "readers.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A type of numbers by its name in NumPy.
struct number_type {
  std::string_view name;
  std::size_t bytes;
};

/// In the order in which litData counts them.
inline constexpr number_type number_types[]{
    {"int8", 1},   {"int16", 2},  {"int32", 4},   {"int64", 8},   {"uint8", 1},  {"uint16", 2},
    {"uint32", 4}, {"uint64", 8}, {"float16", 2}, {"float32", 4}, {"float64", 8}};

struct shard_column {
  std::string name;
  /// The name that the format has for the type of the values.
  std::string encoding;
  /// The bytes of each value, if they are equal.
  std::optional<std::size_t> bytes{};
};

/// A file of samples: their number, and where each begins and the last one ends (4 bytes each);
/// then the samples, each with the sizes of its columns without a size of their own (4 bytes each)
/// before the columns.
class shard {
 public:
  /// `kind` is the file in messages. Errors: `input_error` for a file that does not have `samples`
  /// samples in order.
  shard(file_text const& text, std::string_view kind, std::span<shard_column const> columns,
        std::size_t samples);

  [[nodiscard]] byte_view const& bytes() const { return bytes_; }

  /// Finds the bytes of each column of a sample. Errors: `input_error` for columns that do not fill
  /// the sample.
  void find(std::size_t sample, std::vector<std::string_view>& values) const;

  /// The text of a number, `-` and digits or as `decimal_text` writes it. Errors: `input_error` for
  /// a value of another size than that of the type. Precondition: `is_number(type)`.
  [[nodiscard]] std::string number(std::string_view type, std::string_view value) const;

  /// Fails for an array of other bytes than the product of its extents.
  [[nodiscard]] std::size_t first_extent(std::span<std::uint64_t const> extents,
                                         std::size_t element_bytes, std::size_t bytes) const;

 private:
  [[nodiscard]] std::size_t place(std::size_t sample) const {
    return bytes_.integer<std::uint32_t>(4 + 4 * sample);
  }

  byte_view bytes_;
  std::span<shard_column const> columns_;
};

/// The bytes of a type of numbers; nothing for an unknown one.
[[nodiscard]] std::optional<std::size_t> bytes_of_number(std::string_view type);

/// True for types whose numbers `shard::number` reads: all but those of 16 bits with a fraction.
[[nodiscard]] bool is_number(std::string_view type);

/// The columns that the fields name, in the order of the fields. Errors: `missing_field`, and
/// `input_error` for a column that occurs twice.
[[nodiscard]] std::vector<std::size_t> find_columns(position const& where,
                                                    record_fields const& fields,
                                                    std::span<shard_column const> columns);

/// Appends the samples of a shard; `decode(column, bytes)` returns a `column_value`.
template <class Decode>
void append_samples(shard const& file, std::size_t samples, std::span<shard_column const> columns,
                    record_fields const& fields, position& where, Decode const& decode,
                    dataset& data) {
  auto const chosen = find_columns(where, fields, columns);
  std::vector<std::string_view> values;
  for (std::size_t s = 0; s != samples; ++s) {
    ++where.record;
    file.find(s, values);
    record_fields::counts counts{};
    for (std::size_t place = 0; place != chosen.size(); ++place) {
      column_value const value = decode(columns[chosen[place]], values[chosen[place]]);
      counts[place] = fields.count(where, place, {value.text, value.elements});
    }
    data.samples.push_back(fields.make(where, counts));
  }
}

}  // namespace examples
