// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "executors.hpp"
#include "expert_faults.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::effort;
using omnibal::expert_placement;
using omnibal::place_experts;
using omnibal::place_experts_options;
using test::error_text;
using test::placement_faults;

/// Returns loads with a heavy tail from 1 to about `most`.
std::vector<std::int64_t> tail_loads(std::uint64_t seed, std::size_t count, double most) {
  omnibal::rng::engine random(seed);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i != count; ++i) {
    auto const drawn = static_cast<double>(omnibal::rng::below(random, 1 << 20)) / (1 << 20);
    result.push_back(static_cast<std::int64_t>(std::pow(most, drawn * drawn)));
  }
  return result;
}

double sum_of(std::vector<double> const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::size_t total(std::vector<std::size_t> const& values) {
  return std::accumulate(values.begin(), values.end(), std::size_t{0});
}

}  // namespace

// A reader of the result relies on these properties, whatever the shape of the problem is.
TEST_CASE("place_experts: placements of many shapes are valid") {
  struct shape {
    std::size_t experts, slots, ranks, layers, groups, nodes;
  };
  for (shape const& s :
       {shape{1, 1, 1, 1, 1, 1}, shape{1, 1, 5, 2, 1, 1}, shape{7, 7, 1, 3, 7, 1},
        shape{7, 7, 3, 1, 1, 1}, shape{8, 2, 4, 2, 1, 1}, shape{8, 5, 4, 2, 4, 1},
        shape{8, 3, 4, 2, 4, 2}, shape{64, 5, 16, 3, 8, 4}, shape{64, 3, 70, 2, 1, 1},
        shape{64, 16, 4, 2, 4, 4}, shape{12, 3, 4, 1, 2, 2}}) {
    for (effort const level : {effort::fast, effort::normal}) {
      for (std::uint64_t seed = 0; seed != 5; ++seed) {
        auto const loads = tail_loads(seed, s.experts * s.layers, 1e5);
        place_experts_options options;
        options.layers = s.layers;
        options.groups = s.groups;
        options.nodes = s.nodes;
        options.effort = level;
        options.seed = seed;
        auto const fresh = place_experts(loads, s.slots, s.ranks, options);
        INFO(s.experts << " experts, " << s.ranks << " x " << s.slots << ", seed " << seed);
        CHECK(placement_faults(loads, fresh, s.groups, s.nodes) == "");
        CHECK(total(fresh.moved) == 0);

        auto const later = tail_loads(seed + 100, s.experts * s.layers, 1e5);
        options.old = fresh.experts;
        std::size_t const slots = fresh.experts.size();
        for (std::size_t const budget : {std::size_t{0}, std::size_t{1}, slots / 10, slots / 3}) {
          options.max_moved = budget;
          auto const next = place_experts(later, s.slots, s.ranks, options);
          CHECK(placement_faults(later, next, s.groups, s.nodes, fresh.experts) == "");
          CHECK(total(next.moved) <= budget);
        }
        options.max_moved = {};
        auto const free = place_experts(later, s.slots, s.ranks, options);
        CHECK(placement_faults(later, free, s.groups, s.nodes, fresh.experts) == "");
      }
    }
  }
}

// A caller with a larger budget pays for more moves and must get no heavier ranks for them.
TEST_CASE("place_experts: a larger budget gives no heavier ranks") {
  auto const first = tail_loads(1, 4 * 64, 1e4);
  auto const later = tail_loads(2, 4 * 64, 1e4);
  place_experts_options options;
  options.layers = 4;
  auto const old = place_experts(first, 5, 16, options);
  options.old = old.experts;
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t const budget : {0u, 4u, 16u, 40u, 100u, 320u}) {
    options.max_moved = budget;
    auto const next = place_experts(later, 5, 16, options);
    INFO("budget " << budget);
    CHECK(sum_of(next.largest_loads) <= before * 1.01);
    before = sum_of(next.largest_loads);
  }
  options.max_moved = 320;
  auto const last = place_experts(later, 5, 16, options);
  options.max_moved = std::numeric_limits<std::size_t>::max();
  CHECK(place_experts(later, 5, 16, options) == last);
  auto const fresh = place_experts(later, 5, 16, {.layers = 4});
  CHECK(sum_of(last.largest_loads) <= 1.15 * sum_of(fresh.largest_loads));
}

