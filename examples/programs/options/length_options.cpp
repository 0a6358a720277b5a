// SPDX-License-Identifier: Apache-2.0
#include "length_options.hpp"

#include "decimal.hpp"
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
    {"detect", input_format::detect},     {"json", input_format::json},
    {"columns", input_format::columns},   {"manifest", input_format::manifest},
    {"jsonl", input_format::jsonl},       {"csv", input_format::csv},
    {"numbers", input_format::numbers},   {"npy", input_format::npy},
    {"megatron", input_format::megatron}, {"tar", input_format::tar},
    {"arrow", input_format::arrow},       {"mds", input_format::mds},
    {"litdata", input_format::litdata}};

CLI::Validator positive_decimal() {
  auto const check = [](std::string const& text) -> std::string {
    auto const factor = parse_decimal(text);
    if (factor && factor->digits != 0) return {};
    return "is " + text + ", must be a number above 0 of at most 19 digits";
  };
  return CLI::Validator(check, "");
}

/// Without files nothing is read, and none of these would act.
void add_image_options(CLI::App& app, length_options& options, CLI::Option* files) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto* const images = app.add_option("--image-field", options.fields.images,
                                      "Read the number of image tiles from this field")
                           ->type_name("NAME")
                           ->capture_default_str()
                           ->needs(files);
  auto* const text = app.add_flag_callback(
                            "--text", [&options] { options.fields.images.clear(); },
                            "Read no field of images, because all samples are text")
                         ->excludes(images)
                         ->needs(files);
  app.add_option("--tokens-per-tile", options.fields.tokens_per_tile,
                 "Add this number of tokens for each tile; 0 if the token field includes them")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(0, most))
      ->capture_default_str()
      ->excludes(text)
      ->needs(files);
  auto* const sizes = app.add_option("--image-size-fields", options.size_fields,
                                     "Compute the tiles of an image from these fields with its "
                                     "width and height in pixels, by the rule of InternVL with a "
                                     "thumbnail. Default: read the field of tiles")
                          ->type_name("WIDTH HEIGHT")
                          ->expected(2)
                          ->excludes(images)
                          ->excludes(text)
                          ->needs(files);
  app.add_option("--tile-size", options.fields.tiles.size, "Set the side of a tile in pixels")
      ->type_name("PIXELS")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str()
      ->needs(sizes);
  app.add_option("--max-tiles", options.fields.tiles.most,
                 "Limit the tiles of an image, not counting the thumbnail")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1024))
      ->capture_default_str()
      ->needs(sizes);
}

}  // namespace

CLI::Option* add_length_options(CLI::App& app, length_options& options, image_options images) {
  std::vector<std::string> names;
  for (auto const& one : formats) names.emplace_back(one.name);
  bool const has_images = images == image_options::offered;
  auto* const files =
      app.add_option("files", options.files,
                     "Read the samples from these files; - is the standard input. Formats: JSON (a "
                     "list of records or numbers, columns, a manifest of files, JSON lines), CSV "
                     "with a header, one number per line, NPY, a Megatron index, tar (WebDataset), "
                     "folders of MosaicML (MDS) and litData, and with Arrow C++ also Arrow, "
                     "Parquet and save_to_disk; also compressed by gzip. Samples are numbered "
                     "from 0 through all files. Default: a synthetic data set")
          ->type_name("FILE");
  auto* const tokens =
      app.add_option("--token-field", options.fields.tokens,
                     has_images ? "Read the number of tokens, including those of the images, from "
                                  "this field; a.b is field b of field a"
                                : "Read the number of tokens from this field; a.b is field b of "
                                  "field a")
          ->type_name("NAME")
          ->capture_default_str()
          ->needs(files);
  app.add_option("--length-of", options.list_field,
                 "Count the elements of the list in this field as tokens. Default: read a number "
                 "from the token field")
      ->type_name("NAME")
      ->excludes(tokens)
      ->needs(files);
  app.add_option("--token-scale", options.fields.token_scale,
                 "Multiply the number of the token field, which may have a fraction, and round up, "
                 "as for seconds or bytes. Default: the number is an integer of tokens")
      ->type_name("FACTOR")
      ->check(positive_decimal())
      ->needs(files);
  app.add_flag("--megatron-documents", options.fields.are_documents,
               "Read the documents of a Megatron index as samples. Default: its sequences")
      ->needs(files);
  app.add_option(
         "--tar-member", options.fields.tar_member,
         "Count the bytes of the member with this extension of each sample of a tar archive "
         "as tokens; see --token-scale. Default: read the fields of the member .json")
      ->type_name("EXTENSION")
      ->needs(files);
  if (has_images) {
    add_image_options(app, options, files);
  } else {
    options.fields.images.clear();
  }
  // The names are in the text, because one line of the help is too short for them.
  app.add_option("--format", options.format,
                 "Read the files in this format: " + CLI::detail::join(names, ", ") +
                     ". Detect chooses by extension and content")
      ->type_name("NAME")
      ->check(CLI::IsMember(names).description(""))
      ->capture_default_str()
      ->needs(files);
  return files;
}

dataset read_lengths(length_options const& options, progress& shown) {
  field_names fields = options.fields;
  if (!options.list_field.empty()) {
    fields.tokens = options.list_field;
    fields.is_list = true;
  }
  if (!options.size_fields.empty()) {
    fields.width = options.size_fields[0];
    fields.height = options.size_fields[1];
    if (fields.width == fields.height) {
      throw std::runtime_error("--image-size-fields are both " + fields.width);
    }
  }
  for (char& c : fields.tar_member) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (fields.tar_member.starts_with('.')) fields.tar_member.erase(0, 1);
  for (std::string const* name : {&fields.images, &fields.width, &fields.height}) {
    if (name->empty() || *name != fields.tokens) continue;
    throw std::runtime_error((fields.is_list ? "--length-of is " : "--token-field is ") + *name +
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
