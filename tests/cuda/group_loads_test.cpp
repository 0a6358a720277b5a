// SPDX-License-Identifier: Apache-2.0
#include "random_groups.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/cuda/detail/group_loads.hpp>
#include <omnibal/group_loads.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::resources;
using omnibal::gpu::fault;
using omnibal::gpu::detail::load_of;
using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

template <class Demand>
struct outcome {
  std::vector<load_of<Demand>> loads;
  fault faults = fault::none;
};

template <class Demand>
outcome<Demand> run(grouping const& groups, std::vector<Demand> const& demands, visit_order order) {
  serial_backend backend(order, groups.size());
  outcome<Demand> result{std::vector<load_of<Demand>>(groups.size())};
  omnibal::gpu::detail::group_loads(backend, groups.view(), demands.data(), demands.size(),
                                    result.loads.data(), &result.faults);
  CHECK(backend.scratch_bytes() == 0);
  return result;
}

template <class Demand>
void check_same(grouping const& groups, std::vector<Demand> const& demands) {
  auto const expected = omnibal::group_loads(groups, demands, std::identity{});
  for (visit_order const order : orders) {
    auto const result = run(groups, demands, order);
    CHECK(result.loads == expected);
    CHECK(result.faults == fault::none);
  }
}

}  // namespace

TEST_CASE("loads of groups of every size are those of the host") {
  for (auto const& sizes : test::group_sizes()) {
    CAPTURE(sizes.name);
    grouping const groups = test::random_groups(sizes.sizes, 3);
    std::size_t const n = groups.item_count() + 1;
    check_same(groups, test::random_weights<std::int64_t>(n, 1, 5000));
    check_same(groups, test::random_weights<std::uint16_t>(n, 2, 60000));
    check_same(groups, test::random_weights<double>(n, 4, 5000));
    std::vector<resources<2>> pairs(n);
    std::vector<resources<5, std::int32_t>> fives(n);
    auto const words = test::random_weights<std::int32_t>(5 * n, 5, 1000);
    for (std::size_t i = 0; i != n; ++i) {
      pairs[i] = {words[2 * i], words[2 * i + 1]};
      for (std::size_t r = 0; r != 5; ++r) fives[i][r] = words[5 * i + r];
    }
    check_same(groups, pairs);
    check_same(groups, fives);
  }
}

TEST_CASE("floating-point loads are the host's to the last bit") {
  std::vector<double> const demands{1e16, 1.0, 1.0, -0.0, 0.1, 0.2, 0.3};
  check_same(grouping({0, 3, 7}, {1, 0, 2, 3, 6, 5, 4}), demands);
}

TEST_CASE("what the host refuses is a fault") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (visit_order const order : orders) {
    for (std::size_t const size : {std::size_t{2}, std::size_t{50}, std::size_t{5000}}) {
      CAPTURE(size);
      std::vector<std::uint32_t> items(size);
      for (std::size_t k = 0; k != size; ++k) items[k] = static_cast<std::uint32_t>(k);
      grouping const groups({0, static_cast<std::uint32_t>(size)}, items);
      std::vector<std::int64_t> demands(size, 0);
      demands[size - 1] = largest;
      CHECK(run(groups, demands, order).faults == fault::none);
      CHECK(run(groups, demands, order).loads[0][0] == largest);
      demands[0] = 1;
      CHECK(run(groups, demands, order).faults == fault::overflow);
      demands[0] = -1;
      CHECK(run(groups, demands, order).faults == fault::invalid_amount);
      demands.pop_back();
      demands[0] = 0;
      CHECK(run(groups, demands, order).faults == fault::unknown_index);

      std::vector<std::uint64_t> const wide(size, std::uint64_t{1} << 63);
      CHECK(run(groups, wide, order).faults == fault::invalid_amount);
      std::vector<double> floating(size, 0.0);
      floating[1] = infinite;
      CHECK(run(groups, floating, order).faults == fault::invalid_amount);
      floating[1] = -1e-300;
      CHECK(run(groups, floating, order).faults == fault::invalid_amount);
      floating[1] = std::numeric_limits<double>::quiet_NaN();
      CHECK(run(groups, floating, order).faults == fault::invalid_amount);
      floating[0] = floating[1] = std::numeric_limits<double>::max();
      CHECK(run(groups, floating, order).faults == fault::overflow);
      floating.pop_back();
      floating[0] = 0.0;
      CHECK(run(groups, floating, order).faults == fault::unknown_index);
    }
  }
}
