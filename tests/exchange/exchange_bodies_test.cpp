// SPDX-License-Identifier: Apache-2.0
#include "exchange_bodies.hpp"

#include "run_bodies.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

TEST_CASE("exchanges do what they promise on one rank and on threads") {
  test::run_on_self_and_threads([](auto const& run) { test::for_each_exchange_body(run); });
}

namespace {

/// Ranks that exchange what was collected, not pieces of memory.
class collecting_ranks {
 public:
  explicit collecting_ranks(omnibal::thread_communicator& comm) : comm_(&comm) {}
  std::size_t rank() const { return comm_->rank(); }
  std::size_t size() const { return comm_->size(); }
  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    comm_->all_gather(in, out);
  }
  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    comm_->all_to_all_v(in, send_counts, out, receive_counts);
  }

 private:
  omnibal::thread_communicator* comm_;
};
static_assert(omnibal::exchanging_communicator<collecting_ranks>);
static_assert(!omnibal::piecewise_communicator<collecting_ranks>);
static_assert(omnibal::piecewise_communicator<omnibal::thread_communicator>);

}  // namespace

TEST_CASE("exchanges do the same where the communicator takes no pieces") {
  test::watchdog const limit;
  test::for_each_exchange_body([](std::string const& name, auto const& body) {
    INFO(name);
    for (std::size_t const ranks : {1u, 2u, 5u}) {
      INFO(ranks << " ranks");
      CHECK_NOTHROW(
          omnibal::thread_communicator::run(ranks, [&](omnibal::thread_communicator& comm) {
            collecting_ranks plain(comm);
            body(plain);
          }));
    }
  });
}

TEST_CASE("a thousand rounds of exchanges and their inverses are the identity", "[slow]") {
  test::watchdog const limit;
  omnibal::self_communicator self;
  CHECK_NOTHROW(test::exchange_many_rounds(self, 1000));
  CHECK_NOTHROW(omnibal::thread_communicator::run(
      4, [](omnibal::thread_communicator& comm) { test::exchange_many_rounds(comm, 1000); }));
}

TEST_CASE("payloads of 64 MiB") {
  test::watchdog const limit;
  omnibal::self_communicator self;
  CHECK_NOTHROW(test::exchange_payloads_of(self, std::size_t{64} << 20));
  for (std::size_t const ranks : {1u, 2u, 4u}) {
    CHECK_NOTHROW(omnibal::thread_communicator::run(ranks, [](omnibal::thread_communicator& comm) {
      test::exchange_payloads_of(comm, std::size_t{64} << 20);
    }));
  }
}

namespace {

using mover = omnibal::exchange_samples_fn;
using plan = omnibal::exchange_plan;
using self = omnibal::self_communicator;

struct only_gather {
  int rank() const;
  int size() const;
  void all_gather(std::span<std::byte const>, std::span<std::byte>);
};

template <class Samples>
using moved = std::invoke_result_t<mover, self, plan, Samples>;

static_assert(
    std::same_as<moved<std::vector<std::array<float, 3>>>, std::vector<std::array<float, 3>>>);
static_assert(std::same_as<moved<std::vector<std::string>>, std::vector<std::string>>);
static_assert(std::same_as<moved<std::vector<std::span<int const>>>, omnibal::ragged<int>>);
static_assert(std::same_as<moved<omnibal::ragged<int>>, omnibal::ragged<int>>);
static_assert(!std::invocable<mover, only_gather&, plan, std::vector<int>>);
static_assert(!std::invocable<mover, self, plan, std::vector<std::vector<std::string>>>);
static_assert(!std::invocable<mover, self, plan, int>);

using planner = omnibal::plan_exchange_fn;
using cost = int (*)(int);
static_assert(std::invocable<planner, only_gather&, std::vector<int>, cost, cost>);
static_assert(!std::invocable<planner, only_gather&, std::vector<int>, cost>);
static_assert(!std::invocable<planner, only_gather&, std::vector<int>, cost, double (*)(int)>);
static_assert(!std::invocable<planner, only_gather&, std::vector<std::string>, cost, cost>);
static_assert(!std::invocable<planner, int, std::vector<int>, cost, cost>);

}  // namespace
