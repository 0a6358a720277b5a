// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the programs for a device share: they compare results with those of the host, and return 77
// where there is no device.

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace test {

inline constexpr int skipped = 77;

/// Says why, where there is no device that this program can use.
inline bool has_device() {
  int devices = 0;
  cudaError_t const status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices != 0) return true;
  std::printf("skipped: there is no CUDA device: %s\n",
              status == cudaSuccess ? "the driver has none" : cudaGetErrorString(status));
  return false;
}

/// True under a tool that makes kernels thousands of times slower: large sizes are left out.
inline bool is_small() { return std::getenv("OMNIBAL_SMALL") != nullptr; }

/// Counts what differs.
class comparison {
 public:
  /// Says when the comparisons of this name begin.
  void begin(std::string const& name) const {
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start_;
    std::printf("%6.1f s  %s\n", seconds.count(), name.c_str());
    std::fflush(stdout);
  }

  /// True for each of many comparisons that are alike; where OMNIBAL_FEW is set for one of eleven,
  /// so that each value of a loop that does not run a multiple of eleven times comes about.
  [[nodiscard]] bool takes_next() {
    std::size_t const distance = std::getenv("OMNIBAL_FEW") != nullptr ? 11 : 1;
    return offered_++ % distance == 0;
  }

  void expect(bool holds, std::string const& what) {
    ++checks_;
    if (holds) return;
    ++failures_;
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  }

  template <class Left, class Right>
  void same(std::vector<Left> const& device, std::vector<Right> const& host,
            std::string const& what) {
    std::size_t first = 0;
    while (first < device.size() && first < host.size() && device[first] == host[first]) ++first;
    bool const equal = first == device.size() && first == host.size();
    expect(equal, what + ": device and host differ at " + std::to_string(first) + " of " +
                      std::to_string(device.size()) + " and " + std::to_string(host.size()));
  }

  [[nodiscard]] int result() const {
    std::printf("%zu comparisons, %zu failed\n", checks_, failures_);
    return failures_ == 0 && checks_ != 0 ? 0 : 1;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t offered_ = 0;
  std::size_t checks_ = 0;
  std::size_t failures_ = 0;
};

/// Runs `body(comparison)`, unless there is no device.
template <class Body>
int device_program(Body const& body) {
  if (!has_device()) return skipped;
  comparison results;
  try {
    body(results);
  } catch (std::exception const& error) {
    results.expect(false, error.what());
  }
  return results.result();
}

}  // namespace test
