// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Errors of the CUDA runtime as exceptions.

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// A place in the source. A default argument `location::here()` is the place of the call.
struct location {
  char const* file = "";
  unsigned line = 0;

  [[nodiscard]] static constexpr location here(char const* file = __builtin_FILE(),
                                               unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

/// The error of a failed call of the CUDA runtime. The text has the name and the description of the
/// code, the file and the line. If no driver or no device is found, the text names what is missing.
class error : public std::runtime_error {
 public:
  explicit error(cudaError_t code, location caller = location::here())
      : std::runtime_error(text(code, caller)), code_(code), caller_(caller) {}

  [[nodiscard]] cudaError_t code() const noexcept { return code_; }
  [[nodiscard]] char const* file() const noexcept { return caller_.file; }
  [[nodiscard]] unsigned line() const noexcept { return caller_.line; }

 private:
  [[nodiscard]] static std::string text(cudaError_t code, location caller) {
    std::string result = "CUDA: ";
    result.append(cudaGetErrorName(code)).append(": ").append(cudaGetErrorString(code));
    if (code == cudaErrorInsufficientDriver) {
      result += " (or there is no NVIDIA driver on this machine)";
    } else if (code == cudaErrorNoDevice) {
      result += " (the driver shows no device to this program)";
    } else if (code == cudaErrorNoKernelImageForDevice) {
      result += " (compile for the architecture of this device)";
    } else if (code == cudaErrorLaunchFailure) {
      result += " (also where a call without a word for faults met one)";
    }
    return result.append(" [").append(caller.file).append(":") + std::to_string(caller.line) + "]";
  }

  cudaError_t code_;
  location caller_;
};

/// Throws `error` unless `code` is `cudaSuccess`. Clears the error, so that the next call does not
/// report it again, unless CUDA keeps it because the device has failed.
inline void check(cudaError_t code, location caller = location::here()) {
  if (code == cudaSuccess) [[likely]] {
    return;
  }
  static_cast<void>(cudaGetLastError());
  throw error(code, caller);
}

}  // namespace omnibal::inline v0::gpu
