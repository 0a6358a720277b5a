// SPDX-License-Identifier: Apache-2.0
#include "cost_shapes.hpp"
#include "serial_balance.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/cuda/lpt/lpt_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::count_policy;
using omnibal::gpu::fault;
using test::cost_list;
using test::step_costs;

struct serial_lpt {
  count_policy policy = count_policy::any;
  template <class Backend>
  void operator()(Backend& backend, omnibal::gpu::cost_steps const& steps, std::size_t parts,
                  omnibal::gpu::part_span const& out) const {
    omnibal::gpu::detail::lpt(backend, steps, parts, policy, out);
  }
};

/// What differs between the device's algorithm on one thread and the host's.
std::string fault_of(step_costs const& steps, std::size_t bound, std::size_t parts,
                     count_policy policy, std::size_t launches = 0) {
  std::string fault_text;
  auto const written = test::run_serially(steps.view(bound), parts, serial_lpt{policy}, fault_text);
  if (!fault_text.empty()) return fault_text;
  if (launches != 0 && written.launches != launches) return "not so many launches";
  return test::differs_from_host(written, steps, parts, [&](cost_list const& costs) {
    return omnibal::lpt(costs, parts, std::identity{}, {.count = policy});
  });
}

constexpr count_policy policies[] = {count_policy::any, count_policy::equal,
                                     count_policy::at_most_one_apart};

/// More samples than fit shared memory.
constexpr std::size_t large = 9000;

void check_step(cost_list const& costs, std::size_t parts) {
  step_costs const steps({costs});
  for (auto const policy : policies) {
    if (policy == count_policy::equal && costs.size() % parts != 0) continue;
    INFO("policy " << static_cast<int>(policy));
    REQUIRE(fault_of(steps, steps.largest, parts, policy, 1) == "");
  }
}

}  // namespace

TEST_CASE("lpt of one step is that of the host", "[slow]") {
  for (std::size_t const count : {0u, 1u, 2u, 7u, 64u, 333u}) {
    for (std::size_t const parts : {1u, 2u, 3u, 8u, 64u, 100u, 600u}) {
      for (auto const& shape : test::cost_shapes(count, count, parts)) {
        INFO(shape.name << ", " << count << " samples, " << parts << " parts");
        check_step(shape.costs, parts);
      }
    }
  }
  // Several samples for each part, where ties matter, also above 128 parts.
  for (std::size_t const parts : {12u, 64u, 200u}) {
    for (std::size_t const each : {2u, 3u, 4u, 10u}) {
      for (auto const& shape : test::cost_shapes(each, each * parts, parts)) {
        INFO(shape.name << ", " << each << " samples for each of " << parts << " parts");
        check_step(shape.costs, parts);
      }
    }
  }
}

TEST_CASE("lpt of a step that does not fit shared memory is that of the host", "[slow]") {
  for (std::size_t const parts : {1u, 5u, 64u, 700u, 4000u}) {
    for (auto const& shape : test::cost_shapes(parts, 600, parts)) {
      step_costs steps({shape.costs});
      steps.pad(large);
      for (auto const policy : policies) {
        if (policy == count_policy::equal && shape.costs.size() % parts != 0) continue;
        INFO(shape.name << ", " << parts << " parts, policy " << static_cast<int>(policy));
        REQUIRE(fault_of(steps, large, parts, policy) == "");
      }
    }
  }
}

TEST_CASE("lpt of many steps at once is that of each") {
  step_costs steps;
  std::uint64_t seed = 0;
  for (std::size_t const count : {0u, 5u, 70u, 1u, 0u, 0u, 33u, 128u, 0u}) {
    for (auto const& shape : test::cost_shapes(seed++, count, 8)) steps.add(shape.costs);
  }
  step_costs padded = steps;
  padded.pad(large);
  for (std::size_t const parts : {1u, 3u, 8u, 40u}) {
    for (auto const policy : {count_policy::any, count_policy::at_most_one_apart}) {
      INFO(parts << " parts, policy " << static_cast<int>(policy));
      CHECK(fault_of(steps, steps.largest, parts, policy, 1) == "");
      CHECK(fault_of(padded, padded.largest, parts, policy, 1) == "");
      CHECK(fault_of(padded, large, parts, policy) == "");
    }
  }
  CHECK(fault_of(step_costs{}, 0, 4, count_policy::any, 1) == "");
}

TEST_CASE("lpt of all costs needs no offsets") {
  cost_list const costs{3, 5, 5, 1, 4, 0};
  for (auto const policy : policies) {
    std::string fault_text;
    auto const written = test::run_serially(
        omnibal::gpu::device_span<std::int64_t const>(costs.data(), costs.size()), 3,
        serial_lpt{policy}, fault_text);
    CHECK(fault_text == "");
    CHECK(test::differs_from_host(written, step_costs({costs}), 3, [&](cost_list const& of_step) {
            return omnibal::lpt(of_step, 3, std::identity{}, {.count = policy});
          }) == "");
  }
}

TEST_CASE("lpt says what is wrong, and writes nothing outside of its arrays") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (bool const in_block : {true, false}) {
    INFO((in_block ? "in a block" : "by sorts"));
    auto const faults = [&](step_costs steps, count_policy policy) {
      steps.pad(large);
      std::string fault_text;
      auto const written = test::run_serially(steps.view(in_block ? steps.largest : large), 2,
                                              serial_lpt{policy}, fault_text);
      // Where offsets are wrong the parts are unspecified.
      bool const is_wrong = omnibal::gpu::has(written.faults, fault::unknown_index);
      CHECK((fault_text.empty() || is_wrong));
      return written.faults;
    };
    CHECK(faults(step_costs({{3, 4}, {largest}, {largest, 0}}), count_policy::any) == fault::none);
    CHECK(faults(step_costs({{3, 4}, {1, -1, 1}}), count_policy::any) == fault::invalid_amount);
    CHECK(faults(step_costs({{3, 4}, {largest, 1}}), count_policy::any) == fault::overflow);
    CHECK(faults(step_costs({{3, 4}, {1, 2, 3}}), count_policy::equal) == fault::uneven_counts);
    CHECK(faults(step_costs({{3, 4}, {1, 2, 3, 4}}), count_policy::equal) == fault::none);

    step_costs steps({{1, 2, 3}, {4, 5}, {6}});
    for (auto const& offsets :
         {std::vector<std::uint32_t>{0, 3, 2, 6}, {1, 3, 5, 6}, {0, 3, 5, 9001}, {7, 3, 9, 1}}) {
      steps.offsets = offsets;
      CHECK(omnibal::gpu::has(faults(steps, count_policy::any), fault::unknown_index));
    }
    if (!in_block) continue;
    steps.offsets = {0, 3, 5, 6};
    steps.largest = 2;
    CHECK(faults(steps, count_policy::any) == fault::no_room);
  }
}
