// SPDX-License-Identifier: Apache-2.0
// The bodies that every communicator must satisfy, over MPI. Run by mpirun with 1, 2 and 4 ranks.

#include "comm_bodies.hpp"
#include "context_bodies.hpp"
#include "exchange_bodies.hpp"
#include "rank_checks.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/mpi.hpp>
#include <omnibal/comm/two_level_communicator.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

namespace {

namespace mpi = omnibal::mpi;

static_assert(omnibal::exchanging_communicator<mpi::communicator>);
static_assert(omnibal::exchanging_communicator<mpi::communicator_ref&>);

/// Messages above the largest count of MPI take a derived type; here that count is small.
void send_blocks_of_any_size(mpi::communicator& comm) {
  auto const rank = static_cast<int>(comm.rank());
  for (std::size_t const bytes : {0u, 1u, 999u, 1000u, 1001u, 2000u, 12'345u}) {
    mpi::detail::byte_block const block(bytes, 1000);
    std::vector<unsigned char> sent(bytes);
    std::iota(sent.begin(), sent.end(), static_cast<unsigned char>(7));
    std::vector<unsigned char> received(bytes + 1, 3);
    MPI_Count size = 0;
    mpi::detail::check(MPI_Type_size_x(block.type(), &size), "MPI_Type_size_x");
    test::require(static_cast<std::size_t>(size) * static_cast<std::size_t>(block.count()) == bytes,
                  "the size of a block");
    mpi::detail::check(
        MPI_Sendrecv(sent.data(), block.count(), block.type(), rank, 5, received.data(),
                     block.count(), block.type(), rank, 5, comm.get(), MPI_STATUS_IGNORE),
        "MPI_Sendrecv");
    test::require(received.back() == 3, "nothing beyond a block");
    received.pop_back();
    test::require(received == sent, "the bytes of a block");
  }
  mpi::detail::byte_block const largest(std::numeric_limits<int>::max());
  test::require(largest.type() == MPI_BYTE, "counts of 31 bits need no type");
  std::uint64_t const many = 5'000'000'001;
  mpi::detail::byte_block const huge(many);
  MPI_Count size = 0;
  mpi::detail::check(MPI_Type_size_x(huge.type(), &size), "MPI_Type_size_x");
  test::require(huge.count() == 1 && static_cast<std::uint64_t>(size) == many, "a huge block");
}

void report_errors(mpi::communicator& comm) {
  try {
    mpi::detail::check(MPI_Send(nullptr, 1, MPI_BYTE, static_cast<int>(comm.size()), 0, comm.get()),
                       "MPI_Send");
    test::require(false, "a rank that does not exist is an error");
  } catch (mpi::error const& error) {
    std::string const text = error.what();
    test::require(error.code() != MPI_SUCCESS, "a code");
    test::require(text.rfind("MPI_Send: ", 0) == 0, "the call: " + text);
    test::require(text.find("mpi_test.cpp:") != std::string::npos, "file and line: " + text);
  }
  std::vector<std::byte> const in(2);
  std::vector<std::byte> out(2 * comm.size() + 1);
  std::vector<std::uint64_t> const counts(comm.size(), 1);
  auto const check = [&](auto const& call) {
    test::require(test::error_of<std::invalid_argument, mpi::error>(call) == test::seen::own,
                  "sizes that do not match");
  };
  check([&] { comm.all_gather(in, out); });
  check([&] { comm.all_to_all_v(out, counts, out, counts); });
}

void derive_communicators(mpi::communicator& comm) {
  auto const color = static_cast<int>(comm.rank() % 2);
  mpi::communicator half = comm.split(color);
  test::require(half.size() == (comm.size() + (color == 0 ? 1 : 0)) / 2, "the size of a part");
  test::require(half.rank() == comm.rank() / 2, "the order of a part");
  test::gather_values(half);
  test::exchange_values(half);
  mpi::communicator const node = comm.split_by_node();
  test::require(node.size() == comm.size(), "these ranks are on one node");

  mpi::communicator moved = std::move(half);
  mpi::communicator_ref borrowed(moved.get());
  test::gather_values(borrowed);
  test::exchange_values(borrowed);
  moved = mpi::communicator(comm.get());
  test::require(omnibal::all_gather(moved, 1).size() == comm.size(), "assigned");
}

/// Nodes of neighbors, of every third rank, of all and of one each.
void gather_in_two_levels(mpi::communicator& comm) {
  auto const rank = static_cast<int>(comm.rank());
  for (int const node : {rank / 2, rank % 3, 0, rank}) {
    mpi::communicator own = comm.split(node);
    mpi::communicator leaders = comm.split(own.rank() == 0 ? 0 : 1);
    omnibal::two_level_communicator two(comm.rank(), std::move(own), std::move(leaders));
    test::require(two.rank() == comm.rank() && two.size() == comm.size(), "rank and size");
    test::gather_values(two);
    std::vector<std::int64_t> const lengths(comm.rank() % 3, 100 + rank);
    auto const plan = omnibal::plan_exchange(two, lengths, std::identity{}, std::identity{});
    auto const same = omnibal::plan_exchange(comm, lengths, std::identity{}, std::identity{});
    test::require(plan.digest() == same.digest(), "plans");
    auto const failing = [&](std::int64_t) -> std::int64_t {
      if (comm.rank() == 0) throw std::domain_error("a cost");
      return 1;
    };
    std::vector<std::int64_t> const one{1};
    auto const found = test::error_of<std::domain_error, omnibal::communication_error>(
        [&] { static_cast<void>(omnibal::plan_exchange(two, one, failing, std::identity{})); });
    test::require(found == (rank == 0 ? test::seen::own : test::seen::remote), "errors");
    test::require(omnibal::all_equal(two, 3), "the communicator goes on");
  }
}

/// A rank sends more than 2^31 bytes to the next one, and all gather blocks of that size.
void send_huge(mpi::communicator& comm) {
  std::size_t const bytes = (std::size_t{1} << 31) + 12'345;
  std::size_t const ranks = comm.size();
  auto const value_at = [](std::size_t rank, std::size_t i) {
    return static_cast<std::byte>((i * 2654435761u >> 13) + rank);
  };
  auto const is_of = [&](std::size_t rank, std::span<std::byte const> found) {
    bool is_same = true;
    for (std::size_t i = 0; i != bytes; ++i) is_same &= found[i] == value_at(rank, i);
    return is_same;
  };
  std::vector<std::byte> sent(bytes);
  for (std::size_t i = 0; i != bytes; ++i) sent[i] = value_at(comm.rank(), i);
  std::vector<std::uint64_t> send_counts(ranks, 0);
  std::vector<std::uint64_t> receive_counts(ranks, 0);
  std::size_t const from = (comm.rank() + 1) % ranks;
  send_counts[(comm.rank() + ranks - 1) % ranks] = bytes;
  receive_counts[from] = bytes;
  {
    std::vector<std::byte> received(bytes);
    comm.all_to_all_v(sent, send_counts, received, receive_counts);
    test::require(is_of(from, received), "a huge message");
  }
  std::vector<std::byte> all(bytes * ranks);
  comm.all_gather(sent, all);
  for (std::size_t r = 0; r != ranks; ++r) {
    test::require(is_of(r, std::span(all).subspan(r * bytes, bytes)), "huge blocks");
  }
}

/// A rank that leaves between calls while the others wait for it: MPI ends all of them.
void leave_one_rank(mpi::communicator& comm) {
  if (comm.rank() + 1 == comm.size()) throw std::runtime_error("the last rank has thrown");
  static_cast<void>(omnibal::all_gather(comm, 1));
}

void run_all(mpi::communicator& comm) {
  auto const run = [&](std::string const& name, auto const& body) {
    if (comm.rank() == 0) std::printf("%s\n", name.c_str());
    body(comm);
  };
  test::for_each_comm_body(run);
  test::for_each_exchange_body(run);
  test::for_each_context_body(run);
  run("exchange_many_rounds, 1000",
      [](mpi::communicator& all) { test::exchange_many_rounds(all, 1000); });
  run("exchange_payloads_of 64 MiB",
      [](mpi::communicator& all) { test::exchange_payloads_of(all, std::size_t{64} << 20); });
  run("send_blocks_of_any_size", send_blocks_of_any_size);
  run("gather_in_two_levels", gather_in_two_levels);
  run("report_errors", report_errors);
  run("derive_communicators", derive_communicators);
}

}  // namespace

int main(int argc, char** argv) {
  std::string const option = argc > 1 ? argv[1] : "";
  // Four processes take 30 GiB, two 13 GiB.
  bool const is_huge = option == "--huge";
  test::watchdog const limit(std::chrono::seconds(is_huge ? 900 : 240));
  mpi::environment const environment(argc, argv);
  try {
    mpi::communicator comm;
    if (is_huge) {
      send_huge(comm);
    } else if (option == "--two-levels") {
      gather_in_two_levels(comm);
    } else if (option == "--leave") {
      leave_one_rank(comm);
    } else {
      run_all(comm);
    }
    if (comm.rank() == 0) std::printf("passed on %zu ranks\n", comm.size());
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
