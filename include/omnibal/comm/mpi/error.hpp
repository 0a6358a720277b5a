#pragma once

/// \file
/// Errors of MPI as exceptions.

#include <omnibal/check.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>

#include <mpi.h>

namespace omnibal::inline v0::mpi {

/// What a call of MPI failed with. The text has the call, MPI's text, the code, the file and the
/// line.
class error : public std::runtime_error {
 public:
  error(int code, char const* call, char const* file, int line)
      : std::runtime_error(text(code, call, file, line)), code_(code) {}

  /// MPI's error code.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  [[nodiscard]] static std::string text(int code, char const* call, char const* file, int line) {
    char reason[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS) length = 0;
    return std::string(call) + ": " + std::string(reason, static_cast<std::size_t>(length)) +
           " (code " + omnibal::detail::to_text(code) + ") at " + file + ":" +
           omnibal::detail::to_text(line);
  }

  int code_;
};

}  // namespace omnibal::inline v0::mpi

namespace omnibal::inline v0::mpi::detail {

/// Throws unless MPI succeeded; `call` is its name.
inline void check(int code, char const* call, char const* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (code != MPI_SUCCESS) throw error(code, call, file, line);
}

}  // namespace omnibal::inline v0::mpi::detail
