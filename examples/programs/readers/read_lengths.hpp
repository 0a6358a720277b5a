// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lengths of samples from files: records of JSON or CSV, columns, plain lists, NumPy's arrays,
/// indexes of data sets.

#include "dataset.hpp"
#include "image_tiles.hpp"
#include "progress.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace examples {

enum class input_format {
  /// By extension and content.
  detect,
  /// A list of objects, or of numbers of tokens.
  json,
  /// An object of lists, one for each field.
  columns,
  /// An object of entries that name length files: {name: {"token_lengths": path}}.
  manifest,
  /// One object per line.
  jsonl,
  /// A header with the names of the columns, then one record per line; the separator is that of the
  /// header: a tabulator, a semicolon or a comma.
  csv,
  /// One number of tokens per line.
  numbers,
  /// Integers of shape (n,), tokens, or (n, 2), images and tokens.
  npy,
  /// The index of a Megatron corpus.
  megatron,
  /// A shard of WebDataset.
  tar,
  /// A Parquet file, an Arrow file (Feather) or an Arrow stream.
  arrow,
  /// The index of a data set of MosaicML, which names shards.
  mds,
  /// The index of a data set of litData, which names chunks.
  litdata
};

/// The fields, or columns, that hold the counts. Others are ignored. In JSON, a name that no field
/// has may be a path: `stats.tokens` is the field `tokens` of the object in the field `stats`.
struct field_names {
  /// Empty: no field; no sample has images.
  std::string images = "vit_num";
  std::string tokens = "token_num";
  /// Where they are not empty, pixels of the image of a sample, whose tiles take the place of
  /// `images`.
  std::string width{};
  std::string height{};
  tile_rule tiles{};
  /// What each tile adds to the tokens of the field.
  std::int64_t tokens_per_tile = 0;
  /// True: the tokens are the elements of the list in the field `tokens`.
  bool is_list = false;
  /// Where it is not empty, a factor of the number in the field `tokens`, which may have a
  /// fraction. The exact product is rounded up.
  std::string token_scale{};
  /// True: the samples of a Megatron corpus are its documents, else its sequences.
  bool are_documents = false;
  /// Where it is not empty, the extension of the members of a tar archive whose bytes are the
  /// tokens, in small letters. Else the members `.json` have the fields.
  std::string tar_member{};
};

/// Appends the samples of a file, or of the files of a manifest, to `data`. `-` is the standard
/// input. A file compressed by gzip is read as what it holds. A folder is read by its index.json
/// or, as `save_to_disk` writes it, by its state.json.
///
/// A relative path in a manifest is looked up beside the manifest, then in the working directory.
/// Errors: `input_error` for a file that cannot be read, is truncated, of another kind, or holds no
/// record, and for a record without the fields or with anything but integers from 0 to 2^63 - 1 in
/// them. Nothing is skipped: after an error `data` is not to be used.
void read_lengths(std::filesystem::path const& path, input_format format, field_names const& fields,
                  progress& shown, dataset& data);

}  // namespace examples