// The budget is one sum over layers: it must go to the layer that gains from it.
TEST_CASE("place_experts: the budget goes to the layers that gain most") {
  std::vector<std::int64_t> loads(2 * 8, 10);
  place_experts_options options;
  options.layers = 2;
  auto const old = place_experts(loads, 2, 4, options);
  // Two heavy experts of the second layer share a rank.
  loads[8 + old(1, 0)[0]] = 100;
  loads[8 + old(1, 0)[1]] = 100;
  options.old = old.experts;
  options.max_moved = 2;
  auto const next = place_experts(loads, 2, 4, options);
  CHECK(next.moved == std::vector<std::size_t>{0, 2});
  CHECK(next.largest_loads == std::vector<double>{20, 110});
}

// A balanced old placement has nothing to gain, so that no weights are sent.
TEST_CASE("place_experts: a good old placement stays") {
  auto const loads = tail_loads(5, 3 * 32, 1e4);
  place_experts_options options;
  options.layers = 3;
  options.max_gap = 0.05;
  auto const old = place_experts(loads, 6, 8, options);
  for (std::size_t l = 0; l != 3; ++l) {
    CHECK(old.largest_loads[l] <= 1.05 * old.lower_bounds[l]);
  }
  options.old = old.experts;
  options.max_moved = 100;
  auto const next = place_experts(loads, 6, 8, options);
  CHECK(next.experts == old.experts);
  CHECK(total(next.moved) == 0);
}

// Steps without tokens and layers without any must not divide by zero or move copies.
TEST_CASE("place_experts: loads of zero") {
  std::vector<int> loads(2 * 8, 0);
  place_experts_options options;
  options.layers = 2;
  auto const fresh = place_experts(loads, 3, 4, options);
  CHECK(placement_faults(loads, fresh) == "");
  CHECK(fresh.largest_loads == std::vector<double>{0, 0});
  CHECK(fresh.lower_bounds == std::vector<double>{0, 0});
  loads[3] = 12;
  options.old = fresh.experts;
  auto const next = place_experts(loads, 3, 4, options);
  CHECK(placement_faults(loads, next, 1, 1, fresh.experts) == "");
  CHECK(next.largest_loads == std::vector<double>{3, 0});
  CHECK(next.moved[1] == 0);
}

// One expert on every rank of one slot, and as many slots as experts, leave no choice.
TEST_CASE("place_experts: slots without a choice") {
  std::vector<int> const loads{5, 1, 3};
  auto const all = place_experts(loads, 3, 4);
  CHECK(all.largest_loads == std::vector<double>{2.25});
  CHECK(all.lower_bounds[0] <= 2.25);
  auto const one = place_experts(loads, 3, 1);
  CHECK(one.largest_loads == std::vector<double>{9});
  CHECK(one.lower_bounds == std::vector<double>{9});
  auto const same = place_experts(std::vector<int>{8}, 1, 4);
  CHECK(same.experts == std::vector<std::uint32_t>{0, 0, 0, 0});
  CHECK(same.largest_loads == std::vector<double>{2});
}

// Ranks plan for themselves and must come to the same placement.
TEST_CASE("place_experts: equal input gives equal results") {
  auto const loads = tail_loads(9, 2 * 64, 1e5);
  place_experts_options options;
  options.layers = 2;
  options.seed = 4;
  auto const fresh = place_experts(loads, 5, 16, options);
  CHECK(fresh == place_experts(loads, 5, 16, options));
  auto const later = tail_loads(10, 2 * 64, 1e5);
  options.old = fresh.experts;
  options.max_moved = 30;
  CHECK(place_experts(later, 5, 16, options) == place_experts(later, 5, 16, options));
}

// Engines count tokens as int32 or average them as floating-point numbers.
TEST_CASE("place_experts: all types of loads give the same placement") {
  auto const loads = tail_loads(11, 2 * 32, 1e3);
  place_experts_options options;
  options.layers = 2;
  auto const expected = place_experts(loads, 6, 8, options);
  CHECK(place_experts(std::vector<int>(loads.begin(), loads.end()), 6, 8, options) == expected);
  CHECK(place_experts(std::vector<std::uint64_t>(loads.begin(), loads.end()), 6, 8, options) ==
        expected);
  CHECK(place_experts(std::vector<float>(loads.begin(), loads.end()), 6, 8, options) == expected);
  std::vector<double> halves;
  for (std::int64_t const load : loads) halves.push_back(static_cast<double>(load) / 2);
  auto const of_halves = place_experts(halves, 6, 8, options);
  CHECK(of_halves.experts == expected.experts);
  CHECK(2 * of_halves.largest_loads[0] == expected.largest_loads[0]);
}

