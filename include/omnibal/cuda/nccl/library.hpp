// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The library of NCCL, which a program finds when it runs.

#include <omnibal/check.hpp>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <dlfcn.h>
#include <nccl.h>

namespace omnibal::inline v0::nccl {

/// The error of a process that has no usable NCCL: the library is missing, lacks a function or has
/// another version. The text names the file, and the function or the version.
class library_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The functions of NCCL that the headers of this folder call.
struct library_functions {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclGetLastError) get_last_error = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&::ncclCommSplit) comm_split = nullptr;
  decltype(&::ncclCommFinalize) comm_finalize = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&::ncclCommCount) comm_count = nullptr;
  decltype(&::ncclCommCuDevice) comm_cu_device = nullptr;
  decltype(&::ncclCommUserRank) comm_user_rank = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) recv = nullptr;

  [[nodiscard]] bool operator==(library_functions const&) const = default;
};

/// Returns the functions of the NCCL that the program is linked with, for `use_library`. Only a
/// program that calls this function must be linked with NCCL.
[[nodiscard]] inline library_functions linked_functions() {
  return {.get_version = &::ncclGetVersion,
          .get_error_string = &::ncclGetErrorString,
          .get_last_error = &::ncclGetLastError,
          .get_unique_id = &::ncclGetUniqueId,
          .comm_init_rank_config = &::ncclCommInitRankConfig,
          .comm_split = &::ncclCommSplit,
          .comm_finalize = &::ncclCommFinalize,
          .comm_destroy = &::ncclCommDestroy,
          .comm_abort = &::ncclCommAbort,
          .comm_get_async_error = &::ncclCommGetAsyncError,
          .comm_count = &::ncclCommCount,
          .comm_cu_device = &::ncclCommCuDevice,
          .comm_user_rank = &::ncclCommUserRank,
          .group_start = &::ncclGroupStart,
          .group_end = &::ncclGroupEnd,
          .all_gather = &::ncclAllGather,
          .send = &::ncclSend,
          .recv = &::ncclRecv};
}

/// The NCCL that this process uses. All functions are present, and the version was checked.
struct library {
  library_functions functions;
  /// The version as `ncclGetVersion` writes it, such as 22809 for 2.28.9.
  int version = 0;
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// The first version with all functions of the table.
inline constexpr int oldest_version = NCCL_VERSION(2, 18, 0);
inline constexpr std::string_view loaded_library_name = "nccl::loaded_library";
inline constexpr char const* library_variable = "OMNIBAL_NCCL_LIBRARY";
inline constexpr char const* usual_library = "libnccl.so.2";

[[nodiscard]] constexpr int major_version(int version) {
  return version >= 10000 ? version / 10000 : version / 1000;
}

/// Returns a version as NCCL writes it: 2.28.9.
[[nodiscard]] inline std::string version_text(std::int32_t version) {
  int const rest = version >= 10000 ? version % 10000 : version % 1000;
  return omnibal::detail::joined_text(major_version(version), ".", rest / 100, ".", rest % 100);
}

/// Calls `visit(name, function)` for each function, with its name in the library.
template <class Functions, class Visit>
void for_each_function(Functions& functions, Visit const& visit) {
  visit("ncclGetVersion", functions.get_version);
  visit("ncclGetErrorString", functions.get_error_string);
  visit("ncclGetLastError", functions.get_last_error);
  visit("ncclGetUniqueId", functions.get_unique_id);
  visit("ncclCommInitRankConfig", functions.comm_init_rank_config);
  visit("ncclCommSplit", functions.comm_split);
  visit("ncclCommFinalize", functions.comm_finalize);
  visit("ncclCommDestroy", functions.comm_destroy);
  visit("ncclCommAbort", functions.comm_abort);
  visit("ncclCommGetAsyncError", functions.comm_get_async_error);
  visit("ncclCommCount", functions.comm_count);
  visit("ncclCommCuDevice", functions.comm_cu_device);
  visit("ncclCommUserRank", functions.comm_user_rank);
  visit("ncclGroupStart", functions.group_start);
  visit("ncclGroupEnd", functions.group_end);
  visit("ncclAllGather", functions.all_gather);
  visit("ncclSend", functions.send);
  visit("ncclRecv", functions.recv);
}

/// Throws `library_error` for the file of a library.
template <class... Part>
[[noreturn]] void throw_library(std::string_view function, std::string_view file, Part... part) {
  throw library_error(omnibal::detail::message(function, "NCCL from '", file, "' ", part...));
}

/// Returns the file that contains a function: a shared library, or the program itself.
template <class Function>
[[nodiscard]] std::string file_of(Function* function) {
  Dl_info found{};
  bool const is_found =
      function != nullptr && ::dladdr(reinterpret_cast<void*>(function), &found) != 0;
  return is_found && found.dli_fname != nullptr ? found.dli_fname : "this program";
}

/// Returns the library of these functions. Throws `library_error`, which names `file`, if the
/// version does not fit or if a function is null. The version comes first, because it explains why
/// functions are missing.
[[nodiscard]] inline library checked_library(std::string_view function,
                                             library_functions const& functions,
                                             std::string_view file) {
  int version = 0;
  if (functions.get_version != nullptr) {
    if (ncclResult_t const code = functions.get_version(&version); code != ncclSuccess) {
      throw_library(function, file, "does not tell its version: ncclGetVersion returns ",
                    static_cast<int>(code));
    }
    if (major_version(version) != NCCL_MAJOR) {
      throw_library(function, file, "has version ", version_text(version),
                    ", must have the major version of the header, which is ",
                    version_text(NCCL_VERSION_CODE));
    }
    if (version < oldest_version) {
      throw_library(function, file, "has version ", version_text(version), ", must be at least ",
                    version_text(oldest_version));
    }
  }
  for_each_function(functions, [&](char const* name, auto* found) {
    if (found == nullptr) throw_library(function, file, "has no function ", name);
  });
  return {functions, version};
}

/// Returns the functions of a library that is open. Missing functions are null.
[[nodiscard]] inline library_functions functions_of(void* opened) {
  library_functions result;
  for_each_function(result, [&](char const* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(opened, name));
  });
  return result;
}

