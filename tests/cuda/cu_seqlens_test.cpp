// SPDX-License-Identifier: Apache-2.0
#include "random_groups.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/cuda/cu_seqlens/cu_seqlens_kernels.hpp>
#include <omnibal/pack/cu_seqlens.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::gpu::fault;
using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

struct outcome {
  std::vector<std::uint64_t> begins;
  std::vector<std::int32_t> offsets;
  std::vector<std::int32_t> longest;
  fault faults = fault::none;
};

template <class Length>
outcome run(grouping const& groups, std::vector<Length> const& lengths, visit_order order,
            std::size_t missing_room = 0) {
  serial_backend backend(order, groups.size());
  outcome result;
  result.begins.assign(groups.size() + 1, 99);
  result.offsets.assign(groups.size() + groups.item_count() - missing_room, -1);
  result.longest.assign(groups.size(), -1);
  omnibal::gpu::detail::cu_seqlens(backend, groups.view(), lengths.data(), lengths.size(),
                                   result.begins.data(), result.offsets.data(),
                                   result.offsets.size(), result.longest.data(), &result.faults);
  return result;
}

template <class Length>
void check_same(grouping const& groups, std::vector<Length> const& lengths) {
  auto const expected = omnibal::cu_seqlens(groups, lengths);
  for (visit_order const order : orders) {
    outcome const result = run(groups, lengths, order);
    CHECK(result.faults == fault::none);
    CHECK(result.offsets ==
          std::vector<std::int32_t>(expected.offsets().begin(), expected.offsets().end()));
    REQUIRE(result.begins.size() == expected.begins().size());
    for (std::size_t g = 0; g != result.begins.size(); ++g) {
      REQUIRE(result.begins[g] == expected.begins()[g]);
    }
    for (std::size_t g = 0; g != groups.size(); ++g) {
      REQUIRE(result.longest[g] == expected.longest(g));
    }
  }
}

}  // namespace

TEST_CASE("cumulative lengths of groups of every size are those of the host") {
  for (auto const& sizes : test::group_sizes()) {
    CAPTURE(sizes.name);
    grouping const groups = test::random_groups(sizes.sizes, 21);
    std::size_t const n = groups.item_count() + 1;
    check_same(groups, test::random_weights<std::int64_t>(n, 1, 60000));
    check_same(groups, test::random_weights<std::uint16_t>(n, 2, 4097));
    check_same(groups, std::vector<std::int32_t>(n, 0));
  }
}

TEST_CASE("what the host refuses is a fault, and nothing is written outside") {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (visit_order const order : orders) {
    for (std::size_t const size : {std::size_t{3}, std::size_t{100}}) {
      CAPTURE(size);
      grouping const groups = test::random_groups({size, 2}, 1);
      std::vector<std::int64_t> lengths(size + 2, 0);
      std::uint32_t const some = groups[0][1];
      std::uint32_t const other = groups[0][2];
      lengths[some] = most;
      CHECK(run(groups, lengths, order).faults == fault::none);
      CHECK(run(groups, lengths, order).offsets[size] == most);
      lengths[other] = 1;
      CHECK(run(groups, lengths, order).faults == fault::overflow);
      lengths[other] = std::numeric_limits<std::int64_t>::max();
      CHECK(run(groups, lengths, order).faults == fault::overflow);
      lengths[other] = -1;
      CHECK(run(groups, lengths, order).faults == fault::invalid_amount);
      lengths[other] = 0;
      CHECK(run(groups, lengths, order, 1).faults == fault::no_room);
      CHECK(run(groups, lengths, order, 4).faults == fault::no_room);
      lengths.resize(2);
      CHECK(run(groups, lengths, order).faults == fault::unknown_index);
    }
  }
}
