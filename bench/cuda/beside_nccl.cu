// SPDX-License-Identifier: Apache-2.0
// Times of best-fit packing beside an all-reduce that runs: of one rank, which is a copy, and of
// two ranks that share the device.

#include "background.hpp"
#include "beside.cuh"
#include "device_program.hpp"
#include "rank_processes.hpp"
#include "timing.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

namespace {

/// A communicator of NCCL and two arrays to reduce from and to.
class all_reduce {
 public:
  all_reduce(int ranks, ncclUniqueId const& id, int rank)
      : exec_(gpu::on(cudaStreamPerThread)), from_(exec_, count), to_(exec_, count) {
    gpu::check(cudaMemsetAsync(from_.data(), 0, count * sizeof(float), exec_.stream()));
    exec_.synchronize();
    nccl::check(ncclCommInitRank(&comm_, ranks, id, rank));
  }
  all_reduce(all_reduce const&) = delete;
  all_reduce& operator=(all_reduce const&) = delete;
  ~all_reduce() { ncclCommDestroy(comm_); }

  void operator()(cudaStream_t stream) const {
    nccl::check(ncclAllReduce(from_.data(), to_.data(), count, ncclFloat, ncclSum, comm_, stream));
  }

 private:
  static constexpr std::size_t count = std::size_t{1} << 24;

  gpu::execution<> exec_;
  gpu::device_array<float> from_;
  gpu::device_array<float> to_;
  ncclComm_t comm_ = nullptr;
};

void time_beside_one_rank(test::comparison& results) {
  bench::stopwatch watch;
  bench::packing_beside packing(watch);
  ncclUniqueId id{};
  nccl::check(ncclGetUniqueId(&id));
  all_reduce const reduce(1, id, 0);
  test::background loop([&](cudaStream_t stream) { reduce(stream); });
  packing.print_beside(results, "an all-reduce of one rank (a copy)");
  auto const error = loop.end();
  results.expect(error.empty(), "an all-reduce of one rank: " + error);
}

/// One of two processes: both submit as many all-reduces at once, and the first one packs while
/// they run.
void time_beside_two_ranks(test::comparison& results, int rank) {
  constexpr int all_reduces = 300;
  bench::stopwatch watch;
  std::optional<bench::packing_beside> packing;
  if (rank == 0) packing.emplace(watch);
  ncclUniqueId id{};
  nccl::check(ncclGetUniqueId(&id));
  all_reduce const reduce(2, id, rank);
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int k = 0; k != all_reduces; ++k) reduce(stream);
  if (packing) {
    packing->print_beside(results, "an all-reduce of two ranks on the device");
    results.expect(cudaStreamQuery(stream) == cudaErrorNotReady, "the all-reduces last longer");
    static_cast<void>(cudaGetLastError());
  }
  gpu::check(cudaStreamSynchronize(stream));
  gpu::check(cudaStreamDestroy(stream));
  results.expect(true, "the all-reduces end");
}

}  // namespace

int main() {
  if (test::is_rank()) {
    return test::device_program([](test::comparison& results) {
      time_beside_two_ranks(results, std::atoi(std::getenv("RANK")));
    });
  }
  // Before this process has anything on the device.
  int const of_two = test::start_ranks(2, test::some_port());
  return test::device_program([&](test::comparison& results) {
    results.expect(of_two == 0, "two ranks on the device");
    time_beside_one_rank(results);
  });
}
