// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <cstdio>
#include <utility>

#include <unistd.h>

namespace examples {

progress::progress(visibility visible) : visible_(visible) {}

progress::~progress() { end(); }

void progress::begin(std::string task) {
  if (visible_ == visibility::hidden) return;
  task_ = std::move(task);
  printed_ = clock::now();
  print(task_ + " ...");
}

void progress::end() {
  if (width_ == 0) return;
  print("");
  std::fputc('\r', stderr);
  std::fflush(stderr);
  width_ = 0;
}

void progress::refresh(std::size_t done, std::size_t total) {
  constexpr auto interval = std::chrono::milliseconds(100);
  auto const now = clock::now();
  if (now - printed_ < interval) return;
  printed_ = now;
  std::string line = task_ + " ... ";
  if (total == 0) {
    line += std::to_string(done);
  } else {
    line += std::to_string(
                static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total))) +
            " %";
  }
  print(line);
}

void progress::print(std::string const& line) {
  std::string padded = line;
  if (padded.size() < width_) padded.resize(width_, ' ');
  std::fprintf(stderr, "\r%s", padded.c_str());
  std::fflush(stderr);
  width_ = line.size();
}

visibility shown_on_terminal() {
  return ::isatty(STDERR_FILENO) != 0 ? visibility::shown : visibility::hidden;
}

}  // namespace examples