// Sums near 2^63 overflow if the search adds shares without a shift.
TEST_CASE("place_experts: loads near 2^62 do not overflow") {
  std::vector<std::int64_t> loads(8, std::int64_t{1} << 20);
  loads[2] = (std::int64_t{1} << 62) - 1;
  loads[5] = (std::int64_t{1} << 62) - (std::int64_t{1} << 24);
  auto const fresh = place_experts(loads, 4, 4);
  CHECK(placement_faults(loads, fresh) == "");
  CHECK(fresh.largest_loads[0] < 1.001 * fresh.lower_bounds[0]);
}

// A layer that is light beside another one is rounded to few bits, and its bound must still hold.
TEST_CASE("place_experts: a light layer has a valid bound") {
  std::vector<double> loads(2 * 6, 1e18);
  for (std::size_t e = 6; e != 12; ++e) loads[e] = 1.0 + static_cast<double>(e) / 8;
  place_experts_options options;
  options.layers = 2;
  auto const both = place_experts(loads, 2, 8, options);
  std::vector<double> const light(loads.begin() + 6, loads.end());
  CHECK(placement_faults(loads, both) == "");
  CHECK(both.lower_bounds[1] <= place_experts(light, 2, 8).largest_loads[0]);
}

// The only old placements that do not fit the promise of the result have two copies on a rank.
TEST_CASE("place_experts: two copies on a rank are replaced") {
  std::vector<int> const loads{8, 4, 2, 2};
  std::vector<std::uint32_t> const old{0, 0, 1, 2, 3, 3};
  place_experts_options options;
  options.old = old;
  for (std::size_t const budget : {0u, 2u, 6u}) {
    options.max_moved = budget;
    auto const next = place_experts(loads, 2, 3, options);
    CHECK(placement_faults(loads, next, 1, 1, old) == "");
    CHECK(total(next.moved) <= std::max<std::size_t>(budget, 2));
  }
}

// FlashLB prints this example; greedy copies and packing give 232.
TEST_CASE("place_experts: the example of FlashLB") {
  std::vector<int> const loads{600, 560, 120, 120, 20, 10, 10, 10};
  auto const found = place_experts(loads, 2, 8);
  CHECK(found.largest_loads[0] == Approx(590.0 / 3));
  CHECK(found.lower_bounds[0] == Approx(181.25));
}

// Copies of an expert in one group must stay within the fast links of a node.
TEST_CASE("place_experts: groups keep the nodes of the old placement") {
  auto const loads = tail_loads(3, 32, 1e4);
  place_experts_options options;
  options.groups = 8;
  options.nodes = 4;
  auto const old = place_experts(loads, 5, 8, options);
  auto const later = tail_loads(4, 32, 1e4);
  options.old = old.experts;
  auto const next = place_experts(later, 5, 8, options);
  for (std::size_t node = 0; node != 4; ++node) {
    auto const groups = [&](expert_placement const& placement) {
      std::set<std::uint32_t> result;
      for (std::size_t r = 2 * node; r != 2 * node + 2; ++r) {
        for (std::uint32_t const expert : placement(0, r)) result.insert(expert / 4);
      }
      return result;
    };
    CHECK(groups(next) == groups(old));
  }
}

