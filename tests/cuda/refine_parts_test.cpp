// SPDX-License-Identifier: Apache-2.0
#include "cost_shapes.hpp"
#include "reference/refine_rounds.hpp"
#include "serial_balance.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/cuda/refine_parts/refine_kernels.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::part_counts;
using omnibal::gpu::fault;
using omnibal::gpu::detail::dealt_parts;
using omnibal::gpu::detail::given_parts;
using omnibal::gpu::detail::round_refiner;
using test::consecutive;
using test::cost_list;
using test::in_last_part;
using test::start_of_all;
using test::step_costs;

struct serial_refine {
  omnibal::grouping_view groups;
  double max_overload;
  round_refiner search;
  template <class Backend>
  void operator()(Backend& backend, omnibal::gpu::cost_steps const& steps, std::size_t parts,
                  omnibal::gpu::part_span const& out) const {
    given_parts const start{groups, static_cast<std::uint32_t>(parts)};
    omnibal::gpu::detail::refine_parts(backend, steps, start, max_overload, search, out);
  }
};

/// The same from dealt parts.
struct serial_deal_and_refine {
  double max_overload;
  round_refiner search;
  template <class Backend>
  void operator()(Backend& backend, omnibal::gpu::cost_steps const& steps, std::size_t parts,
                  omnibal::gpu::part_span const& out) const {
    dealt_parts const start{static_cast<std::uint32_t>(parts)};
    omnibal::gpu::detail::refine_parts(backend, steps, start, max_overload, search, out);
  }
};

struct limits {
  double max_overload = 0.0;
  part_counts counts = part_counts::free;
  std::uint64_t rounds = 1'000'000;
};

/// What differs between the device's algorithm on one thread and the host's.
template <class Start>
std::string fault_of(step_costs const& steps, std::size_t bound, std::size_t parts,
                     Start const& start, limits const& most, std::size_t launches = 0) {
  grouping const groups = start_of_all(steps, parts, start);
  std::string fault_text;
  auto const refined = test::run_serially(
      steps.view(bound), parts,
      serial_refine{groups, most.max_overload, {most.rounds, most.counts}}, fault_text);
  if (!fault_text.empty()) return fault_text;
  if (launches != 0 && refined.launches != launches) return "not so many launches";
  if constexpr (std::is_same_v<Start const, decltype(omnibal::deal)>) {
    auto const dealt = test::run_serially(
        steps.view(bound), parts,
        serial_deal_and_refine{most.max_overload, {most.rounds, most.counts}}, fault_text);
    if (!fault_text.empty()) return fault_text;
    if (!dealt.same(refined)) return "dealt parts give something else";
    if (dealt.launches > refined.launches) return "dealt parts take more launches";
  }
  return test::differs_from_host(refined, steps, parts, [&](cost_list const& costs) {
    return test::refine_rounds(
        costs, start(costs, parts), std::identity{},
        {.max_overload = most.max_overload, .counts = most.counts, .rounds = most.rounds});
  });
}

/// More samples than fit shared memory.
constexpr std::size_t large = 9000;

constexpr limits all_limits[] = {
    {}, {.counts = part_counts::kept}, {.max_overload = 0.01}, {.rounds = 3}, {.rounds = 0}};

}  // namespace

TEST_CASE("refined parts of one step are those of the host", "[slow]") {
  for (std::size_t const count : {0u, 1u, 2u, 7u, 64u}) {
    for (std::size_t const parts : {1u, 2u, 3u, 8u, 70u, 200u}) {
      for (auto const& shape : test::cost_shapes(count, count, parts)) {
        step_costs const steps({shape.costs});
        for (limits const& most : all_limits) {
          INFO(shape.name << ", " << count << " samples, " << parts << " parts, tolerance "
                          << most.max_overload << ", " << most.rounds << " rounds");
          REQUIRE(fault_of(steps, steps.largest, parts, omnibal::deal, most, 1) == "");
          REQUIRE(fault_of(steps, steps.largest, parts, consecutive, most, 1) == "");
          REQUIRE(fault_of(steps, steps.largest, parts, in_last_part, most, 1) == "");
        }
      }
    }
  }
}

TEST_CASE("refined parts of a step that does not fit shared memory are those of the host",
          "[slow]") {
  for (std::size_t const parts : {1u, 5u, 64u, 2500u}) {
    for (auto const& shape : test::cost_shapes(parts, 150, parts)) {
      step_costs steps({shape.costs});
      steps.pad(large);
      INFO(shape.name << ", " << parts << " parts");
      REQUIRE(fault_of(steps, large, parts, omnibal::deal, {.rounds = 200}) == "");
    }
  }
}

TEST_CASE("refined parts of many steps at once are those of each") {
  step_costs steps;
  std::uint64_t seed = 0;
  for (std::size_t const count : {0u, 5u, 40u, 1u, 0u, 0u, 33u, 0u}) {
    for (auto const& shape : test::cost_shapes(seed++, count, 8)) steps.add(shape.costs);
  }
  step_costs padded = steps;
  padded.pad(large);
  for (std::size_t const parts : {1u, 3u, 8u, 40u}) {
    INFO(parts << " parts");
    limits const most{.max_overload = 0.001, .rounds = 100};
    CHECK(fault_of(steps, steps.largest, parts, omnibal::deal, most, 1) == "");
    CHECK(fault_of(padded, padded.largest, parts, omnibal::deal, most, 1) == "");
    CHECK(fault_of(padded, large, parts, omnibal::deal, most) == "");
  }
  CHECK(fault_of(step_costs{}, 0, 4, omnibal::deal, {}, 1) == "");
}

