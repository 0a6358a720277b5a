// SPDX-License-Identifier: Apache-2.0
#pragma once

// What post-balancing on a stream must do.

#include "exchange_stream_bodies.hpp"
#include "stream_batches.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/gather_lengths.cuh>
#include <omnibal/cuda/nccl/post_balance.cuh>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <cuda_runtime_api.h>

namespace test {

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

/// The plan that a post-balance must make: part r of `lpt` for rank r.
inline std::vector<std::vector<std::uint32_t>> wanted_parts(batch const& all, std::size_t ranks) {
  auto const parts = omnibal::lpt(all.costs, ranks);
  std::vector<std::vector<std::uint32_t>> result;
  for (std::size_t r = 0; r != ranks; ++r) result.emplace_back(parts[r].begin(), parts[r].end());
  return result;
}

template <class Comm>
void post_balance_on_stream(Comm& comm, std::uint64_t rounds) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const exec = gpu::on(stream);
  constexpr std::size_t length = 6;
  for (std::uint64_t round = 0; round != rounds; ++round) {
    batch const all = batch_of(round, ranks);
    auto const parts = wanted_parts(all, ranks);
    std::vector<std::uint32_t> home(all.count(rank));
    std::iota(home.begin(), home.end(), all.offsets[rank]);
    auto const own_costs = gpu::upload(exec, all.of(rank, all.costs));
    nccl::device_plan<> const plan(exec, {.ranks = ranks, .max_samples = 30});
    gpu::device_array<nccl::exchange_report> const report(exec, 1);
    nccl::post_balance_options options;
    if (round % 2 == 0) options.slot_bytes = slot_for(all.samples(), 80'004);

    auto const before = rows_of<float>(home, length);
    auto const after = rows_of<float>(parts[rank], length);
    auto const in = gpu::upload(exec, before);
    gpu::device_array<float> const out(exec, after.size() + length);
    nccl::device_rows<float const> const rows_in{constant(in), length};
    nccl::device_rows<float> const rows_out{out, length};
    std::size_t const bytes =
        options.slot_bytes ? nccl::post_balance.scratch_bytes(plan.view(), *options.slot_bytes)
                           : nccl::post_balance.scratch_bytes(plan.view(), rows_in, rows_out);
    with_scratch(exec, bytes, [&](auto const& given) {
      nccl::post_balance(given, comm, constant(own_costs), rows_in, options, plan, rows_out,
                         report);
    });
    auto const found = to_host(exec, comm, report)[0];
    require(found.faults == gpu::fault::none, "no fault");
    require(found.arrivals == parts[rank].size(), "the number of arrivals");
    auto arrived = to_host(exec, comm, out);
    arrived.resize(after.size());
    require(arrived == after, "the rows of the part");

    gpu::device_array<float> const back(exec, before.size());
    nccl::exchange_exact(exec, comm, plan.view().inverse(),
                         nccl::device_rows<float const>{constant(out), length},
                         nccl::device_rows<float>{back, length}, report);
    require(to_host(exec, comm, back) == before, "the rows again");

    auto const texts = payloads_of<std::uint16_t>(home, all.sizes);
    auto const text_offsets = gpu::upload(exec, offsets_of(home, all.sizes));
    auto const texts_after = payloads_of<std::uint16_t>(parts[rank], all.sizes);
    auto const texts_in = gpu::upload(exec, texts);
    gpu::device_array<std::uint16_t> const texts_out(exec, texts_after.size());
    gpu::device_array<std::uint64_t> const offsets_out(exec, 30 * ranks + 1);
    nccl::device_payloads<std::uint16_t const> const from{constant(texts_in),
                                                          constant(text_offsets)};
    nccl::device_payloads<std::uint16_t> const to{texts_out, offsets_out};
    std::size_t const text_bytes =
        options.slot_bytes ? bytes : nccl::post_balance.scratch_bytes(plan.view(), from, to);
    with_scratch(exec, text_bytes, [&](auto const& given) {
      nccl::post_balance(given, comm, constant(own_costs), from, options, plan, to, report);
    });
    require(to_host(exec, comm, report)[0].faults == gpu::fault::none, "no fault of payloads");
    require(to_host(exec, comm, texts_out) == texts_after, "the payloads of the part");
    auto begins = to_host(exec, comm, offsets_out);
    begins.resize(parts[rank].size() + 1);
    require(begins == offsets_of(parts[rank], all.sizes), "where the payloads begin");
  }
}

/// The bounded form in a graph that is launched again with other samples.
template <class Comm>
void capture_post_balance(Comm& comm) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const pool = gpu::on(stream);
  constexpr std::size_t most = 30;
  constexpr std::size_t length = 5;
  nccl::device_plan<> const arrays(pool, {.ranks = ranks, .max_samples = most});
  gpu::device_array<std::int64_t> const costs(pool, most);
  gpu::device_array<std::uint32_t> const count(pool, 1);
  gpu::device_array<float> const in(pool, most * length);
  gpu::device_array<float> const out(pool, most * ranks * length);
  gpu::device_array<nccl::exchange_report> const report(pool, 1);
  std::size_t const slot = slot_for(most, length * 4);
  gpu::device_array<std::byte> const memory(pool,
                                            nccl::post_balance.scratch_bytes(arrays.view(), slot));
  auto const fill = [&](std::uint64_t round) {
    batch const all = batch_of(round, ranks);
    std::vector<std::uint32_t> home(all.count(rank));
    std::iota(home.begin(), home.end(), all.offsets[rank]);
    auto const own = all.of(rank, all.costs);
    auto const rows = rows_of<float>(home, length);
    auto const number = static_cast<std::uint32_t>(own.size());
    auto const copy = [&](void* to, void const* from, std::size_t bytes) {
      if (bytes == 0) return;
      gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    };
    copy(costs.data(), own.data(), own.size_bytes());
    copy(count.data(), &number, sizeof(number));
    copy(in.data(), rows.data(), rows.size() * sizeof(float));
    comm.wait(stream);
    return rows_of<float>(wanted_parts(all, ranks)[rank], length);
  };
  auto const call = [&] {
    gpu::given_scratch scratch(memory);
    auto const exec = gpu::on(stream, scratch);
    nccl::post_balance(exec, comm, nccl::local_lengths<>(constant(costs), constant(count)),
                       nccl::device_rows<float const>{constant(in), length}, {.slot_bytes = slot},
                       arrays, nccl::device_rows<float>{out, length}, report);
  };
  auto const check = [&](std::vector<float> const& wanted) {
    require(to_host(pool, comm, report)[0].faults == gpu::fault::none, "no fault in a graph");
    auto found = to_host(pool, comm, out);
    found.resize(wanted.size());
    require(found == wanted, "the rows of a graph");
  };
  // Once without, in which NCCL connects the ranks.
  auto const first = fill(0);
  call();
  check(first);

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  call();
  gpu::check(cudaStreamEndCapture(stream, &graph));
  gpu::check(cudaGraphInstantiate(&ready, graph, 0));
  for (std::uint64_t round = 1; round != 12; ++round) {
    auto const wanted = fill(round);
    gpu::check(cudaGraphLaunch(ready, stream));
    check(wanted);
  }
  gpu::check(cudaGraphExecDestroy(ready));
  gpu::check(cudaGraphDestroy(graph));
}

}  // namespace test
