// SPDX-License-Identifier: Apache-2.0
// The table of the functions of NCCL: the checks of a library, and which library a process uses.
// The stand-in is the library of this program, as if it were linked statically.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "stand_in.hpp"

#include <omnibal/cuda/nccl/library.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using nccl::detail::checked_library;
using nccl::detail::open_library;
using test::contains;

template <class Call>
std::string refusal_of(Call const& call) {
  return test::text_of<nccl::library_error>([&] { static_cast<void>(call()); });
}

/// The text for a library of this version, or empty if it is accepted.
std::string refusal_of_version(int version) {
  stand_in::set_version(version);
  auto const text =
      refusal_of([] { return checked_library("f", nccl::linked_functions(), "libx.so"); });
  stand_in::set_version(NCCL_VERSION_CODE);
  return text;
}

template <class Function>
void const* address_of(Function* function) {
  return reinterpret_cast<void const*>(function);
}

TEST_CASE("each name stands for its function", "[nccl][library]") {
  std::map<std::string, void const*> const expected = {
      {"ncclGetVersion", address_of(&::ncclGetVersion)},
      {"ncclGetErrorString", address_of(&::ncclGetErrorString)},
      {"ncclGetLastError", address_of(&::ncclGetLastError)},
      {"ncclGetUniqueId", address_of(&::ncclGetUniqueId)},
      {"ncclCommInitRankConfig", address_of(&::ncclCommInitRankConfig)},
      {"ncclCommSplit", address_of(&::ncclCommSplit)},
      {"ncclCommFinalize", address_of(&::ncclCommFinalize)},
      {"ncclCommDestroy", address_of(&::ncclCommDestroy)},
      {"ncclCommAbort", address_of(&::ncclCommAbort)},
      {"ncclCommGetAsyncError", address_of(&::ncclCommGetAsyncError)},
      {"ncclCommCount", address_of(&::ncclCommCount)},
      {"ncclCommCuDevice", address_of(&::ncclCommCuDevice)},
      {"ncclCommUserRank", address_of(&::ncclCommUserRank)},
      {"ncclGroupStart", address_of(&::ncclGroupStart)},
      {"ncclGroupEnd", address_of(&::ncclGroupEnd)},
      {"ncclAllGather", address_of(&::ncclAllGather)},
      {"ncclSend", address_of(&::ncclSend)},
      {"ncclRecv", address_of(&::ncclRecv)}};
  std::map<std::string, void const*> found;
  nccl::library_functions const linked = nccl::linked_functions();
  nccl::detail::for_each_function(
      linked, [&](char const* name, auto* function) { found[name] = address_of(function); });
  CHECK(found == expected);
  // All members have a name.
  CHECK(found.size() == sizeof(linked) / sizeof(linked.send));
}

TEST_CASE("all calls use the library that the program has chosen", "[nccl][library]") {
  CHECK(nccl::is_available());
  CHECK(nccl::why_unavailable().empty());
  CHECK(nccl::loaded_library().functions == nccl::linked_functions());
  CHECK(nccl::loaded_library().version == NCCL_VERSION_CODE);
  CHECK(&nccl::loaded_library() == &nccl::loaded_library());
  CHECK(nccl::library_file() == nccl::detail::file_of(&::ncclSend));
  CHECK_NOTHROW(nccl::use_library(nccl::linked_functions()));

  nccl::library_functions other = nccl::linked_functions();
  other.group_end = &::ncclGroupStart;
  auto const text = refusal_of([&] {
    nccl::use_library(other);
    return 0;
  });
  CHECK(contains(text, "omnibal::nccl::use_library: the process already uses NCCL from '"));
  CHECK(contains(text, nccl::library_file()));
  CHECK(nccl::loaded_library().functions == nccl::linked_functions());
}

