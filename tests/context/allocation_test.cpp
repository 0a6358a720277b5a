// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/comm/ragged.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/cut_pieces.hpp>
#include <omnibal/context/deferral_queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <catch.hpp>

namespace {

TEST_CASE("context_groups allocates nothing once its workspace is large enough", "[context]") {
  omnibal::context_cost cost{.micro_step = 1};
  for (int degree = 1; degree <= 32; ++degree) {
    cost.degrees.push_back({1, 1.0 / degree + 0.01, 0.001 / degree});
  }
  std::vector<std::int64_t> lengths(500);
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(i % 50 == 0 ? 20'000 + 3 * i : 100 + i);
  }
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  omnibal::context_groups_options const options{.capacity = 4096, .ranks_per_node = 8};
  omnibal::context_groups_workspace workspace;
  auto const first = omnibal::context_groups(lengths, 32, cost, memory, options, workspace);
  CHECK(test::allocations_of([&] {
          static_cast<void>(omnibal::context_groups(lengths, 32, cost, memory, options, workspace));
        }) == 0);
  CHECK(omnibal::context_groups(lengths, 32, cost, memory, options, workspace) == first);

  std::vector<std::int64_t> const few{900, 20, 30, 4};
  static_cast<void>(omnibal::context_groups(few, 4, cost, memory, workspace));
  CHECK(test::allocations_of([&] {
          static_cast<void>(omnibal::context_groups(few, 4, cost, memory, workspace));
        }) == 0);
}

TEST_CASE("the pieces of a step and their exchange allocate nothing once there is room",
          "[context]") {
  omnibal::context_cost cost{.micro_step = 1};
  for (int degree = 1; degree <= 8; ++degree) cost.degrees.push_back({1, 1.0 / degree, 0});
  std::vector<std::int64_t> lengths(100);
  std::vector<std::vector<std::int32_t>> samples;
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(i % 10 == 0 ? 700 + i : i);
    if (i < 40) samples.emplace_back(static_cast<std::size_t>(2 * lengths[i]));
  }
  std::vector<std::uint32_t> const home_offsets{0, 40, 60, 70, 80, 90, 95, 99, 100};
  auto const memory = [](std::int64_t length, std::uint32_t degree) { return length / degree; };
  auto const plan = omnibal::context_groups(lengths, 8, cost, memory, {.capacity = 256});
  omnibal::context_pieces_workspace cutter;
  omnibal::context_exchange_workspace planner;
  std::vector<std::span<std::int32_t const>> pieces;
  omnibal::ragged<std::int32_t> rows;
  std::vector<std::span<std::int32_t const>> joined;
  auto const run = [&](std::uint32_t multiple) {
    auto const& layout = omnibal::context_pieces(plan, lengths, 8, {.multiple = multiple}, cutter);
    static_cast<void>(omnibal::context_exchange(layout, home_offsets, 4, planner));
    omnibal::cut_pieces(layout, home_offsets, 0, samples, pieces);
    rows.clear();
    for (auto const piece : pieces) rows.push(piece);
    omnibal::join_pieces(layout, home_offsets, 0, rows, joined);
  };
  run(1);
  auto const first = cutter.result();
  auto const digest = planner.result().digest();
  CHECK(test::allocations_of([&] { run(4); }) == 0);
  CHECK(planner.result().digest() != digest);
  CHECK(test::allocations_of([&] { run(1); }) == 0);
  CHECK(planner.result().digest() == digest);
  CHECK(first.pieces().size() == cutter.result().pieces().size());
  CHECK(joined.size() == samples.size());
}

TEST_CASE("a deferral_queue allocates only what exceeds earlier steps", "[context]") {
  std::vector<std::uint64_t> const ids(300, 1);
  std::vector<std::int64_t> lengths(300, 500);
  for (std::size_t i = 0; i != 7; ++i) lengths[40 * i] = 9000;
  auto const cost = [](std::int64_t length) {
    auto const tokens = static_cast<double>(length);
    return tokens + 0.001 * tokens * tokens;
  };
  omnibal::deferral_queue queue({.group_size = 64, .max_delay = 5, .threshold = 1000});
  auto const push = [&] { return queue.push(ids, lengths, cost).ids.size(); };
  auto const flush = [&] { return queue.flush().ids.size(); };
  std::size_t least = 300;
  for (int step = 0; step != 14; ++step) least = std::min(least, push());
  CHECK(least < 300);
  CHECK(queue.size() != 0);
  CHECK(test::allocations_of([&] {
          for (int step = 0; step != 60; ++step) {
            static_cast<void>(push());
            if (step % 20 == 19) static_cast<void>(flush());
          }
        }) == 0);
}

}  // namespace