TEST_CASE("parts can be refined in place") {
  step_costs steps;
  for (auto const& shape : test::cost_shapes(3, 100, 8)) steps.add(shape.costs);
  for (std::size_t const bound : {steps.largest, large}) {
    if (bound == large) steps.pad(large);
    grouping const groups = start_of_all(steps, 8, omnibal::deal);
    std::string fault_text;
    auto const apart = test::run_serially(
        steps.view(bound), 8, serial_refine{groups, 0.0, {100, part_counts::free}}, fault_text);
    CHECK(fault_text == "");

    std::vector<std::uint32_t> offsets(groups.offsets().begin(), groups.offsets().end());
    std::vector<std::uint32_t> items(groups.items().begin(), groups.items().end());
    items.resize(steps.costs.size(), test::untouched);
    test::serial_backend backend(test::visit_order::shuffled);
    omnibal::gpu::part_span const out{
        {{offsets.data(), offsets.size()}, {items.data(), items.size()}, {}}};
    given_parts const start{{offsets.data(), items.data(), groups.size()}, 8};
    omnibal::gpu::detail::refine_parts(backend, steps.view(bound), start, 0.0,
                                       round_refiner{100, part_counts::free}, out);
    CHECK(offsets == apart.offsets);
    items.resize(steps.offsets.back());
    auto refined = apart.items;
    refined.resize(steps.offsets.back());
    CHECK(items == refined);
  }
}

TEST_CASE("refining says what is wrong with the parts") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (bool const in_block : {true, false}) {
    INFO((in_block ? "in a block" : "by sorts"));
    auto const faults = [&](std::vector<cost_list> const& lists, grouping const& groups) {
      step_costs steps(lists);
      steps.pad(large);
      std::string fault_text;
      auto const written =
          test::run_serially(steps.view(in_block ? steps.largest : large), 2,
                             serial_refine{groups, 0.0, {100, part_counts::free}}, fault_text);
      return written.faults;
    };
    std::vector<cost_list> const lists{{1, 2, 3}, {4, 5}};
    CHECK(faults(lists, grouping({0, 1, 3, 5, 5}, {2, 0, 1, 4, 3})) == fault::none);
    CHECK(faults(lists, grouping({0, 1, 3, 5, 5}, {2, 0, 2, 4, 3})) == fault::unknown_index);
    CHECK(faults(lists, grouping({0, 1, 3, 5, 5}, {2, 0, 3, 4, 3})) == fault::unknown_index);
    CHECK(faults(lists, grouping({0, 1, 3, 5, 5}, {2, 0, 1, 4, 1})) == fault::unknown_index);
    CHECK(faults(lists, grouping({0, 1, 3, 5, 5}, {2, 0, 1, 4, 9})) == fault::unknown_index);
    CHECK(faults(lists, grouping({0, 1, 2, 5, 5}, {2, 0, 1, 4, 3})) == fault::unknown_index);
    grouping const good({0, 1, 2, 3, 4}, {0, 1, 3, 2});
    CHECK(faults({{1, 2}, {largest, 0}}, good) == fault::none);
    CHECK(faults({{1, 2}, {-1, 5}}, good) == fault::invalid_amount);
    CHECK(faults({{largest, 2}, {1, 5}}, good) == fault::overflow);
  }
}

TEST_CASE("dealing and refining says what is wrong with the costs") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t const bound : {std::size_t{2}, large}) {
    auto const faults = [&](std::vector<cost_list> const& lists) {
      step_costs steps(lists);
      steps.pad(large);
      std::string fault_text;
      return test::run_serially(steps.view(bound), 2,
                                serial_deal_and_refine{0.0, {100, part_counts::free}}, fault_text)
          .faults;
    };
    CHECK(faults({{1, 2}, {largest, 0}}) == fault::none);
    CHECK(faults({{1, 2}, {-1, 5}}) == fault::invalid_amount);
    CHECK(faults({{largest, 2}, {1, 5}}) == fault::overflow);
  }
}

TEST_CASE("refining a step in a block reads nothing that the block of the next one writes") {
  step_costs const steps({{1, 2, 3}, {4, 5}});
  std::vector<std::uint32_t> const items{2, 0, 1, 4, 3};
  auto const refined = [&](std::vector<std::uint32_t> const& offsets) {
    std::string fault_text;
    return test::run_serially(
        steps.view(steps.largest), 2,
        serial_refine{{offsets.data(), items.data(), 4}, 0.0, {100, part_counts::free}},
        fault_text);
  };
  auto const good = refined({0, 1, 3, 5, 5});
  CHECK(good.faults == fault::none);
  auto const next_is_wrong = refined({0, 1, 4, 5, 5});
  CHECK(next_is_wrong.faults == fault::unknown_index);
  for (std::size_t i = 0; i != 3; ++i) CHECK(next_is_wrong.items[i] == good.items[i]);
  CHECK(refined({0, 1, 3, 4, 4}).faults == fault::unknown_index);
  CHECK(refined({0, 4, 3, 5, 5}).faults == fault::unknown_index);
}