TEST_CASE("a missing function is named", "[nccl][library]") {
  std::vector<std::string> names;
  auto all = nccl::linked_functions();
  nccl::detail::for_each_function(all, [&](char const* name, auto&) { names.emplace_back(name); });
  for (std::string const& missing : names) {
    nccl::library_functions functions = nccl::linked_functions();
    nccl::detail::for_each_function(functions, [&](char const* name, auto& function) {
      if (name == missing) function = nullptr;
    });
    CAPTURE(missing);
    CHECK(refusal_of([&] { return checked_library("nccl::f", functions, "libx.so"); }) ==
          "omnibal::nccl::f: NCCL from 'libx.so' has no function " + missing);
    CHECK(contains(refusal_of([&] {
                     nccl::use_library(functions);
                     return 0;
                   }),
                   "omnibal::nccl::use_library: NCCL from '"));
  }
}

TEST_CASE("a version that does not fit is named with the one that would", "[nccl][library]") {
  auto const major = std::to_string(NCCL_MAJOR);
  // From 2.9 on versions have two digits for the minor number.
  struct {
    int version;
    char const* text;
    char const* rule;
  } const cases[] = {
      {NCCL_VERSION(2, 17, 99), "2.17.99", "must be at least 2.18.0"},
      {NCCL_VERSION(2, 10, 3), "2.10.3", "must be at least 2.18.0"},
      {NCCL_VERSION(2, 8, 4), "2.8.4", "must be at least 2.18.0"},
      {30000, "3.0.0", "must have the major version of the header, which is "},
      {NCCL_VERSION(1, 3, 4), "1.3.4", "must have the major version of the header, which is "},
  };
  for (auto const& each : cases) {
    auto const text = refusal_of_version(each.version);
    CAPTURE(text);
    CHECK(contains(text,
                   "NCCL from 'libx.so' has version " + std::string(each.text) + ", " + each.rule));
  }
  CHECK(refusal_of_version(NCCL_VERSION(2, 18, 0)).empty());
  CHECK(refusal_of_version(NCCL_VERSION(2, 99, 0)).empty());
  CHECK(contains(refusal_of_version(30000), nccl::detail::version_text(NCCL_VERSION_CODE)));
}

TEST_CASE("an old library is told by its version, not by what it lacks", "[nccl][library]") {
  nccl::library_functions functions = nccl::linked_functions();
  functions.comm_split = nullptr;
  stand_in::set_version(NCCL_VERSION(2, 16, 2));
  auto const text = refusal_of([&] { return checked_library("f", functions, "libx.so"); });
  stand_in::set_version(NCCL_VERSION_CODE);
  CHECK(contains(text, "has version 2.16.2, must be at least 2.18.0"));
}

TEST_CASE("a library that does not tell its version is refused", "[nccl][library]") {
  nccl::library_functions functions = nccl::linked_functions();
  functions.get_version = [](int*) { return ncclSystemError; };
  CHECK(contains(refusal_of([&] { return checked_library("f", functions, "libx.so"); }),
                 "does not tell its version: ncclGetVersion returns 2"));
}

TEST_CASE("a file that is not there is named with the variable", "[nccl][library]") {
  auto const text = refusal_of([] { return open_library("/nothing/libnccl.so.2"); });
  CAPTURE(text);
  CHECK(contains(text, "NCCL from '/nothing/libnccl.so.2' cannot be loaded: "));
  CHECK(contains(text, "No such file"));
  CHECK(contains(text, "install NCCL 2.18.0 or later, or set OMNIBAL_NCCL_LIBRARY"));
}

TEST_CASE("a file that is not NCCL is closed again", "[nccl][library]") {
  constexpr char const* other = "libutil.so.1";
  bool const was_open = ::dlopen(other, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  auto const text = refusal_of([] { return open_library(other); });
  CAPTURE(text);
  if (contains(text, "cannot be loaded")) return;
  CHECK(contains(text, "NCCL from 'libutil.so.1' has no function ncclGetVersion"));
  CHECK((::dlopen(other, RTLD_NOW | RTLD_NOLOAD) != nullptr) == was_open);
}

TEST_CASE("threads get the same library", "[nccl][library]") {
  std::vector<nccl::library const*> found(8);
  stand_in::run_ranks(found.size(),
                      [&](std::size_t rank) { found[rank] = &nccl::loaded_library(); });
  for (auto const* each : found) CHECK(each == found[0]);
}

}  // namespace
