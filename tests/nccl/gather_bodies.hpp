// SPDX-License-Identifier: Apache-2.0
#pragma once

// What gathering lengths on a stream must do.

#include "stream_batches.hpp"

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/gather_lengths.cuh>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace test {

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

/// Lengths of every rank, with one collective and with two, several of a sample, and counts that
/// only the device knows.
template <class Comm>
void gather_on_stream(Comm& comm, std::uint64_t rounds) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const exec = gpu::on(stream);
  for (std::uint64_t round = 0; round != rounds; ++round) {
    batch const all = batch_of(round, ranks);
    auto const own = all.of(rank, all.costs);
    auto const local = gpu::upload(exec, own);
    gpu::device_array<std::uint32_t> offsets(exec, ranks + 1);
    gpu::device_array<std::int64_t> lengths(exec, all.samples());
    auto const faults = gpu::upload(exec, std::vector(1, gpu::fault::none));
    nccl::gathered_lengths<> const out{offsets, lengths, faults};
    std::size_t const most = all.most() + round % 3;
    switch (round % 4) {
      case 0:
        nccl::gather_lengths(exec, comm, nccl::local_lengths<>(constant(local)),
                             {.max_samples = most}, out);
        break;
      case 1: nccl::gather_lengths(exec, comm, local, out); break;
      default: {
        // More memory than lengths.
        std::vector<std::int64_t> padded(own.begin(), own.end());
        padded.resize(most + 3, -1);
        auto const values = gpu::upload(exec, padded);
        auto const count =
            gpu::upload(exec, std::vector(1, static_cast<std::uint32_t>(own.size())));
        nccl::gather_lengths(exec, comm, nccl::local_lengths<>(constant(values), constant(count)),
                             {.max_samples = most}, out);
        comm.wait(stream);
      }
    }
    require(to_host(exec, comm, offsets) == all.offsets, "where ranks begin");
    require(to_host(exec, comm, lengths) == all.costs, "the lengths of all ranks");
    require(to_host(exec, comm, faults)[0] == gpu::fault::none, "no fault");

    std::vector<omnibal::resources<2>> both;
    for (std::size_t i = 0; i != all.samples(); ++i) both.push_back({all.costs[i], all.sizes[i]});
    auto const pairs =
        gpu::upload(exec, std::span(both).subspan(all.offsets[rank], all.count(rank)));
    gpu::device_array<omnibal::resources<2>> gathered(exec, all.samples() + 1);
    with_scratch(exec, nccl::gather_lengths.scratch_bytes(ranks, most, 2), [&](auto const& given) {
      nccl::gather_lengths(
          given, comm, nccl::local_lengths<omnibal::resources<2>>(constant(pairs)),
          {.max_samples = most},
          nccl::gathered_lengths<omnibal::resources<2>>{offsets, gathered, faults});
    });
    auto found = to_host(exec, comm, gathered);
    found.pop_back();
    require(found == both, "two lengths of each sample");
  }
}

/// A wrong value on one rank is a fault on all.
template <class Comm>
void agree_on_faults(Comm& comm) {
  std::size_t const ranks = comm.size();
  bool const is_last = comm.rank() + 1 == ranks;
  own_stream const stream;
  auto const exec = gpu::on(stream);
  auto const fault_of = [&](std::vector<std::int64_t> const& own, std::size_t room,
                            gpu::fault before) {
    auto const local = gpu::upload(exec, own);
    gpu::device_array<std::uint32_t> const offsets(exec, ranks + 1);
    gpu::device_array<std::int64_t> const lengths(exec, room);
    auto const faults = gpu::upload(exec, std::vector(1, before));
    nccl::gather_lengths(exec, comm, nccl::local_lengths<>(constant(local)), {.max_samples = 3},
                         nccl::gathered_lengths<>{offsets, lengths, faults});
    require(to_host(exec, comm, offsets).back() <= 3 * ranks,
            "more than can be counts as what can be");
    return to_host(exec, comm, faults)[0];
  };
  using gpu::fault;
  std::size_t const room = 3 * ranks;
  require(fault_of({1, 2}, room, fault::none) == fault::none, "no fault");
  require(fault_of({1, is_last ? -2 : 2}, room, fault::none) == fault::invalid_amount,
          "a negative length");
  require(
      fault_of(std::vector<std::int64_t>(is_last ? 4 : 3, 1), room, fault::none) == fault::no_room,
      "too many samples");
  require(fault_of({1, 2, 3}, room - 1, fault::none) == fault::no_room, "too little room");
  require(fault_of({1}, room, is_last ? fault::overflow : fault::none) == fault::overflow,
          "a fault from before");

  // The count that only the device knows is above the memory on the last rank.
  auto const two = gpu::upload(exec, std::vector<std::int64_t>{4, 5});
  auto const count = gpu::upload(exec, std::vector<std::uint32_t>(1, is_last ? 3 : 2));
  gpu::device_array<std::uint32_t> const begins(exec, ranks + 1);
  gpu::device_array<std::int64_t> const gathered(exec, room);
  auto const faults = gpu::upload(exec, std::vector(1, fault::none));
  nccl::gather_lengths(exec, comm, nccl::local_lengths<>(constant(two), constant(count)),
                       {.max_samples = 3}, nccl::gathered_lengths<>{begins, gathered, faults});
  require(to_host(exec, comm, faults)[0] == fault::unknown_index, "a count above the memory");
  require(to_host(exec, comm, begins).back() == 2 * ranks, "what is there is gathered");

  // Refused on every rank before anything is sent, also where a product would wrap.
  gpu::device_array<std::uint32_t> const offsets(exec, ranks + 1);
  gpu::device_array<std::int64_t> const lengths(exec, 1);
  nccl::gathered_lengths<> const out{offsets, lengths, {}};
  for (std::size_t const most : {std::size_t{1} << 32, (std::size_t{1} << 63) + 1}) {
    auto const caught = error_of<std::length_error, std::invalid_argument>([&] {
      nccl::gather_lengths(exec, comm, nccl::local_lengths<>(constant(lengths)),
                           {.max_samples = most}, out);
    });
    require(caught == seen::own, "too many samples of a rank are refused");
  }
}

}  // namespace test
