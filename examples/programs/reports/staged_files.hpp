// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Files that appear together or not at all.

#include <filesystem>
#include <functional>
#include <ostream>
#include <vector>

namespace examples {

/// Writes files under temporary names and gives them their names at the end. What has not been
/// committed is removed, with the directories made for these files.
class staged_files {
 public:
  /// A closed pipe is an error of the stream from now on: as a signal it would end the program
  /// before these files are removed.
  staged_files();
  staged_files(staged_files const&) = delete;
  staged_files& operator=(staged_files const&) = delete;
  ~staged_files();

  /// Makes the directory of the file if need be. Errors: `std::runtime_error`, also where another
  /// file has this path, or a directory stands there.
  void write(std::filesystem::path const& path, std::function<void(std::ostream&)> const& body);

  /// Renames all files in the order of `write`. The file written last is the sign that the others
  /// are complete: an old one of its name is removed first. Errors: `std::runtime_error`.
  void commit();

 private:
  struct staged {
    std::filesystem::path temporary;
    std::filesystem::path final;
  };

  void make_directory(std::filesystem::path const& directory);

  /// The innermost ones first.
  std::vector<std::filesystem::path> made_directories_;
  std::vector<staged> files_;
};

}  // namespace examples
