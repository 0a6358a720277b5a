// SPDX-License-Identifier: Apache-2.0
// Real NCCL over real MPI: ids are shared without a device, and a communicator is made where there
// is one for each process, or is a clear error. Under mpirun. Returns 1 where something is wrong.

#include "rank_checks.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/mpi.hpp>
#include <omnibal/cuda/nccl/connect.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;

int device_count() {
  int count = 0;
  bool const found = cudaGetDeviceCount(&count) == cudaSuccess;
  static_cast<void>(cudaGetLastError());
  return found ? count : 0;
}

void run() {
  omnibal::mpi::communicator all;
  ncclUniqueId const id = nccl::share_id_by_comm(all);
  test::require(omnibal::all_equal(all, nccl::detail::digest_of_text({id.internal, sizeof(id)})),
                "the same id on all ranks");
  ncclUniqueId const next = nccl::share_id_by_comm(all);
  test::require(std::string(id.internal, sizeof(id)) != std::string(next.internal, sizeof(next)),
                "another id each time");

  auto const start = std::chrono::steady_clock::now();
  if (device_count() == 0) {
    auto const caught = test::error_of<nccl::error, omnibal::gpu::error>(
        [&] { static_cast<void>(nccl::connect_by_comm(all)); });
    test::require(caught == test::seen::own, "no driver is an error of NCCL");
    test::require(std::chrono::steady_clock::now() - start < std::chrono::seconds(30), "in time");
    if (all.rank() == 0) std::puts("ids are shared, and no device is a clear error");
  } else if (device_count() >= static_cast<int>(all.size())) {
    omnibal::gpu::check(cudaSetDevice(static_cast<int>(all.rank())));
    nccl::communicator comm = nccl::connect_by_comm(all);
    test::require(comm.rank() == static_cast<std::size_t>(all.rank()), "the rank of MPI");
    test::require(omnibal::all_gather(comm, comm.rank()).back() + 1 == comm.size(), "a gather");
    if (all.rank() == 0) std::puts("ranks of MPI gather over NCCL");
  } else if (all.rank() == 0) {
    std::puts("ids are shared; there are fewer devices than ranks");
  }
}

}  // namespace

int main(int count, char** words) {
  omnibal::mpi::environment const environment(count, words);
  try {
    run();
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
