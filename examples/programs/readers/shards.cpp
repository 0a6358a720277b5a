// SPDX-License-Identifier: Apache-2.0
#include "shards.hpp"

#include "decimal.hpp"
#include "input_error.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace examples {

namespace {

std::uint64_t low_bytes_first(std::string_view value) {
  std::uint64_t result = 0;
  for (std::size_t i = value.size(); i-- != 0;) {
    result = result << 8 | static_cast<unsigned char>(value[i]);
  }
  return result;
}

}  // namespace

std::optional<std::size_t> bytes_of_number(std::string_view type) {
  auto const* const found = std::ranges::find(number_types, type, &number_type::name);
  if (found == std::ranges::end(number_types)) return {};
  return found->bytes;
}

bool is_number(std::string_view type) { return type != "float16" && bytes_of_number(type); }

shard::shard(file_text const& text, std::string_view kind, std::span<shard_column const> columns,
             std::size_t samples)
    : bytes_(text, kind), columns_(columns) {
  std::string const expected = std::to_string(samples) + " samples of its index";
  bool const fits = samples < bytes_.size() / 4 && bytes_.size() - 4 * samples >= 8;
  if (!fits || bytes_.integer<std::uint32_t>(0) != samples) {
    bytes_.refuse("without the " + expected);
  }
  bool is_ordered = place(0) >= 4 * (samples + 2) && place(samples) == bytes_.size();
  for (std::size_t s = 0; s != samples; ++s) is_ordered = is_ordered && place(s) <= place(s + 1);
  if (!is_ordered) bytes_.refuse("that does not have the " + expected + " in order up to its end");
}

void shard::find(std::size_t sample, std::vector<std::string_view>& values) const {
  std::string_view const whole = bytes_.part(place(sample), place(sample + 1) - place(sample));
  auto const own_sizes = static_cast<std::size_t>(std::ranges::count_if(
      columns_, [](shard_column const& column) { return !column.bytes.has_value(); }));
  std::size_t next_size = 0;
  std::size_t begin = 4 * own_sizes;
  values.clear();
  for (shard_column const& column : columns_) {
    if (begin > whole.size()) break;
    std::size_t const size =
        column.bytes ? *column.bytes
                     : static_cast<std::size_t>(low_bytes_first(whole.substr(4 * next_size++, 4)));
    if (size > whole.size() - begin) break;
    values.push_back(whole.substr(begin, size));
    begin += size;
  }
  if (values.size() == columns_.size() && begin == whole.size()) return;
  bytes_.refuse("whose sample " + std::to_string(sample) + " has " + std::to_string(whole.size()) +
                " bytes, which its columns do not fill");
}

std::string shard::number(std::string_view type, std::string_view value) const {
  std::size_t const bytes = bytes_of_number(type).value_or(0);
  if (value.size() != bytes) {
    bytes_.refuse("with a number of " + std::to_string(value.size()) + " bytes, must have " +
                  std::to_string(bytes) + " as " + std::string(type));
  }
  std::uint64_t const bits = low_bytes_first(value);
  if (type == "float64") return decimal_text(std::bit_cast<double>(bits));
  if (type == "float32") {
    return decimal_text(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  if (type.starts_with('u')) return std::to_string(bits);
  // The highest bit is the sign.
  std::uint64_t const sign = std::uint64_t{1} << (8 * bytes - 1);
  return std::to_string(static_cast<std::int64_t>((bits ^ sign) - sign));
}

std::size_t shard::first_extent(std::span<std::uint64_t const> extents, std::size_t element_bytes,
                                std::size_t bytes) const {
  std::uint64_t product = element_bytes;
  bool fits = !extents.empty();
  for (std::uint64_t const extent : extents) {
    fits = fits && !__builtin_mul_overflow(product, extent, &product);
  }
  if (!fits || product != bytes) {
    bytes_.refuse("with an array whose extents do not fit to its " + std::to_string(bytes) +
                  " bytes");
  }
  return static_cast<std::size_t>(extents.front());
}

std::vector<std::size_t> find_columns(position const& where, record_fields const& fields,
                                      std::span<shard_column const> columns) {
  std::vector<std::string> present;
  for (shard_column const& column : columns) present.push_back(column.name);
  std::vector<std::size_t> result;
  for (std::string const& name : fields.names()) {
    auto const found = std::ranges::find(present, name);
    if (found == present.end()) fail_missing({where.file}, name, present);
    if (std::ranges::count(present, name) > 1) {
      fail({where.file}, "column \"" + name + "\" occurs twice");
    }
    result.push_back(static_cast<std::size_t>(found - present.begin()));
  }
  return result;
}

}  // namespace examples
