// SPDX-License-Identifier: Apache-2.0
// Times of exchanges between two or more GPUs, each a rank, beside a bare group of sends and
// receives of the same bytes.

#include "device_program.hpp"
#include "moves.hpp"
#include "timing.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_exact.cuh>
#include <omnibal/cuda/nccl/exchange_samples.hpp>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

namespace {

/// Calls `call()` on all ranks at once until it has been timed often enough: the median, in
/// microseconds.
template <class Call>
double median_of_all(std::barrier<>& ranks, cudaStream_t stream, Call const& call) {
  std::vector<double> times;
  for (int run = -2; run != 15; ++run) {
    gpu::check(cudaStreamSynchronize(stream));
    ranks.arrive_and_wait();
    double const time = bench::microseconds_on_host([&] {
      call();
      gpu::check(cudaStreamSynchronize(stream));
      ranks.arrive_and_wait();
    });
    if (run >= 0) times.push_back(time);
  }
  auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// One rank of an exchange between devices.
void time_exchange(std::barrier<>& all_ranks, ncclUniqueId const& id, std::size_t rank,
                   std::size_t ranks, std::size_t row_bytes) {
  gpu::check(cudaSetDevice(static_cast<int>(rank)));
  nccl::communicator comm({.rank = rank, .size = ranks}, id);
  bench::stopwatch const watch;
  auto const exec = gpu::on(watch.stream());
  auto const rows = static_cast<std::uint32_t>(bench::bytes_to_move() / row_bytes);
  auto const made = bench::plan_of_moves(ranks, rows);
  auto const plan = nccl::device_plan<>::upload(exec, made, rank);
  gpu::device_array<std::byte> const in(exec, rows * row_bytes);
  gpu::device_array<std::byte> const out(exec, made.arrivals(rank).size() * row_bytes);
  gpu::check(cudaMemsetAsync(in.data(), 1, in.size(), watch.stream()));
  gpu::device_array<nccl::exchange_report> const report(exec, 1);
  nccl::device_rows<std::byte const> const from{in, row_bytes};
  nccl::device_rows<std::byte> const to{out, row_bytes};
  bench::traffic const bytes(made, rank, row_bytes);
  auto const bare = [&] {
    nccl::detail::stream_wire(comm, watch.stream())
        .exchange([&](auto const& send, auto const& receive) {
          std::byte const* next_in = in.data();
          std::byte* next_out = out.data();
          for (std::size_t peer = 0; peer != ranks; ++peer) {
            send(peer, next_in, bytes.sent[peer]);
            receive(peer, next_out, bytes.received[peer]);
            next_in += bytes.sent[peer];
            next_out += bytes.received[peer];
          }
        });
  };
  double const of_bare = median_of_all(all_ranks, watch.stream(), bare);
  double const of_exact = median_of_all(
      all_ranks, watch.stream(), [&] { nccl::exchange_exact(exec, comm, plan, from, to, report); });
  double const straight = median_of_all(
      all_ranks, watch.stream(), [&] { nccl::exchange_samples(exec, comm, made, from, to); });
  if (rank != 0) return;
  // At least nine tenths of its bandwidth.
  bench::promise const asked{.max_ratio = 1.0 / 0.9};
  bench::limit const best{"a bare group of sends, receives", of_bare};
  std::string const of =
      ", " + std::to_string(ranks) + " GPUs, rows of " + std::to_string(row_bytes) + " B";
  bench::print_time("exchange_exact" + of, of_exact, best, asked);
  bench::print_time("exchange_samples" + of, straight, best, asked);
}

/// Every device is a rank.
void time_exchanges(test::comparison& results, std::size_t row_bytes) {
  int devices = 0;
  gpu::check(cudaGetDeviceCount(&devices));
  if (devices < 2) {
    std::puts("not judged on one GPU");
    results.expect(true, "nothing to compare");
    return;
  }
  auto const ranks = static_cast<std::size_t>(devices);
  ncclUniqueId id{};
  nccl::check(ncclGetUniqueId(&id));
  std::barrier all_ranks(static_cast<std::ptrdiff_t>(ranks));
  std::vector<std::string> errors(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          time_exchange(all_ranks, id, rank, ranks, row_bytes);
        } catch (std::exception const& error) {
          errors[rank] = error.what();
          all_ranks.arrive_and_drop();
        }
      });
    }
  }
  for (auto const& error : errors) results.expect(error.empty(), "an exchange: " + error);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    for (std::size_t const row_bytes : {std::size_t{1} << 14, std::size_t{1} << 20}) {
      time_exchanges(results, row_bytes);
    }
  });
}
