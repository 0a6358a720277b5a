#pragma once

/// \file
/// Files that appear together or not at all.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace examples {

/// Writes files under temporary names and gives them their names at the end. What has not been
/// committed is removed, with the directories made for these files.
class staged_files {
 public:
  /// Makes the directory if need be. Errors: `std::runtime_error`, as in all functions below.
  explicit staged_files(std::filesystem::path directory);
  staged_files(staged_files const&) = delete;
  staged_files& operator=(staged_files const&) = delete;
  ~staged_files();

  void write(std::string const& name, std::function<void(std::ostream&)> const& body);

  /// Renames all files in the order of `write`. The file written last is the sign that the others
  /// are complete: an old one of its name is removed first.
  void commit();

 private:
  struct staged {
    std::filesystem::path temporary;
    std::filesystem::path final;
  };

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> made_directories_;
  std::vector<staged> files_;
};

}  // namespace examples
