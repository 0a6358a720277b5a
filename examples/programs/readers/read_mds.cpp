// SPDX-License-Identifier: Apache-2.0
// The index of a data set of MosaicML (MDS), index.json, and the shards that it names.
#include "input_error.hpp"
#include "json_fields.hpp"
#include "readers.hpp"
#include "shards.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace examples {

namespace {

std::size_t count_in(json_fields const& object, char const* name) {
  return static_cast<std::size_t>(
      object.integer(name, 0, std::numeric_limits<std::int64_t>::max()));
}

std::vector<shard_column> columns_of(json_fields const& about) {
  auto const list = [&](char const* name) -> nlohmann::json const& {
    auto const& value = about.at(name);
    if (!value.is_array()) about.refuse(name, "must be a list");
    return value;
  };
  auto const& names = list("column_names");
  auto const& encodings = list("column_encodings");
  auto const& sizes = list("column_sizes");
  std::vector<shard_column> columns;
  for (std::size_t i = 0; i != names.size(); ++i) {
    bool const is_good = i < encodings.size() && i < sizes.size() && names[i].is_string() &&
                         encodings[i].is_string() &&
                         (sizes[i].is_null() || sizes[i].is_number_unsigned());
    if (!is_good) break;
    columns.push_back({names[i].get<std::string>(), encodings[i].get<std::string>()});
    if (!sizes[i].is_null()) columns.back().bytes = sizes[i].get<std::size_t>();
  }
  if (columns.size() != encodings.size() || columns.size() != sizes.size()) {
    fail({about.file()}, about.path() +
                             " must have a name, an encoding and a size, or null, for each "
                             "column");
  }
  return columns;
}

/// The bytes of a shard, which may be compressed.
file_text load_shard(json_fields const& about, progress& shown) {
  auto const folder = std::filesystem::path(about.file()).parent_path();
  json_fields const raw = about.object("raw_data");
  auto const path = folder / raw.text("basename");
  std::size_t const bytes = count_in(raw, "bytes");
  std::error_code ignored;
  bool const is_packed = about.has("zip_data") && !std::filesystem::exists(path, ignored);
  file_text shard_text(is_packed ? folder / about.object("zip_data").text("basename") : path, shown,
                       is_packed ? file_content::compressed : file_content::plain);
  if (shard_text.view().size() != bytes) {
    fail({shard_text.name()}, "has " + std::to_string(shard_text.view().size()) +
                                  " bytes, must have " + std::to_string(bytes));
  }
  return shard_text;
}

/// The type and the extents of arrays, which stand in the encoding or before each array.
struct array_encoding {
  /// `ndarray`, `ndarray:int32` or `ndarray:int32:2,3`. Errors: `input_error`.
  array_encoding(position const& where, std::string_view encoding) {
    std::string_view rest = encoding;
    auto const next = [&](char separator) {
      std::string_view const word = rest.substr(0, rest.find(separator));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      return word;
    };
    next(':');
    bool is_good = true;
    if (!rest.empty()) {
      element_bytes = bytes_of_number(next(':')).value_or(0);
      is_good = element_bytes != 0;
    }
    while (is_good && !rest.empty()) {
      std::string_view const word = next(',');
      auto const [end, error] =
          std::from_chars(word.data(), word.data() + word.size(), extents.emplace_back());
      is_good = error == std::errc{} && end == word.data() + word.size();
    }
    if (!is_good) {
      fail(where, "has the unknown encoding \"" + std::string(encoding) + "\" of an array");
    }
  }

  [[nodiscard]] std::size_t length(shard const& file, std::string_view value) const {
    std::size_t place = 0;
    auto const byte = [&] {
      if (place == value.size()) file.bytes().refuse("with an array that is cut");
      return static_cast<unsigned char>(value[place++]);
    };
    std::size_t width = element_bytes;
    if (width == 0) {
      // The bits of an element and, in the lowest bits, its kind.
      constexpr std::array codes{8, 9, 16, 17, 18, 32, 33, 34, 64, 65, 66};
      unsigned char const code = byte();
      if (std::ranges::find(codes, code) == codes.end()) {
        file.bytes().refuse("with an array of the unknown type " + std::to_string(code));
      }
      width = code / std::size_t{8};
    }
    std::vector<std::uint64_t> own = extents;
    if (own.empty()) {
      unsigned const code = byte();
      for (unsigned axis = 0; axis != code >> 2; ++axis) {
        std::uint64_t extent = 0;
        for (unsigned i = 0; i != 1U << (code & 3); ++i) {
          extent |= std::uint64_t{byte()} << (8 * i);
        }
        own.push_back(extent);
      }
    }
    return file.first_extent(own, width, value.size() - place);
  }

  std::size_t element_bytes = 0;
  std::vector<std::uint64_t> extents;
};

}  // namespace

void read_mds(file_text const& text, record_fields const& fields, progress& shown, dataset& data) {
  auto const content = parse_json(text.name(), text.view());
  json_fields const index(text.name(), "", content);
  if (!index.at("shards").is_array()) index.refuse("shards", "must be a list");
  if (fields.has_images()) data.kind = sample_kind::images_and_text;
  position where{text.name()};
  for (std::size_t i = 0; i != index.at("shards").size(); ++i) {
    json_fields const about(text.name(), "shards." + std::to_string(i), index.at("shards")[i]);
    if (about.text("format") != "mds") about.refuse("format", "must be \"mds\"");
    (void)about.integer("version", 2, 2);
    std::vector<shard_column> const columns = columns_of(about);
    file_text const shard_text = load_shard(about, shown);
    std::size_t const samples = count_in(about, "samples");
    shard const file(shard_text, "a shard of MosaicML", columns, samples);
    auto const decode = [&](shard_column const& column, std::string_view value) -> column_value {
      std::string_view const encoding = column.encoding;
      if (encoding.substr(0, encoding.find(':')) == "ndarray") {
        return {"[", array_encoding({text.name()}, encoding).length(file, value)};
      }
      std::string_view const type = encoding == "int" ? "int64" : encoding;
      if (is_number(type)) return {file.number(type, value)};
      fail({text.name()}, "column \"" + column.name + "\" has the encoding \"" + column.encoding +
                              "\", must be integers, floats of 32 or 64 bits, or arrays");
    };
    append_samples(file, samples, columns, fields, where, decode, data);
  }
}

}  // namespace examples
