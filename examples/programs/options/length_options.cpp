// SPDX-License-Identifier: Apache-2.0
#include "length_options.hpp"

#include "option_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

struct format_name {
  std::string_view name;
  input_format format;
};

constexpr format_name formats[]{
    {"detect", input_format::detect},   {"json", input_format::json},
    {"columns", input_format::columns}, {"manifest", input_format::manifest},
    {"jsonl", input_format::jsonl},     {"csv", input_format::csv},
    {"numbers", input_format::numbers}, {"npy", input_format::npy}};

/// Without files nothing is read, and none of these would act.
void add_image_options(CLI::App& app, length_options& options, CLI::Option* files) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto* const images =
      app.add_option("--image-field", options.fields.images, "Field with the number of image tiles")
          ->type_name("NAME")
          ->capture_default_str()
          ->needs(files);
  auto* const text = app.add_flag_callback(
                            "--text", [&options] { options.fields.images.clear(); },
                            "Samples are text: no field of images is read")
                         ->excludes(images)
                         ->needs(files);
  auto* const sizes = app.add_option("--image-size-fields", options.size_fields,
                                     "Fields with the pixels of a sample's image, from which its\n"
                                     "tiles follow as in InternVL, a thumbnail included")
                          ->type_name("WIDTH HEIGHT")
                          ->expected(2)
                          ->excludes(images)
                          ->excludes(text)
                          ->needs(files);
  app.add_option("--tile-size", options.fields.tiles.size, "Pixels along a side of a tile")
      ->type_name("PIXELS")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str()
      ->needs(sizes);
  app.add_option("--max-tiles", options.fields.tiles.most,
                 "Most tiles of an image, the thumbnail not counted")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1024))
      ->capture_default_str()
      ->needs(sizes);
  app.add_option("--tokens-per-tile", options.fields.tokens_per_tile,
                 "What each tile adds to the tokens of the field; 0: the field has\n"
                 "them already")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(0, most))
      ->capture_default_str()
      ->excludes(text)
      ->needs(files);
}

}  // namespace

CLI::Option* add_length_options(CLI::App& app, length_options& options, image_options images) {
  std::vector<std::string> names;
  for (auto const& one : formats) names.emplace_back(one.name);
  auto* const files =
      app.add_option("files", options.files,
                     "Length files, - for the standard input: JSON (a list of records or\n"
                     "numbers, columns, a manifest of files, lines), CSV with a header, one\n"
                     "number per line, NPY; also compressed by gzip. Samples are numbered\n"
                     "from zero through all files. Without files a synthetic data set is\n"
                     "taken")
          ->type_name("FILE");
  app.add_option("--format", options.format, "Format of the files; detect: by extension, content")
      ->type_name("NAME")
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->needs(files);
  if (images == image_options::offered) {
    add_image_options(app, options, files);
  } else {
    options.fields.images.clear();
  }
  app.add_option("--token-field", options.fields.tokens,
                 images == image_options::offered
                     ? "Field with the number of tokens, those of the images included"
                     : "Field with the number of tokens")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(files);
  return files;
}

dataset read_lengths(length_options const& options, progress& shown) {
  field_names fields = options.fields;
  if (!options.size_fields.empty()) {
    fields.width = options.size_fields[0];
    fields.height = options.size_fields[1];
    if (fields.width == fields.height) {
      throw std::runtime_error("--image-size-fields are both " + fields.width);
    }
  }
  for (std::string const* name : {&fields.images, &fields.width, &fields.height}) {
    if (name->empty() || *name != fields.tokens) continue;
    throw std::runtime_error("--token-field is " + *name +
                             ", which is a field of images too; --text says that there is none");
  }
  auto const format = std::ranges::find(formats, options.format, &format_name::name)->format;
  dataset data;
  for (std::string const& file : options.files) read_lengths(file, format, fields, shown, data);
  if (fields.tokens_per_tile != 0 && data.kind == sample_kind::text) {
    throw std::runtime_error("--tokens-per-tile is " + std::to_string(fields.tokens_per_tile) +
                             ", but no file has image tiles");
  }
  return data;
}

}  // namespace examples