/// Opens the file of a library and checks its functions. The file stays open if they can be used.
[[nodiscard]] inline library open_library(char const* file) {
  // All symbols are bound now, so that what the file itself lacks is an error here.
  void* const opened = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    char const* const reason = ::dlerror();
    throw_library(loaded_library_name, file,
                  "cannot be loaded: ", reason != nullptr ? reason : "no reason is known",
                  "; install NCCL ", version_text(oldest_version), " or later, or set ",
                  library_variable, " to its file");
  }
  try {
    return checked_library(loaded_library_name, functions_of(opened), file);
  } catch (...) {
    ::dlclose(opened);
    throw;
  }
}

/// Finds the NCCL of this process, or else loads it; see `loaded_library`.
[[nodiscard]] inline library find_library() {
  // Functions of one version do not work on communicators of another. Therefore, a library that is
  // present is never replaced.
  if (::dlsym(RTLD_DEFAULT, "ncclGetVersion") != nullptr) {
    library_functions const found = functions_of(RTLD_DEFAULT);
    return checked_library(loaded_library_name, found, file_of(found.get_version));
  }
  // Python hides the functions of the libraries that it loads.
  if (void* const present = ::dlopen(usual_library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    library_functions const found = functions_of(present);
    return checked_library(loaded_library_name, found, file_of(found.get_version));
  }
  char const* const given = std::getenv(library_variable);
  return open_library(given != nullptr && *given != '\0' ? given : usual_library);
}

/// Returns the library of this process. The first call that succeeds decides: it takes `given`, or
/// finds the library if `given` is null. Never changes afterwards.
[[nodiscard]] inline library const& library_of_process(library const* given = nullptr) {
  static library const result = given != nullptr ? *given : find_library();
  return result;
}

/// Returns the functions of NCCL for a call.
[[nodiscard]] inline library_functions const& calls() { return library_of_process().functions; }

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

/// Returns the NCCL that this process uses, as every call of this folder does. The first call finds
/// the library in one of four places, in this order. First are the functions of `use_library`.
/// Second is a library that the process has loaded already, such as the library that the program is
/// linked with or that PyTorch has loaded. Third is the file that the variable
/// `OMNIBAL_NCCL_LIBRARY` names, and last is `libnccl.so.2` of the system. A program that chooses
/// the file itself opens it first, by `dlopen` with `RTLD_GLOBAL`.
///
/// The library must have all functions of `library_functions`, the major version of the header that
/// the program was compiled with, and at least version 2.18. It stays loaded until the process
/// ends. After a failure the next call tries again. Thread-safe. Complexity: constant after the
/// first call. Errors: `library_error`.
[[nodiscard]] inline library const& loaded_library() { return detail::library_of_process(); }

/// Uses the functions of the program, such as `linked_functions()` of a NCCL that is linked
/// statically, whose functions the process cannot find by name. Call it before all other functions
/// of this folder. A second call with the same functions does nothing. A shared library with hidden
/// symbols has its own table, and makes this call itself. Errors: `library_error` if a
/// function is null, the version does not fit, or the process already uses another library.
inline void use_library(library_functions const& functions) {
  constexpr std::string_view name = "nccl::use_library";
  library const given =
      detail::checked_library(name, functions, detail::file_of(functions.get_version));
  library const& used = detail::library_of_process(&given);
  if (used.functions == functions) return;
  throw library_error(omnibal::detail::message(name, "the process already uses NCCL from '",
                                               detail::file_of(used.functions.get_version),
                                               "'; call use_library before that"));
}

/// Returns the reason why this process cannot use NCCL, as the text of `library_error`. The text is
/// empty if it can.
[[nodiscard]] inline std::string why_unavailable() {
  try {
    static_cast<void>(loaded_library());
    return {};
  } catch (library_error const& error) {
    return error.what();
  }
}

/// Returns true if this process can use NCCL. Says nothing about drivers and devices.
[[nodiscard]] inline bool is_available() { return why_unavailable().empty(); }

/// Returns the file that contains the NCCL that this process uses: a shared library, or the program
/// itself. Errors: the errors of `loaded_library`.
[[nodiscard]] inline std::string library_file() {
  return detail::file_of(loaded_library().functions.get_version);
}

}  // namespace omnibal::inline v0::nccl
