// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The options with which every program reads length files.

#include "dataset.hpp"
#include "progress.hpp"
#include "read_lengths.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace examples {

struct length_options {
  /// `-` is the standard input; none: the program makes samples of its own.
  std::vector<std::string> files;
  std::string format = "detect";
  field_names fields;
  /// The field of a list whose elements are the tokens; empty: a field has their number.
  std::string list_field;
  /// The names of the fields with width and height of an image; empty where they are not given.
  std::vector<std::string> size_fields;
};

enum class image_options { none, offered };

/// Adds the files and their options to a command line; returns the option of the files, which those
/// of other inputs exclude. Without `image_options` samples have tokens alone.
CLI::Option* add_length_options(CLI::App& app, length_options& options, image_options images);

/// The samples of all files, which are numbered from zero through all of them. Errors: as
/// `read_lengths`, and `std::runtime_error` for options that contradict each other.
[[nodiscard]] dataset read_lengths(length_options const& options, progress& shown);

}  // namespace examples
