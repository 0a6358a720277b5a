// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A whole input file in memory.

#include "progress.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace examples {

enum class file_content {
  /// A text, which may be compressed and may begin with a byte order mark.
  text,
  /// Bytes that mean themselves, even if they begin as a compressed file does.
  plain,
  /// Bytes that are compressed.
  compressed
};

/// The bytes of a file and, behind them, the spaces that a vectorized parser may read.
class file_text {
 public:
  /// Reads a file or a pipe, `-` being the standard input; what gzip or, where libzstd is
  /// installed, zstd has compressed is expanded, and a byte order mark dropped. Errors:
  /// `input_error`, also for other bytes behind those that were compressed.
  file_text(std::filesystem::path const& path, progress& shown,
            file_content content = file_content::text);

  [[nodiscard]] std::string_view view() const {
    return std::string_view(bytes_).substr(begin_, size_);
  }

  /// The bytes that may be read from the start of `view()`.
  [[nodiscard]] std::size_t readable() const { return bytes_.size() - begin_; }

  [[nodiscard]] std::string const& name() const { return name_; }

 private:
  std::string name_;
  std::string bytes_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace examples
