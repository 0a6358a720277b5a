// SPDX-License-Identifier: Apache-2.0
// A user's program: finds headers and libraries, and asks NCCL for an id, which needs no device.

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/cuda/nccl/connect.hpp>

#include <cstdio>
#include <exception>

int main() {
  try {
    omnibal::self_communicator alone;
    ncclUniqueId const id = omnibal::nccl::share_id_by_comm(alone);
    bool has_bytes = false;
    for (char const byte : id.internal) has_bytes = has_bytes || byte != 0;
    std::puts(has_bytes ? "an id of NCCL" : "an empty id");
    return has_bytes ? 0 : 1;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
