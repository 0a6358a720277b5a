// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/placement.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using indices = std::vector<std::uint32_t>;
using numbers = std::vector<std::int64_t>;

// An array that is gone would be read.
static_assert(std::is_constructible_v<omnibal::detail::node_numbers, indices const&>);
static_assert(!std::is_constructible_v<omnibal::detail::node_numbers, indices>);
static_assert(std::is_constructible_v<omnibal::detail::node_numbers, std::span<std::uint32_t>>);

/// Samples of random sizes, and the rank of each.
struct batch {
  indices offsets{0};
  indices home_of;
  numbers bytes;
  omnibal::grouping home;

  batch(std::uint64_t seed, std::size_t ranks) {
    test::random_amounts random(seed);
    for (std::uint32_t rank = 0; rank != ranks; ++rank) {
      for (std::int64_t left = random.between(0, 6); left != 0; --left) {
        home.push(static_cast<std::uint32_t>(bytes.size()));
        home_of.push_back(rank);
        bytes.push_back(1 + random.heavy_tail(1000));
      }
      home.close();
      offsets.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
  }

  /// The bytes that leave their node, and their rank.
  template <class RankOf>
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> moved(omnibal::groups_argument parts,
                                                            indices const& node_of,
                                                            RankOf const& rank_of) const {
    std::pair<std::int64_t, std::int64_t> result{0, 0};
    for (std::size_t part = 0; part != parts.size(); ++part) {
      for (std::uint32_t const sample : parts[part]) {
        std::size_t const to = rank_of(part);
        if (node_of[home_of[sample]] != node_of[to]) result.first += bytes[sample];
        if (home_of[sample] != to) result.second += bytes[sample];
      }
    }
    return result;
  }
};

indices random_nodes(std::uint64_t seed, std::size_t ranks) {
  test::random_amounts random(seed);
  indices result(ranks);
  for (auto& node : result) node = static_cast<std::uint32_t>(7 * random.between(0, 2));
  return result;
}

}  // namespace

TEST_CASE("a placement on any nodes is the best of all") {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    for (std::size_t const ranks : {1u, 2u, 5u, 6u}) {
      batch const given(seed, ranks);
      indices const node_of = random_nodes(seed, ranks);
      auto const parts = omnibal::lpt(given.bytes, ranks);
      auto const result = omnibal::placement(given.home, parts, given.bytes, {.node_of = node_of});
      indices order(ranks);
      std::iota(order.begin(), order.end(), 0u);
      auto const on = [](indices const& rank_of) {
        return [&](std::size_t part) { return rank_of[part]; };
      };
      auto least = given.moved(parts, node_of, on(order));
      while (std::next_permutation(order.begin(), order.end())) {
        least = std::min(least, given.moved(parts, node_of, on(order)));
      }
      INFO("seed " << seed << ", " << ranks << " ranks");
      CHECK(given.moved(parts, node_of, on(result.rank_of_part)) == least);
      CHECK(std::pair(result.moved_bytes_across_nodes, result.moved_bytes) == least);
      CHECK(result.min_across_nodes == least.first);
      CHECK(result.proven);
    }
  }
}

TEST_CASE("plans on any nodes count what leaves them, and even the loads of ranks alike") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    for (std::size_t const ranks : {3u, 16u, 40u}) {
      batch const given(seed, ranks);
      indices const node_of = random_nodes(seed, ranks);
      auto const check = [&](auto const& balance) {
        auto const plan = omnibal::make_plan(given.offsets, given.bytes, given.bytes,
                                             {.node_of = node_of}, balance);
        auto const moved = given.moved(plan.arrivals(), node_of, std::identity{});
        CHECK(plan.moved_bytes_across_nodes() == moved.first);
        CHECK(plan.moved_bytes() == moved.second);
        return moved.first;
      };
      std::int64_t const across = check(omnibal::lpt);
      auto const blind =
          omnibal::make_plan(given.offsets, given.bytes, given.bytes, {}, omnibal::lpt);
      CHECK(across <= given.moved(blind.arrivals(), node_of, std::identity{}).first);
      check(omnibal::rebalance);
    }
  }
}

TEST_CASE("equal nodes are the same by number and by map, whatever the ranks are called") {
  for (std::uint64_t seed = 0; seed != 10; ++seed) {
    batch const given(seed, 11);
    indices by_three;
    for (std::uint32_t rank = 0; rank != 11; ++rank) by_three.push_back(rank / 3);
    auto const same = [&](auto const& balance) {
      auto const plan_on = [&](omnibal::make_plan_options const& options) {
        return omnibal::make_plan(given.offsets, given.bytes, given.bytes, options, balance);
      };
      CHECK(plan_on({.ranks_per_node = 3}) == plan_on({.node_of = by_three}));
      CHECK(plan_on({}) == plan_on({.ranks_per_node = 1}));
    };
    same(omnibal::rebalance);
    same(omnibal::lpt);
  }
  // Ranks 0 and 2 are one node, 1 and 3 another: what rank 0 has too much goes to rank 2.
  indices const alternate{4, 9, 4, 9};
  numbers const ones(4, 1);
  auto const plan = omnibal::make_plan(indices{0, 2, 4, 4, 4}, ones, ones,
                                       {.node_of = alternate, .max_overload = 0});
  CHECK(plan.moved_bytes() == 2);
  CHECK(plan.moved_bytes_across_nodes() == 0);
}

TEST_CASE("a map of other ranks is refused, also where one rank alone has another map") {
  indices const three{0, 0, 1};
  numbers const ones(2, 1);
  auto const text = [](auto const& call) { return test::error_text<std::invalid_argument>(call); };
  std::string const why =
      ": options.node_of has 3 elements, one for each rank, of which there are 2";
  auto const plan = omnibal::make_plan(indices{0, 1, 2}, ones, ones);
  omnibal::grouping const home({0, 1, 2}, {0, 1});
  CHECK(text([&] {
          static_cast<void>(omnibal::make_plan(indices{0, 1, 2}, ones, ones, {.node_of = three}));
        }) == "omnibal::make_plan" + why);
  CHECK(text([&] { static_cast<void>(omnibal::compose(plan, plan, ones, {.node_of = three})); }) ==
        "omnibal::compose" + why);
  CHECK(text([&] {
          static_cast<void>(omnibal::placement(home, home, ones, {.node_of = three}));
        }) == "omnibal::placement" + why);
  CHECK(text([&] {
          static_cast<void>(omnibal::rebalance(home, ones, ones, {.node_of = three}));
        }) == "omnibal::rebalance" + why);

  test::watchdog const limit;
  omnibal::thread_communicator::run(3, [&](omnibal::thread_communicator& comm) {
    indices const mine{0, 0, comm.rank() == 2 ? 5u : 1u};
    auto const refused = [&](indices const& node_of) {
      return test::error_of<std::invalid_argument, omnibal::communication_error>([&] {
        static_cast<void>(omnibal::plan_exchange(comm, ones, std::identity{}, std::identity{},
                                                 {.node_of = node_of}));
      });
    };
    test::require(refused(mine) == test::seen::own, "another map on one rank");
    test::require(refused(three) == test::seen::nothing, "one map");
  });
}
