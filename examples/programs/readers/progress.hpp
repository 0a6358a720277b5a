// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One line on stderr that says what lasts and how far it is.

#include <chrono>
#include <cstddef>
#include <string>

namespace examples {

enum class visibility { hidden, shown };

/// Overwrites its own line and removes it when it ends, so that the output stays clean.
class progress {
 public:
  explicit progress(visibility visible);
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress();

  /// Names what happens from now on.
  void begin(std::string task);

  /// Says how much of the task is done, `total` being zero where it is not known. Cheap, so that it
  /// may be called once per record.
  void update(std::size_t done, std::size_t total) {
    if (visible_ == visibility::shown) refresh(done, total);
  }

  /// Removes the line.
  void end();

 private:
  using clock = std::chrono::steady_clock;

  void refresh(std::size_t done, std::size_t total);
  void print(std::string const& line);

  visibility visible_;
  std::string task_;
  clock::time_point printed_{};
  std::size_t width_ = 0;
};

/// Shown where stderr is a terminal.
[[nodiscard]] visibility shown_on_terminal();

}  // namespace examples
