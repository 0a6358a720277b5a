// SPDX-License-Identifier: Apache-2.0
// Over the stand-in for NCCL and CUDA: collectives of host memory, parts of communicators, devices
// and nodes, on ranks that are threads.

#include "catch.hpp"
#include "comm_bodies.hpp"
#include "device_bodies.hpp"
#include "exchange_bodies.hpp"
#include "on_ranks.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_ref.hpp>
#include <omnibal/cuda/nccl/error.hpp>
#include <omnibal/cuda/nccl/find_nodes.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using stand_in::on_ranks;

static_assert(omnibal::exchanging_communicator<nccl::communicator>);
static_assert(omnibal::exchanging_communicator<nccl::communicator_ref&>);

TEST_CASE("host memory goes over nccl as over every communicator", "[nccl]") {
  auto const ranks = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4});
  on_ranks(ranks, [](nccl::communicator& comm) {
    auto const run = [&](std::string const&, auto const& body) { body(comm); };
    test::for_each_comm_body(run);
    test::for_each_exchange_body(run);
    nccl::communicator_ref borrowed(comm.get());
    test::gather_values(borrowed);
    nccl::communicator_ref copy = borrowed;
    test::exchange_values(copy);
  });
}

TEST_CASE("messages above the pinned memory go over nccl too", "[nccl]") {
  on_ranks(2, [](nccl::communicator& comm) {
    test::exchange_payloads_of(comm, nccl::detail::host_staging::max_pinned + 12'345);
    std::vector<std::byte> const in(nccl::detail::host_staging::max_pinned + 1,
                                    static_cast<std::byte>(comm.rank() + 1));
    std::vector<std::byte> out(2 * in.size());
    comm.all_gather(in, out);
    test::require(out.front() == std::byte{1} && out.back() == std::byte{2}, "large blocks");
  });
}

TEST_CASE("a communicator that blocks works too", "[nccl]") {
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  stand_in::run_ranks(2, [&](std::size_t rank) {
    nccl::communicator_options options;
    options.config.blocking = 1;
    nccl::communicator comm({.rank = rank, .size = 2}, id, options);
    test::gather_values(comm);
    test::exchange_on_stream(comm, 10);
  });
}

TEST_CASE("a communicator takes over one that is ready, and destroys it", "[nccl]") {
  test::watchdog const limit;
  std::size_t const allocations = stand_in::live_allocations();
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  stand_in::run_ranks(3, [&](std::size_t rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t ready = nullptr;
    nccl::check(ncclCommInitRankConfig(&ready, 3, id, static_cast<int>(rank), &config));
    auto comm = nccl::communicator::adopt(ready, {.timeout = std::chrono::seconds(20)});
    test::require(comm.get() == ready && comm.rank() == rank && comm.size() == 3, "the same ranks");
    test::require(comm.timeout() == std::chrono::seconds(20), "the timeout of the options");
    test::gather_values(comm);
    test::exchange_on_stream(comm, 10);
    nccl::communicator const moved = std::move(comm);
    test::require(comm.is_aborted() && !moved.is_aborted(), "one owner");
  });
  CHECK(stand_in::live_communicators() == 0);
  CHECK(stand_in::live_allocations() == allocations);
  CHECK_THROWS_AS(nccl::communicator::adopt(nullptr), std::invalid_argument);
}

TEST_CASE("communicators are split", "[nccl]") {
  on_ranks(4, [](nccl::communicator& comm) {
    nccl::communicator half = comm.split(static_cast<int>(comm.rank() % 2));
    test::require(half.size() == 2 && half.rank() == comm.rank() / 2, "two halves");
    test::gather_values(half);
    test::exchange_on_stream(half, 4);
    nccl::communicator backwards = comm.split(0, -static_cast<int>(comm.rank()));
    test::require(backwards.rank() == 3 - comm.rank(), "the order of the keys");
    nccl::communicator moved = std::move(backwards);
    test::require(omnibal::all_equal(moved, 1), "moved");
    test::require(test::error_of<std::invalid_argument, nccl::error>(
                      [&] { static_cast<void>(comm.split(-2)); }) == test::seen::own,
                  "a negative color");
    bool const is_without = comm.rank() == 1;
    nccl::communicator const three = comm.split(is_without ? NCCL_SPLIT_NOCOLOR : 0);
    test::require(three.is_aborted() == is_without, "a part for those with a color");
    test::require(is_without || three.size() == 3, "of three");
    test::require(omnibal::all_equal(comm, 1), "an argument does not abort");
  });
}

TEST_CASE("two threads of a rank use two communicators at once", "[nccl]") {
  on_ranks(3, [](nccl::communicator& comm) {
    nccl::communicator other = comm.split(0);
    std::exception_ptr error;
    {
      std::jthread const second([&] {
        try {
          for (int round = 0; round != 20; ++round) test::exchange_values(other);
        } catch (...) {
          error = std::current_exception();
        }
      });
      for (int round = 0; round != 20; ++round) test::gather_values(comm);
    }
    if (error != nullptr) std::rethrow_exception(error);
  });
}

TEST_CASE("collectives use the device of their communicator", "[nccl]") {
  on_ranks(3, [](nccl::communicator& comm) {
    test::require(comm.device() == static_cast<int>(comm.rank()), "every rank has a device");
    int const another = 5;
    omnibal::gpu::check(cudaSetDevice(another));
    test::require(omnibal::all_equal(comm, 1), "a collective on another device");
    int current = -1;
    omnibal::gpu::check(cudaGetDevice(&current));
    test::require(current == another, "the caller's device stays");
  });
}

TEST_CASE("nodes are found from hosts", "[nccl]") {
  auto const nodes_of = [](std::vector<std::uint64_t> const& hosts) {
    return nccl::node_map(hosts);
  };
  auto const even = nodes_of({7, 7, 3, 3, 9, 9});
  CHECK(even.node_count() == 3);
  CHECK(even.ranks_per_node() == 2);
  CHECK(even.node_of(3) == 1);
  CHECK(nodes_of({5, 5, 5, 1}).ranks_per_node() == 3);
  CHECK(nodes_of({5, 1, 1, 1}).ranks_per_node() == 1);
  CHECK(nodes_of({5, 5, 1, 1, 1}).ranks_per_node() == 1);
  CHECK(nodes_of({4, 4, 4}).ranks_per_node() == 3);
  auto const round_robin = nodes_of({2, 8, 2, 8});
  CHECK(round_robin.node_count() == 2);
  CHECK(round_robin.ranks_per_node() == 1);
  CHECK(round_robin.order_of(0) == 0);
  CHECK(round_robin.order_of(2) == 1);
  CHECK(round_robin.order_of(1) == 2);
  CHECK(round_robin.order_of(3) == 3);
  on_ranks(3, [](nccl::communicator& comm) {
    test::require(nccl::find_nodes(comm).ranks_per_node() == 3, "these ranks are on one node");
  });
}

}  // namespace
