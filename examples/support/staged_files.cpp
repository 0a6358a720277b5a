#include "staged_files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace examples {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_write(fs::path const& path, std::string const& reason) {
  throw std::runtime_error("cannot write " + path.string() + ": " + reason);
}

/// The directories that `path` still lacks, itself first.
std::vector<fs::path> missing_directories(fs::path path) {
  std::vector<fs::path> missing;
  if (!path.has_filename()) path = path.parent_path();
  for (; !path.empty() && !fs::exists(path); path = path.parent_path()) missing.push_back(path);
  return missing;
}

}  // namespace

staged_files::staged_files(fs::path directory) : directory_(std::move(directory)) {
  auto const missing = missing_directories(directory_);
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error || !fs::is_directory(directory_)) {
    fail_write(directory_, error ? error.message() : "it is not a directory");
  }
  made_directories_ = missing;
}

staged_files::~staged_files() {
  std::error_code ignored;
  for (staged const& file : files_) fs::remove(file.temporary, ignored);
  for (fs::path const& path : made_directories_) fs::remove(path, ignored);
}

void staged_files::write(std::string const& name, std::function<void(std::ostream&)> const& body) {
  staged const file{directory_ / ("." + name + "." + std::to_string(::getpid()) + ".partial"),
                    directory_ / name};
  files_.push_back(file);
  errno = 0;
  std::ofstream out(file.temporary, std::ios::binary);
  if (out) body(out);
  out.close();
  if (!out) fail_write(file.final, errno != 0 ? std::strerror(errno) : "unknown error");
}

void staged_files::commit() {
  std::error_code error;
  if (!files_.empty()) fs::remove(files_.back().final, error);
  for (staged const& file : files_) {
    fs::rename(file.temporary, file.final, error);
    if (!error) continue;
    std::error_code ignored;
    for (staged const& other : files_) fs::remove(other.final, ignored);
    fail_write(file.final, error.message());
  }
  files_.clear();
  made_directories_.clear();
}

}  // namespace examples
