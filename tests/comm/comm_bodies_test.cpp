// SPDX-License-Identifier: Apache-2.0
#include "comm_bodies.hpp"

#include "run_bodies.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

TEST_CASE("collectives give what they promise on one rank and on threads") {
  test::run_on_self_and_threads([](auto const& run) { test::for_each_comm_body(run); });
}

TEST_CASE("a process group of a user becomes a communicator") {
  // All that has to be written: what a trainer wraps around its own group.
  struct process_group {
    omnibal::thread_communicator* library;
    int rank() const { return static_cast<int>(library->rank()); }
    int size() const { return static_cast<int>(library->size()); }
    void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
      library->all_gather(in, out);
    }
    void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                      std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
      library->all_to_all_v(in, send_counts, out, receive_counts);
    }
  };
  static_assert(omnibal::exchanging_communicator<process_group>);
  test::watchdog const limit;
  CHECK_NOTHROW(omnibal::thread_communicator::run(3, [](omnibal::thread_communicator& comm) {
    process_group group{&comm};
    test::gather_values(group);
    test::exchange_values(group);
    test::gather_all_lengths(group);
  }));
}

TEST_CASE("the communicator of one rank refuses sizes that do not match") {
  omnibal::self_communicator comm;
  std::vector<std::byte> four(4);
  std::vector<std::byte> five(5);
  std::vector<std::uint64_t> const count_four{4};
  std::vector<std::uint64_t> const count_five{5};
  std::vector<std::uint64_t> const two_counts{4, 0};
  CHECK_THROWS_AS(comm.all_gather(four, five), std::invalid_argument);
  CHECK_THROWS_AS(comm.all_to_all_v(four, count_five, four, count_four), std::invalid_argument);
  CHECK_THROWS_AS(comm.all_to_all_v(four, count_four, five, count_four), std::invalid_argument);
  CHECK_THROWS_AS(comm.all_to_all_v(four, count_four, five, count_five), std::invalid_argument);
  CHECK_THROWS_AS(comm.all_to_all_v(four, two_counts, four, count_four), std::invalid_argument);
}

namespace {

struct no_gather {
  int rank() const;
  int size() const;
};
struct only_gather : no_gather {
  void all_gather(std::span<std::byte const>, std::span<std::byte>);
};

static_assert(!omnibal::communicator<no_gather>);
static_assert(omnibal::communicator<only_gather>);
static_assert(!omnibal::exchanging_communicator<only_gather>);
static_assert(omnibal::exchanging_communicator<omnibal::self_communicator const>);
static_assert(omnibal::exchanging_communicator<omnibal::thread_communicator const&>);
static_assert(!omnibal::communicator<int>);
static_assert(omnibal::wire_value<double>);
static_assert(!omnibal::wire_value<bool>);
static_assert(!omnibal::wire_value<std::string>);
static_assert(omnibal::wire_range<std::string>);
static_assert(!omnibal::wire_range<std::vector<std::string>>);
static_assert(!omnibal::wire_range<std::vector<bool>>);
static_assert(std::invocable<omnibal::all_gather_fn, only_gather&, int>);
static_assert(!std::invocable<omnibal::all_gather_fn, only_gather&, std::vector<std::string>>);
static_assert(!std::invocable<omnibal::gather_lengths_fn, only_gather&, std::vector<double>>);

}  // namespace