// Each argument that no placement fits is refused with its name and value.
TEST_CASE("place_experts: errors name the argument") {
  using invalid = std::invalid_argument;
  std::vector<int> const loads{8, 4, 2, 2};
  auto const text = [&](std::size_t slots, std::size_t ranks,
                        place_experts_options const& options) {
    return error_text<invalid>([&] { (void)place_experts(loads, slots, ranks, options); });
  };
  std::string const start = "omnibal::place_experts: ";
  CHECK(text(0, 2, {}) == start + "slots is 0, must be positive");
  CHECK(text(2, 0, {}) == start + "ranks is 0, must be positive");
  CHECK(text(2, 2, {.layers = 0}) == start + "options.layers is 0, must be positive");
  CHECK(text(2, 2, {.groups = 0}) == start + "options.groups is 0, must be positive");
  CHECK(text(2, 2, {.nodes = 0}) == start + "options.nodes is 0, must be positive");
  CHECK(text(2, 2, {.max_gap = 1.5}) == start + "options.max_gap is 1.5, must be in [0, 1]");
  CHECK(text(2, 2, {.layers = 3}) ==
        start + "loads has 4 values, must have a multiple of 3 layers");
  CHECK(text(2, 2, {.groups = 3}) == start + "options.groups is 3, must divide the 4 experts");
  CHECK(text(2, 2, {.groups = 4, .nodes = 4}) ==
        start + "options.nodes is 4, must divide the 2 ranks");
  CHECK(text(2, 2, {.nodes = 2}) == start + "options.nodes is 2, must divide the 1 groups");
  std::string const range = ", must be from 2 to 4 for 4 experts on 2 ranks";
  CHECK(text(1, 2, {}) == start + "slots is 1" + range);
  CHECK(text(5, 2, {}) == start + "slots is 5" + range);
  CHECK(text(2, 2, {.max_moved = 3}) ==
        start + "options.max_moved is 3, must have no value without an old placement");

  std::vector<std::uint32_t> const three{0, 1, 2};
  CHECK(text(2, 2, {.old = three}) ==
        start + "options.old has 3 values, must have layers * ranks * slots = 4");
  std::vector<std::uint32_t> const unknown{0, 1, 4, 3};
  CHECK(text(2, 2, {.old = unknown}) == start + "options.old[2] is 4, must be below the 4 experts");
  std::vector<std::uint32_t> const missing{0, 1, 0, 3};
  CHECK(text(2, 2, {.old = missing}) ==
        start + "options.old has no slot for expert 2 of layer 0, must have one");
  std::vector<std::uint32_t> const torn{0, 2, 1, 3};
  CHECK(text(2, 2, {.old = torn, .groups = 2, .nodes = 2}) ==
        start +
            "options.old has group 0 of layer 0 on the nodes 0 and 1, must have each group on one "
            "node");
  // Three of the four groups are on the first node, which has room for them.
  std::vector<std::uint32_t> const uneven_slots{0, 1, 2, 0, 3, 3, 3, 3};
  CHECK(error_text<invalid>([&] {
          (void)place_experts(loads, 2, 4, {.old = uneven_slots, .groups = 4, .nodes = 2});
        }) == start + "options.old has 3 groups of layer 0 on node 0, must have 2 on each node");

  std::vector<double> const negative{1, -2, 3, 4};
  CHECK(error_text<invalid>([&] { (void)place_experts(negative, 2, 2); }) ==
        start + "load[1] is -2, must be finite and not negative");
  std::vector<double> const odd{1, 2, std::numeric_limits<double>::quiet_NaN(), 4};
  CHECK(error_text<invalid>([&] { (void)place_experts(odd, 2, 2); }) ==
        start + "load[2] is nan, must be finite and not negative");
  CHECK(error_text<invalid>([&] { (void)place_experts(std::vector<int>{}, 1, 1); }) ==
        start + "loads has 0 values, must have a multiple of 1 layers");
  std::vector<std::int64_t> const large(4, std::int64_t{1} << 62);
  CHECK(error_text<std::overflow_error>([&] { (void)place_experts(large, 2, 2); }) ==
        start + "the sum of the loads exceeds the largest value of its type");
  std::size_t const many = std::size_t{1} << 32;
  CHECK(error_text<std::length_error>([&] { (void)place_experts(loads, 2, many); }) ==
        start + "ranks is 4294967296, must be at most 4294967295");
  CHECK(error_text<std::length_error>([&] { (void)place_experts(loads, 2, many - 1); }) ==
        start + "layers * ranks * slots is 8589934590, must be at most 4294967295");
}

// A caller with several threads plans many layers at once, and gets the placement of one thread.
TEST_CASE("place_experts: an executor does not change the placement") {
  auto const loads = tail_loads(1, 6 * 64, 5000);
  auto const later = tail_loads(2, 6 * 64, 5000);
  place_experts_options options{.layers = 6};
  expert_placement const fresh = place_experts(loads, 5, 16, options);
  test::with_executors(
      3, [&](auto const& run) { CHECK(place_experts(loads, 5, 16, options, run) == fresh); });
  options.old = fresh.experts;
  options.max_moved = 60;
  expert_placement const moved = place_experts(later, 5, 16, options);
  test::with_executors(
      4, [&](auto const& run) { CHECK(place_experts(later, 5, 16, options, run) == moved); });
}

// The error of the first wrong layer is the error of a loop over the layers.
TEST_CASE("place_experts: an executor reports the first wrong layer") {
  auto const loads = tail_loads(1, 3 * 4, 50);
  auto const call = [&](std::vector<std::uint32_t> const& old, auto const& run) {
    return error_text<std::invalid_argument>([&] {
      return place_experts(loads, 2, 2, place_experts_options{.layers = 3, .old = old}, run);
    });
  };
  std::vector<std::uint32_t> const old{0, 1, 2, 3, 0, 1, 2, 2, 0, 9, 2, 3};
  std::string const serial = call(old, omnibal::serial_executor{});
  CHECK(serial.find("options.old") != std::string::npos);
  test::with_executors(5, [&](auto const& run) { CHECK(call(old, run) == serial); });
  CHECK(call({}, [](std::size_t, auto const&) {}).find("omnibal::place_experts: executor") == 0);
}
