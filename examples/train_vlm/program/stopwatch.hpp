// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Seconds of the clock and of the processor, and their median.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <vector>

namespace train_vlm {

/// Runs from when it is made.
class stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(clock::now() - start_).count();
  }
  /// Of all threads of this process.
  [[nodiscard]] double processor_seconds() const { return processor_now() - processor_start_; }

 private:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] static double processor_now() {
    std::timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  clock::time_point start_ = clock::now();
  double processor_start_ = processor_now();
};

[[nodiscard]] inline double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace train_vlm
