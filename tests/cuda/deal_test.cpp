// SPDX-License-Identifier: Apache-2.0
#include "cost_shapes.hpp"
#include "serial_balance.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/cuda/deal/deal_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::gpu::fault;
using test::cost_list;
using test::step_costs;

struct serial_deal {
  template <class Backend>
  void operator()(Backend& backend, omnibal::gpu::cost_steps const& steps, std::size_t parts,
                  omnibal::gpu::part_span const& out) const {
    omnibal::gpu::detail::deal(backend, steps, parts, out);
  }
};

/// What differs between the device's algorithm on one thread and the host's.
std::string fault_of(step_costs const& steps, std::size_t bound, std::size_t parts,
                     std::size_t launches = 0) {
  std::string fault_text;
  auto const written = test::run_serially(steps.view(bound), parts, serial_deal{}, fault_text);
  if (!fault_text.empty()) return fault_text;
  if (launches != 0 && written.launches != launches) return "not so many launches";
  return test::differs_from_host(
      written, steps, parts, [&](cost_list const& costs) { return omnibal::deal(costs, parts); });
}

/// More samples than fit shared memory.
constexpr std::size_t large = 9000;

fault faults_of(step_costs const& steps, std::size_t bound, std::size_t parts) {
  std::string fault_text;
  auto const written = test::run_serially(steps.view(bound), parts, serial_deal{}, fault_text);
  CHECK(fault_text == "");
  return written.faults;
}

}  // namespace

TEST_CASE("deal of one step is that of the host") {
  for (std::size_t const count : {0u, 1u, 2u, 7u, 64u, 333u}) {
    for (std::size_t const parts : {1u, 2u, 3u, 8u, 64u, 100u, 600u}) {
      for (auto const& shape : test::cost_shapes(count, count, parts)) {
        INFO(shape.name << ", " << count << " samples, " << parts << " parts");
        step_costs steps({shape.costs});
        REQUIRE(fault_of(steps, steps.largest, parts, 1) == "");
        if (count != 333) continue;
        steps.pad(large);
        REQUIRE(fault_of(steps, large, parts) == "");
      }
    }
  }
}

TEST_CASE("deal of many steps at once is that of each") {
  step_costs steps;
  std::uint64_t seed = 0;
  for (std::size_t const count : {0u, 5u, 70u, 1u, 0u, 0u, 33u, 128u, 0u}) {
    for (auto const& shape : test::cost_shapes(seed++, count, 8)) steps.add(shape.costs);
  }
  step_costs padded = steps;
  padded.pad(large);
  for (std::size_t const parts : {1u, 3u, 8u, 40u}) {
    INFO(parts << " parts");
    CHECK(fault_of(steps, steps.largest, parts, 1) == "");
    CHECK(fault_of(padded, padded.largest, parts, 1) == "");
    CHECK(fault_of(padded, large, parts) == "");
  }
  CHECK(fault_of(step_costs{}, 0, 4, 1) == "");
}

TEST_CASE("deal of all costs needs no offsets") {
  cost_list const costs{3, 5, 5, 1, 4, 0};
  std::string fault_text;
  auto const written =
      test::run_serially(omnibal::gpu::device_span<std::int64_t const>(costs.data(), costs.size()),
                         3, serial_deal{}, fault_text);
  CHECK(fault_text == "");
  CHECK(test::differs_from_host(written, step_costs({costs}), 3, [](cost_list const& of_step) {
          return omnibal::deal(of_step, 3);
        }) == "");
}

TEST_CASE("a fault that nobody gave a word for is thrown") {
  step_costs const steps({{3, 4}, {1, -1, 1}});
  test::written_parts written = test::room_for(steps.view(), 2);
  auto out = written.span();
  out.faults = {};
  test::serial_backend backend;
  CHECK_THROWS_AS(serial_deal{}(backend, steps.view(), 2, out), std::invalid_argument);
}

TEST_CASE("deal says what is wrong with the costs and offsets") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (bool const in_block : {true, false}) {
    INFO((in_block ? "in a block" : "by sorts"));
    auto const faults = [&](std::vector<cost_list> const& lists) {
      step_costs steps(lists);
      steps.pad(large);
      return faults_of(steps, in_block ? steps.largest : large, 2);
    };
    CHECK(faults({{3, 4}, {largest}, {largest, 0}}) == fault::none);
    CHECK(faults({{3, 4}, {1, -1, 1}}) == fault::invalid_amount);
    CHECK(faults({{3, 4}, {largest, 1}}) == fault::overflow);
    CHECK(faults({{largest, largest, largest, -4}}) == (fault::overflow | fault::invalid_amount));

    step_costs steps({{1, 2, 3}, {4, 5}, {6}});
    steps.pad(large);
    std::size_t const bound = in_block ? 3 : large;
    for (auto const& offsets :
         {std::vector<std::uint32_t>{0, 3, 2, 6}, {1, 3, 5, 6}, {0, 3, 5, 9001}, {7, 3, 9, 1}}) {
      steps.offsets = offsets;
      CHECK(omnibal::gpu::has(faults_of(steps, bound, 2), fault::unknown_index));
    }
    steps.offsets = {0, 3, 5, 6};
    if (in_block) CHECK(faults_of(steps, 2, 2) == fault::no_room);
  }
}
