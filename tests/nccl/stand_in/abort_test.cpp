// SPDX-License-Identifier: Apache-2.0
// Over the stand-in for NCCL and CUDA: what becomes of memory and of the caller when a rank does
// not come to an exchange, and what an abort waits for.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "on_ranks.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "stream_batches.hpp"
#include "watchdog.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_exact.cuh>
#include <omnibal/cuda/nccl/exchange_samples.hpp>
#include <omnibal/cuda/nccl/post_balance.cuh>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;
using std::chrono::milliseconds;
using std::chrono::seconds;

nccl::communicator joined(ncclUniqueId const& id, std::size_t rank, std::size_t size,
                          nccl::communicator_options options = {}) {
  // As long as an abort is waited for too: on a machine with much other work what has not ended by
  // then keeps its memory, as it should.
  options.timeout = milliseconds(2000);
  return {{.rank = rank, .size = size}, id, options};
}

/// Calls `call`, which must throw a timeout within some seconds.
template <class Call>
void expect_timeout(Call const& call) {
  auto const start = std::chrono::steady_clock::now();
  auto const text = test::text_of<nccl::timeout>(call);
  test::require(test::contains(text, "another rank has left, hangs or is late"), text);
  test::require(std::chrono::steady_clock::now() - start < seconds(20), "in time");
}

/// What is behind aborts that nobody waits for any longer comes to its end too.
bool is_all_given_back() {
  for (int poll = 0; poll != 2000 && stand_in::live_communicators() != 0; ++poll) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  return stand_in::live_communicators() == 0;
}

TEST_CASE("memory stays until nothing copies to it where a rank hangs in an exchange", "[nccl]") {
  enum class call { post_balance, exchange_exact, exchange_fields, slow_fetch };
  auto const called =
      GENERATE(call::post_balance, call::exchange_exact, call::exchange_fields, call::slow_fetch);
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  std::size_t const allocations = stand_in::live_allocations();
  std::size_t const late = stand_in::late_copies();
  stand_in::run_ranks(3, [&](std::size_t rank) {
    nccl::communicator comm = joined(id, rank, 3);
    test::own_stream const stream;
    auto const exec = gpu::on(stream);
    auto const costs = gpu::upload(exec, std::vector<std::int64_t>{3, 7, 9, 1});
    auto const rows = gpu::upload(exec, std::vector<float>(4, 1.0F));
    gpu::device_array<float> const out(exec, 12);
    gpu::device_array<nccl::exchange_report> const report(exec, 1);
    nccl::device_plan<> const plan(exec, {.ranks = 3, .max_samples = 4});
    auto const uploaded =
        nccl::device_plan<>::upload(exec, test::plan_of(0, test::batch_of(0, 3)), rank);
    gpu::device_array<float> const many_in(exec, 1000);
    gpu::device_array<float> const many_out(exec, 1000);
    if (rank == 2) {
      std::this_thread::sleep_for(milliseconds(5000));
      return;
    }
    expect_timeout([&] {
      nccl::device_rows<float const> const in{test::constant(rows)};
      if (called == call::slow_fetch) {
        // A kernel behind the collective, which goes on when that has been ended.
        comm.submit([&] {
          nccl::check(
              ncclAllGather(many_in.data(), many_out.data(), 8, ncclUint8, comm.get(), stream));
        });
        stand_in::enqueue(stream, [] { std::this_thread::sleep_for(milliseconds(300)); });
        static_cast<void>(comm.fetch(many_out.data(), 24, stream));
      } else if (called == call::exchange_exact) {
        nccl::exchange_exact(exec, comm, uploaded, nccl::device_rows<float>{many_in},
                             nccl::device_rows<float>{many_out}, report);
      } else if (called == call::exchange_fields) {
        // All samples are those of the last rank.
        auto const from_last = test::plan_of(0, test::batch_of(2, 3));
        std::vector<std::int64_t> const ones(from_last.sample_count(), 1);
        std::vector<nccl::device_field> const fields{
            {nccl::device_rows<float>{{many_in.data(), 500}, 2},
             nccl::device_rows<float>{{many_out.data(), 500}, 2}},
            {ones, gpu::device_span<float const>(), gpu::device_span(many_out.data() + 500, 500)}};
        static_cast<void>(nccl::exchange_samples(exec, comm, from_last, fields));
        comm.wait(stream);
      } else {
        nccl::post_balance(exec, comm, test::constant(costs), in, plan,
                           nccl::device_rows<float>{out}, report);
      }
    });
    test::require(comm.is_aborted(), "aborted");
    test::require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream goes on");
  });
  CHECK(stand_in::late_copies() == late);
  CHECK(stand_in::live_allocations() == allocations);
  CHECK(is_all_given_back());
}

TEST_CASE("a graph that has captured the communicator does not hold up a timeout", "[nccl]") {
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  stand_in::run_ranks(2, [&](std::size_t rank) {
    nccl::communicator comm = joined(id, rank, 2);
    test::own_stream const stream;
    gpu::device_array<std::byte> const bytes(gpu::on(stream), 16);
    cudaGraph_t graph = nullptr;
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    comm.submit([&] {
      nccl::check(ncclAllGather(bytes.data(), bytes.data(), 8, ncclUint8, comm.get(), stream));
    });
    gpu::check(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t ready = nullptr;
    gpu::check(cudaGraphInstantiate(&ready, graph, 0));
    gpu::check(cudaGraphDestroy(graph));
    if (rank == 0) {
      gpu::check(cudaGraphLaunch(ready, stream));
      expect_timeout([&] { comm.wait(stream); });
      test::require(comm.is_aborted(), "aborted");
      test::require(stand_in::live_communicators() == 2, "it waits for the graph");
    } else {
      std::this_thread::sleep_for(milliseconds(6000));
    }
    gpu::check(cudaGraphExecDestroy(ready));
  });
  CHECK(is_all_given_back());
}

TEST_CASE("work of another communicator on the stream does not hold up a timeout", "[nccl]") {
  bool const is_together = GENERATE(false, true);
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclUniqueId of_trainer{};
  ncclGetUniqueId(&of_trainer);
  std::size_t const allocations = stand_in::live_allocations();
  stand_in::run_ranks(2, [&](std::size_t rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t trainer = nullptr;
    nccl::check(ncclCommInitRankConfig(&trainer, 2, of_trainer, static_cast<int>(rank), &config));
    nccl::communicator_options options;
    if (is_together) {
      options.abort = [&trainer](ncclComm_t ours) {
        ncclGroupStart();
        ncclCommAbort(ours);
        ncclCommAbort(trainer);
        ncclGroupEnd();
      };
    }
    nccl::communicator comm = joined(id, rank, 2, options);
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(7000));
      comm.abort();
      if (!is_together) ncclCommAbort(trainer);
      return;
    }
    test::own_stream const stream;
    gpu::device_array<std::byte> const bytes(gpu::on(stream), 16);
    nccl::check(ncclAllGather(bytes.data(), bytes.data(), 8, ncclUint8, trainer, stream));
    expect_timeout([&] { static_cast<void>(comm.fetch(bytes.data(), 16, stream)); });
    test::require(comm.is_aborted(), "aborted");
    auto const now = cudaStreamQuery(stream);
    test::require(now == (is_together ? cudaSuccess : cudaErrorNotReady), "what hung before ours");
    if (!is_together) ncclCommAbort(trainer);
  });
  CHECK(is_all_given_back());
  // What is copied to while it hangs is left to it.
  CHECK(stand_in::live_allocations() == allocations + (is_together ? 0 : 1));
}

}  // namespace
