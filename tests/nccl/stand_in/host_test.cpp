// Over the stand-in for NCCL and CUDA: collectives of host memory, and communicators that fail, on
// ranks that are threads.

#include "catch.hpp"
#include "comm_bodies.hpp"
#include "device_bodies.hpp"
#include "device_calls.hpp"
#include "exchange_bodies.hpp"
#include "on_ranks.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_ref.hpp>
#include <omnibal/cuda/nccl/find_nodes.hpp>

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using stand_in::on_ranks;
using std::chrono::milliseconds;

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
    test::exchange_payloads_of(comm, nccl::detail::staging::most_pinned + 12'345);
    std::vector<std::byte> const in(nccl::detail::staging::most_pinned + 1,
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
    test::exchange_on_stream(stand_in::device_calls{}, comm, 10);
  });
}

TEST_CASE("a rank that dies is an error on the others within the timeout", "[nccl]") {
  auto const how = GENERATE(stand_in::death::is_silent, stand_in::death::is_reported);
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  std::barrier all_there(4);
  std::size_t const allocations = stand_in::live_allocations();
  stand_in::run_ranks(4, [&](std::size_t rank) {
    nccl::communicator_options options;
    options.timeout = milliseconds(300);
    if (rank == 2) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      ncclCommInitRankConfig(&comm, 4, id, 2, &config);
      nccl::communicator_ref alive(comm, milliseconds(5000));
      alive.settle();
      test::require(omnibal::all_equal(alive, 1), "all are there");
      all_there.arrive_and_wait();
      stand_in::kill(comm, how);
      return;
    }
    nccl::communicator comm({.rank = rank, .size = 4}, id, options);
    test::require(omnibal::all_equal(comm, 1), "all are there");
    all_there.arrive_and_wait();
    auto const start = std::chrono::steady_clock::now();
    auto const expect = [&](auto const& call) {
      auto const found = test::error_of<nccl::timeout, nccl::error>(call);
      test::require(
          found == (how == stand_in::death::is_silent ? test::seen::own : test::seen::remote),
          "an error because of a dead rank");
    };
    if (rank == 0) {
      // A trainer on a stream of its own.
      test::own_stream const stream;
      auto const exec = omnibal::gpu::on(stream);
      omnibal::gpu::device_array<std::byte> const in(exec, 8);
      omnibal::gpu::device_array<std::byte> const out(exec, 32);
      expect([&] {
        comm.submit([&] {
          nccl::check(ncclAllGather(in.data(), out.data(), 8, ncclUint8, comm.get(), stream));
        });
        comm.wait(stream);
      });
      // What hung on the stream has been ended.
      test::require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream goes on");
    } else {
      expect([&] { static_cast<void>(omnibal::all_equal(comm, 2)); });
    }
    test::require(std::chrono::steady_clock::now() - start < std::chrono::seconds(5), "in time");
    test::require(comm.is_aborted(), "the communicator is aborted");
    test::require(test::error_of<omnibal::communication_error, nccl::error>(
                      [&] { static_cast<void>(omnibal::all_equal(comm, 2)); }) == test::seen::own,
                  "no call on an aborted communicator");
  });
  CHECK(stand_in::live_allocations() == allocations);
}

TEST_CASE("ranks that throw let the others time out", "[nccl]") {
  CHECK_THROWS_AS(on_ranks(
                      2,
                      [](nccl::communicator& comm) {
                        if (comm.rank() == 0) throw std::logic_error("of rank 0");
                        static_cast<void>(omnibal::all_equal(comm, 1));
                      },
                      milliseconds(200)),
                  std::logic_error);
  CHECK(stand_in::live_communicators() == 0);
}

TEST_CASE("ranks that do not come are a timeout", "[nccl]") {
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  nccl::communicator_options options;
  options.timeout = milliseconds(50);
  CHECK_THROWS_AS(nccl::communicator({.rank = 1, .size = 2}, id, options), nccl::timeout);
  CHECK(stand_in::live_communicators() == 0);
}

TEST_CASE("messages whose sizes differ are an error, not a wrong result", "[nccl]") {
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  stand_in::run_ranks(2, [&](std::size_t rank) {
    nccl::communicator_options options;
    options.timeout = milliseconds(500);
    nccl::communicator comm({.rank = rank, .size = 2}, id, options);
    std::vector<std::byte> const in(rank + 1);
    std::vector<std::byte> out(2 * in.size());
    CHECK_THROWS_AS(comm.all_gather(in, out), nccl::error);
  });
}

TEST_CASE("communicators are split", "[nccl]") {
  on_ranks(4, [](nccl::communicator& comm) {
    nccl::communicator half = comm.split(static_cast<int>(comm.rank() % 2));
    test::require(half.size() == 2 && half.rank() == comm.rank() / 2, "two halves");
    test::gather_values(half);
    test::exchange_on_stream(stand_in::device_calls{}, half, 4);
    nccl::communicator backwards = comm.split(0, -static_cast<int>(comm.rank()));
    test::require(backwards.rank() == 3 - comm.rank(), "the order of the keys");
    nccl::communicator moved = std::move(backwards);
    test::require(omnibal::all_equal(moved, 1), "moved");
    test::require(test::error_of<std::invalid_argument, nccl::error>(
                      [&] { static_cast<void>(comm.split(-1)); }) == test::seen::own,
                  "a negative color");
    test::require(omnibal::all_equal(comm, 1), "an argument does not abort");
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
