// SPDX-License-Identifier: Apache-2.0
// The index of a data set of litData, index.json, and the chunks that it names.
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
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace examples {

namespace {

/// Lists the leaves of the tree that an item is, in their order in the item. A leaf has the names
/// of the dictionaries on the way to it, or numbers where lists are.
class leaf_list {
 public:
  /// Errors: `input_error` for a tree that is not one of PyTorch's first version.
  leaf_list(std::string const& file, std::string const& spec) : file_(file) {
    auto const tree = parse_json(file, spec);
    if (!tree.is_array() || tree.size() != 2 || tree[0] != 1) refuse();
    add(tree[1], "", 0);
  }

  [[nodiscard]] std::vector<std::string> const& names() const { return names_; }

 private:
  [[noreturn]] void refuse() const {
    fail({file_}, "field \"config.data_spec\" is no tree of PyTorch of version 1");
  }

  void add(nlohmann::json const& node, std::string const& name, std::size_t depth) {
    constexpr std::size_t deepest = 100;
    bool const is_node = node.is_object() && node.contains("type") && node.contains("context") &&
                         node.contains("children_spec") && node["children_spec"].is_array();
    if (!is_node || depth > deepest) refuse();
    if (node["type"].is_null()) {
      names_.push_back(name);
      return;
    }
    auto const& children = node["children_spec"];
    nlohmann::json keys;
    if (node["type"] == "builtins.dict") {
      if (!node["context"].is_string()) refuse();
      keys = parse_json(file_, node["context"].get<std::string>());
      if (!keys.is_array() || keys.size() != children.size()) refuse();
    }
    for (std::size_t i = 0; i != children.size(); ++i) {
      bool const is_named = keys.is_array() && keys[i].is_string();
      std::string const own = is_named ? keys[i].get<std::string>() : std::to_string(i);
      add(children[i], name.empty() ? own : name + '.' + own, depth + 1);
    }
  }

  std::string const& file_;
  std::vector<std::string> names_;
};

/// Fails for chunks of another layout than that of items one after another.
void check_layout(json_fields const& config) {
  auto const refuse = [&](char const* name, char const* rule) {
    config.refuse(name, std::string(rule) + "; docs/reference/files.md shows how to convert it");
  };
  if (config.has("encryption")) refuse("encryption", "must be null");
  if (config.has("compression") && !config.text("compression").starts_with("zstd")) {
    refuse("compression", "must be null or \"zstd\"");
  }
  if (config.has("compression_level") && config.text("compression_level") != "chunk") {
    refuse("compression_level", "must be null or \"chunk\"");
  }
  if (config.has("item_loader") && config.text("item_loader") != "PyTreeLoader") {
    refuse("item_loader", "must be \"PyTreeLoader\"");
  }
}

std::vector<shard_column> leaves_of(json_fields const& config) {
  auto const& encodings = config.at("data_format");
  leaf_list const leaves(config.file(), config.text("data_spec"));
  std::vector<shard_column> columns;
  for (std::string const& name : leaves.names()) {
    std::size_t const i = columns.size();
    if (!encodings.is_array() || i == encodings.size() || !encodings[i].is_string()) break;
    columns.push_back({name, encodings[i].get<std::string>()});
  }
  if (columns.size() != leaves.names().size() || columns.size() != encodings.size()) {
    config.refuse("data_format", "must have a text for each of the " +
                                     std::to_string(leaves.names().size()) + " values of an item");
  }
  return columns;
}

/// The bytes of an element of the types of PyTorch, as litData numbers them.
constexpr std::array<std::size_t, 21> torch_bytes{4, 4, 8, 8, 8, 8, 16, 16, 2, 2, 2,
                                                  1, 1, 2, 2, 4, 4, 8,  8,  1, 2};

/// The bytes of an element of a type of NumPy or PyTorch; 0 for an unknown type.
std::size_t element_bytes(bool is_torch, std::uint64_t type) {
  if (is_torch) return type < torch_bytes.size() ? torch_bytes[type] : 0;
  return type < std::size(number_types) ? number_types[type].bytes : 0;
}

/// An integer of 4 bytes, which PyTorch's tensors have with high bytes first.
std::uint64_t extent_at(shard const& chunk, std::string_view value, std::size_t place,
                        bool is_high_first) {
  if (value.size() < 4 * (place + 1)) chunk.bytes().refuse("with an array that is cut");
  std::uint64_t result = 0;
  for (std::size_t i = 0; i != 4; ++i) {
    std::size_t const at = 4 * place + (is_high_first ? i : 3 - i);
    result = result << 8 | static_cast<unsigned char>(value[at]);
  }
  return result;
}

column_value decoded(shard const& chunk, shard_column const& column, std::string_view value) {
  std::string_view const encoding = column.encoding;
  if (encoding == "int") return {chunk.number("int64", value)};
  if (encoding == "float") return {chunk.number("float64", value)};
  std::string_view const kind = encoding.substr(0, encoding.find(':'));
  bool const is_torch = kind.ends_with("tensor");
  if (encoding == "numpy" || encoding == "tensor") {
    std::size_t const width = element_bytes(is_torch, extent_at(chunk, value, 0, is_torch));
    std::uint64_t const axes = extent_at(chunk, value, 1, is_torch);
    if (width == 0 || axes > value.size() / 4) chunk.bytes().refuse("with an unknown array");
    std::vector<std::uint64_t> extents;
    for (std::size_t i = 0; i != axes; ++i) {
      extents.push_back(extent_at(chunk, value, 2 + i, is_torch));
    }
    return {"[", chunk.first_extent(extents, width, value.size() - 4 * (2 + extents.size()))};
  }
  if (kind == "no_header_numpy" || kind == "no_header_tensor") {
    std::string_view const code = encoding.substr(std::min(kind.size() + 1, encoding.size()));
    std::uint64_t type = 0;
    auto const [end, error] = std::from_chars(code.data(), code.data() + code.size(), type);
    bool const is_type = error == std::errc{} && end == code.data() + code.size();
    std::size_t const width = is_type ? element_bytes(is_torch, type) : 0;
    if (width != 0 && value.size() % width == 0) return {"[", value.size() / width};
    chunk.bytes().refuse("with " + std::to_string(value.size()) + " bytes of the encoding " +
                         std::string(encoding));
  }
  chunk.bytes().refuse("whose value \"" + column.name + "\" has the encoding \"" + column.encoding +
                       "\", must be an integer, a float, or an array");
}

/// Behind an Arrow file and its size, if the items have only texts, numbers and lists of Python.
constexpr std::string_view arrow_footer("LDARW01\0", 8);

void read_footer(file_text const& text, std::size_t samples, record_fields const& fields,
                 position& where, dataset& data) {
  byte_view const bytes(text, "a chunk of litData");
  std::size_t const end = bytes.size() - arrow_footer.size();
  bytes.need(0, arrow_footer.size() + 4);
  std::size_t const size = bytes.integer<std::uint32_t>(end - 4);
  if (size > end - 4) bytes.refuse("that is cut before its rows of Arrow");
  // A copy begins at a place that suits every type.
  std::string const rows(bytes.part(end - 4 - size, size));
  position within{text.name()};
  std::size_t const before = data.samples.size();
  read_arrow(rows, fields, within, data);
  if (data.samples.size() - before != samples) {
    bytes.refuse("without the " + std::to_string(samples) + " samples of its index");
  }
  where.record += samples;
}

}  // namespace

void read_litdata(file_text const& text, record_fields const& fields, progress& shown,
                  dataset& data) {
  auto const content = parse_json(text.name(), text.view());
  json_fields const index(text.name(), "", content);
  json_fields const config = index.object("config");
  if (!index.at("chunks").is_array()) index.refuse("chunks", "must be a list");
  check_layout(config);
  bool const is_packed = config.has("compression");
  std::vector<shard_column> const columns = leaves_of(config);
  bool const is_nameless = columns.size() == 1 && columns[0].name.empty();
  if (is_nameless) fields.check_nameless({text.name()}, "a data set of litData");
  if (!is_nameless && fields.has_images()) data.kind = sample_kind::images_and_text;
  position where{text.name()};
  for (std::size_t i = 0; i != index.at("chunks").size(); ++i) {
    json_fields const about(text.name(), "chunks." + std::to_string(i), index.at("chunks")[i]);
    auto const path = std::filesystem::path(text.name()).parent_path() / about.text("filename");
    auto const samples = static_cast<std::size_t>(
        about.integer("chunk_size", 0, std::numeric_limits<std::int64_t>::max()));
    file_text const chunk_text(path, shown,
                               is_packed ? file_content::compressed : file_content::plain);
    if (chunk_text.view().ends_with(arrow_footer)) {
      read_footer(chunk_text, samples, fields, where, data);
      continue;
    }
    shard const chunk(chunk_text, "a chunk of litData", columns, samples);
    auto const decode = [&](shard_column const& column, std::string_view value) {
      return decoded(chunk, column, value);
    };
    if (!is_nameless) {
      append_samples(chunk, samples, columns, fields, where, decode, data);
      continue;
    }
    std::vector<std::string_view> values;
    for (std::size_t s = 0; s != samples; ++s) {
      ++where.record;
      chunk.find(s, values);
      column_value const value = decode(columns[0], values[0]);
      data.samples.push_back(
          {0, fields.tokens(where, value.elements ? std::to_string(*value.elements) : value.text)});
    }
  }
}

}  // namespace examples
