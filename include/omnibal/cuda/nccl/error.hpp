// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Errors of NCCL as exceptions.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/library.hpp>

#include <stdexcept>
#include <string>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

/// The error of a call of NCCL that failed, at once or in the background. The text has NCCL's
/// description of the code, its last message, the file and the line.
class error : public std::runtime_error {
 public:
  /// Creates an error of `comm`, the communicator that failed, or null if there is none.
  explicit error(ncclResult_t code, ncclComm_t comm = nullptr,
                 gpu::location caller = gpu::location::here())
      : std::runtime_error(text(code, comm, caller)), code_(code), caller_(caller) {}

  [[nodiscard]] ncclResult_t code() const noexcept { return code_; }
  [[nodiscard]] char const* file() const noexcept { return caller_.file; }
  [[nodiscard]] unsigned line() const noexcept { return caller_.line; }

 private:
  [[nodiscard]] static std::string text(ncclResult_t code, ncclComm_t comm, gpu::location caller) {
    std::string result =
        omnibal::detail::joined_text("NCCL: ", detail::calls().get_error_string(code));
    char const* const last = detail::calls().get_last_error(comm);
    if (last != nullptr && *last != '\0') result.append(": ").append(last);
    if (code == ncclRemoteError) result += " (another rank has failed or left)";
    return omnibal::detail::joined_text(result, " (code ", static_cast<int>(code), ") [",
                                        caller.file, ":", caller.line, "]");
  }

  ncclResult_t code_;
  gpu::location caller_;
};

/// The error of a rank if another rank did not arrive within the allowed time.
class timeout : public communication_error {
 public:
  using communication_error::communication_error;
};

/// The error of ranks that reach each other but cannot share a communicator: their versions of NCCL
/// or their numbers of ranks differ, or a rank is present twice.
class mismatch : public communication_error {
 public:
  using communication_error::communication_error;
};

/// Throws `error` unless NCCL succeeded or continues in the background, as for communicators whose
/// calls do not block.
inline void check(ncclResult_t code, ncclComm_t comm = nullptr,
                  gpu::location caller = gpu::location::here()) {
  if (code == ncclSuccess || code == ncclInProgress) [[likely]] {
    return;
  }
  throw error(code, comm, caller);
}

}  // namespace omnibal::inline v0::nccl
