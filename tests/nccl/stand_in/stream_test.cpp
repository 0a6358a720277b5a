// SPDX-License-Identifier: Apache-2.0
// Over the stand-in for NCCL and CUDA: the calls on a stream, on 1, 2, 3 and 4 ranks that are
// threads.

#include "catch.hpp"
#include "device_bodies.hpp"
#include "launch.hpp"
#include "on_ranks.hpp"
#include "stand_in.hpp"

#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_ref.hpp>

#include <cstddef>

#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using stand_in::on_ranks;
using stand_in::thread_order;

static_assert(nccl::detail::stream_communicator<nccl::communicator>);
static_assert(nccl::detail::stream_communicator<nccl::communicator_ref>);

/// Any order but the random one shows what it shows in a few rounds.
std::size_t rounds_of(thread_order order, std::size_t rounds) {
  return order == thread_order::random ? rounds : rounds / 2;
}

TEST_CASE("lengths are gathered on a stream", "[nccl]") {
  auto const ranks = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4});
  stand_in::set_thread_order(
      GENERATE(thread_order::ascending, thread_order::descending, thread_order::random));
  on_ranks(ranks, [&](nccl::communicator& comm) {
    test::gather_on_stream(comm, 50);
    test::agree_on_faults(comm);
  });
}

TEST_CASE("samples are exchanged on a stream", "[nccl]") {
  auto const ranks = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4});
  auto const order =
      GENERATE(thread_order::ascending, thread_order::descending, thread_order::random);
  stand_in::set_thread_order(order);
  on_ranks(ranks, [&](nccl::communicator& comm) {
    test::exchange_on_stream(comm, rounds_of(order, 12));
    test::report_overflow(comm);
  });
}

TEST_CASE("loads are evened on a stream", "[nccl]") {
  auto const ranks = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4});
  auto const order =
      GENERATE(thread_order::ascending, thread_order::descending, thread_order::random);
  stand_in::set_thread_order(order);
  on_ranks(ranks, [&](nccl::communicator& comm) {
    test::post_balance_on_stream(comm, rounds_of(order, 10));
    test::capture_post_balance(comm);
  });
}

TEST_CASE("hundreds of rounds", "[slow]") {
  auto const ranks = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4});
  on_ranks(ranks, [&](nccl::communicator& comm) {
    test::gather_on_stream(comm, 100);
    test::exchange_on_stream(comm, 100);
    test::post_balance_on_stream(comm, 40);
  });
}

}  // namespace
