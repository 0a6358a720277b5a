// SPDX-License-Identifier: Apache-2.0 A program that is not linked with NCCL: says which NCCL it
// finds, or why none, and asks it for an id.
//
// usage: loader [global|local FILE]    opens FILE first, as a program or Python does
// Returns 0 with an id, 3 without NCCL, and 1 if the two disagree.

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/cuda/nccl/connect.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include <dlfcn.h>
#include <nccl.h>

namespace nccl = omnibal::nccl;

int main(int count, char** words) {
  if (count == 3) {
    int const scope = std::string(words[1]) == "global" ? RTLD_GLOBAL : RTLD_LOCAL;
    if (::dlopen(words[2], RTLD_NOW | scope) == nullptr) {
      std::printf("loader: %s\n", ::dlerror());
      return 2;
    }
  }
  bool const is_available = nccl::is_available();
  if (is_available) {
    auto const version = nccl::detail::version_text(nccl::loaded_library().version);
    std::printf("available: NCCL %s from %s\n", version.c_str(), nccl::library_file().c_str());
  } else {
    std::printf("unavailable: %s\n", nccl::why_unavailable().c_str());
  }
  try {
    omnibal::self_communicator alone;
    ncclUniqueId const id = nccl::share_id_by_comm(alone);
    bool has_bytes = false;
    for (char const byte : id.internal) has_bytes = has_bytes || byte != 0;
    std::puts(has_bytes ? "an id" : "an empty id");
    return is_available && has_bytes ? 0 : 1;
  } catch (nccl::library_error const& error) {
    std::printf("library_error: %s\n", error.what());
    return is_available ? 1 : 3;
  } catch (std::exception const& error) {
    std::printf("another error: %s\n", error.what());
    return 1;
  }
}
