#pragma once

/// \file
/// Lengths of samples from files: JSON lists, manifests of them, JSON lines and CSV.

#include "dataset.hpp"
#include "progress.hpp"

#include <filesystem>
#include <string>

namespace examples {

enum class input_format {
  /// By extension and content.
  detect,
  /// A list of objects.
  json,
  /// An object of entries that name length files: {name: {"token_lengths": path}}.
  manifest,
  /// One object per line.
  jsonl,
  /// A header with the names of the columns, then one record per line.
  csv
};

/// The fields, or columns, that hold the counts. Others are ignored.
struct field_names {
  /// Empty: no field; no sample has images.
  std::string images = "vit_num";
  std::string tokens = "token_num";
};

/// Appends the samples of a file, or of the files of a manifest, to `data`.
///
/// A relative path in a manifest is looked up beside the manifest, then in the working directory.
/// Errors: `input_error` for a file that cannot be read, is truncated or holds no record, and for a
/// record without the fields or with anything but integers from 0 to 2^63 - 1 in them. Nothing is
/// skipped: after an error `data` is not to be used.
void read_lengths(std::filesystem::path const& path, input_format format, field_names const& fields,
                  progress& shown, dataset& data);

}  // namespace examples
