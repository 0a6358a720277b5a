// SPDX-License-Identifier: Apache-2.0
// Over the stand-in for NCCL and CUDA: ranks that die, hang, throw or do not come, on ranks that
// are threads.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "device_bodies.hpp"
#include "on_ranks.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_ref.hpp>

#include <barrier>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using stand_in::on_ranks;
using std::chrono::milliseconds;

/// Two ranks with communicators of their own: what one of them makes fail ends on both.
template <class Body>
void on_two_that_fail(Body const& body) {
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  std::size_t const allocations = stand_in::live_allocations();
  stand_in::run_ranks(2, [&](std::size_t rank) {
    nccl::communicator_options options;
    options.timeout = milliseconds(2000);
    nccl::communicator comm({.rank = rank, .size = 2}, id, options);
    body(comm);
  });
  CHECK(stand_in::live_allocations() == allocations);
  CHECK(stand_in::live_communicators() == 0);
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
    options.timeout = milliseconds(2000);
    if (rank == 2) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      ncclCommInitRankConfig(&comm, 4, id, 2, &config);
      for (ncclResult_t state = ncclInProgress; state != ncclSuccess;) {
        ncclCommGetAsyncError(comm, &state);
      }
      nccl::communicator_ref alive(comm, milliseconds(5000));
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
    test::require(std::chrono::steady_clock::now() - start < std::chrono::seconds(20), "in time");
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
                      milliseconds(2000)),
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

TEST_CASE("messages whose sizes differ end by the timeout", "[nccl]") {
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  stand_in::run_ranks(2, [&](std::size_t rank) {
    nccl::communicator_options options;
    options.timeout = milliseconds(500);
    nccl::communicator comm({.rank = rank, .size = 2}, id, options);
    std::vector<std::byte> const in(rank + 1);
    std::vector<std::byte> out(2 * in.size());
    test::require(test::error_of<nccl::timeout, nccl::error>([&] { comm.all_gather(in, out); }) ==
                      test::seen::own,
                  "an error of sizes");
  });
}

TEST_CASE("a wait ends after the time that it is given", "[nccl]") {
  on_two_that_fail([](nccl::communicator& comm) {
    test::own_stream const stream;
    comm.wait(stream, milliseconds(50));
    test::require(test::error_of<std::invalid_argument, nccl::timeout>(
                      [&] { comm.wait(stream, milliseconds(0)); }) == test::seen::own,
                  "no time at all");
    test::require(!comm.is_aborted(), "an argument does not abort");
    if (comm.rank() == 1) return;
    auto const exec = omnibal::gpu::on(stream);
    omnibal::gpu::device_array<std::byte> const bytes(exec, 16);
    comm.submit([&] {
      nccl::check(ncclAllGather(bytes.data(), bytes.data(), 8, ncclUint8, comm.get(), stream));
    });
    auto const start = std::chrono::steady_clock::now();
    auto const text = test::text_of<nccl::timeout>([&] { comm.wait(stream, milliseconds(60)); });
    test::require(test::contains(text, "omnibal::nccl::wait: rank 0 of 2 has waited 60 ms"), text);
    auto const waited = std::chrono::steady_clock::now() - start;
    test::require(waited >= milliseconds(60) && waited < milliseconds(5000), "in that time");
    test::require(comm.is_aborted(), "aborted");
    test::require(cudaStreamSynchronize(stream) == cudaSuccess, "the stream goes on");
  });
}

TEST_CASE("errors in the background come with the next call", "[nccl]") {
  test::watchdog const limit;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  std::barrier steps(2);
  stand_in::run_ranks(2, [&](std::size_t rank) {
    if (rank == 1) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 1;
      ncclComm_t comm = nullptr;
      ncclCommInitRankConfig(&comm, 2, id, 1, &config);
      steps.arrive_and_wait();
      stand_in::kill(comm, stand_in::death::is_reported);
      steps.arrive_and_wait();
      return;
    }
    nccl::communicator comm({.rank = 0, .size = 2}, id);
    comm.check_health();
    nccl::communicator_ref borrowed(comm.get());
    steps.arrive_and_wait();
    steps.arrive_and_wait();
    // Who borrows leaves the end to the owner.
    for (int repeat = 0; repeat != 2; ++repeat) {
      auto const text = test::text_of<nccl::error>([&] { borrowed.check_health(); });
      test::require(test::contains(text, "another rank has failed or left"), text);
    }
    test::require(!comm.is_aborted(), "not by the borrower");
    try {
      comm.check_health();
      test::require(false, "the error in the background");
    } catch (nccl::error const& error) {
      test::require(error.code() == ncclRemoteError, "the code of NCCL");
      test::require(test::contains(error.file(), "failure_test.cpp"), "the caller's file");
    }
    test::require(comm.is_aborted(), "aborted");
    auto const text =
        test::text_of<omnibal::communication_error>([&] { comm.wait(nullptr, milliseconds(9)); });
    test::require(test::contains(text, "was aborted after an error"), text);
  });
  CHECK(stand_in::live_communicators() == 0);
}

TEST_CASE("a rank that does not come to a split is a timeout", "[nccl]") {
  on_two_that_fail([](nccl::communicator& comm) {
    if (comm.rank() == 1) {
      // Leaves later than the other one gives up.
      std::this_thread::sleep_for(milliseconds(3000));
      return;
    }
    auto const text = test::text_of<nccl::timeout>([&] { static_cast<void>(comm.split(0)); });
    test::require(test::contains(text, "has waited 2000 ms for NCCL"), text);
    test::require(comm.is_aborted(), "aborted");
  });
}

TEST_CASE("calls that throw within a group abort", "[nccl]") {
  on_two_that_fail([](nccl::communicator& comm) {
    test::own_stream const stream;
    omnibal::gpu::device_array<std::byte> const bytes(omnibal::gpu::on(stream), 16);
    auto const text = test::text_of<std::runtime_error>([&] {
      comm.submit([&] {
        nccl::check(ncclSend(bytes.data(), 8, ncclUint8, 1, comm.get(), stream));
        throw std::runtime_error("of the caller");
      });
    });
    test::require(text == "of the caller", "the exception of the caller");
    test::require(comm.is_aborted(), "aborted");
    // The group was closed: another communicator can go on.
    test::require(ncclGroupEnd() == ncclInvalidUsage, "no group is open");
  });
}

TEST_CASE("nccl refuses a communicator that is still in progress", "[nccl]") {
  // So the stand-in does, by which every call that does not settle shows.
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress);
  CHECK_THROWS_AS(nccl::communicator_ref(comm), nccl::error);
  ncclCommAbort(comm);
  CHECK(stand_in::live_communicators() == 0);
}

}  // namespace
