// SPDX-License-Identifier: Apache-2.0
#include "staged_files.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>

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

staged_files::staged_files() { std::signal(SIGPIPE, SIG_IGN); }

staged_files::~staged_files() {
  std::error_code ignored;
  for (staged const& file : files_) fs::remove(file.temporary, ignored);
  for (fs::path const& path : made_directories_) fs::remove(path, ignored);
}

void staged_files::write(fs::path const& path, std::function<void(std::ostream&)> const& body) {
  fs::path const whole = fs::absolute(path).lexically_normal();
  for (staged const& other : files_) {
    if (fs::absolute(other.final).lexically_normal() == whole) {
      fail_write(path, "another output has this name");
    }
  }
  // A rename would fail or, worse, replace what is no file.
  std::error_code unreachable;
  auto const status = fs::symlink_status(path, unreachable);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_symlink(status)) {
    fail_write(path, fs::is_directory(status) ? "it is a directory" : "it is not a regular file");
  }
  make_directory(path.parent_path());
  std::string const name = path.filename().string();
  fs::path const temporary =
      path.parent_path() / ("." + name + "." + std::to_string(::getpid()) + ".partial");
  files_.push_back({temporary, path});
  errno = 0;
  std::ofstream out(temporary, std::ios::binary);
  if (out) body(out);
  out.close();
  if (!out) fail_write(path, errno != 0 ? std::strerror(errno) : "unknown error");
}

void staged_files::make_directory(fs::path const& directory) {
  if (directory.empty()) return;
  auto const missing = missing_directories(directory);
  made_directories_.insert(made_directories_.begin(), missing.begin(), missing.end());
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory)) {
    fail_write(directory, error ? error.message() : "it is not a directory");
  }
}

void staged_files::commit() {
  std::error_code error;
  if (!files_.empty() && !fs::is_directory(fs::symlink_status(files_.back().final, error))) {
    fs::remove(files_.back().final, error);
  }
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
