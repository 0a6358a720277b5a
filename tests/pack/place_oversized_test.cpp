// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "packers.hpp"
#include "samples.hpp"

#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/place_oversized.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

using omnibal::oversize_policy;
using omnibal::packing;
using omnibal::place_oversized;

namespace {

std::vector<std::int64_t> const lengths{3, 11, 4, 5, 99, 10};

std::string error_of(packing packed, oversize_policy policy) {
  return test::error_text<std::invalid_argument>(
      [&] { return place_oversized(std::move(packed), policy); });
}

/// What is wrong with `placed`, which has the oversized samples of `packed` alone.
std::string fault(packing const& placed, packing const& packed, std::size_t samples) {
  if (!placed.oversized.empty()) return "samples are oversized still";
  std::size_t const groups = packed.groups.size();
  if (placed.groups.size() != groups + packed.oversized.size()) return "the number of groups";
  std::vector<int> seen(samples, 0);
  for (std::uint32_t const item : placed.groups.items()) ++seen[item];
  for (int const times : seen) {
    if (times != 1) return "a sample is lost or there twice";
  }
  for (std::size_t g = 0; g != placed.groups.size(); ++g) {
    auto const own = placed.groups[g];
    bool const is_as_before =
        g < groups
            ? std::equal(own.begin(), own.end(), packed.groups[g].begin(), packed.groups[g].end())
            : own.size() == 1 && own[0] == packed.oversized[g - groups];
    if (!is_as_before) return "group " + std::to_string(g);
  }
  omnibal::packing_report report = packed.report;
  report.lower_bound += packed.oversized.size();
  return placed.report == report ? "" : "the report";
}

}  // namespace

TEST_CASE("oversized samples are groups of their own behind the others") {
  packing const packed = omnibal::next_fit(lengths, std::identity{}, 10);
  packing const placed = place_oversized(packed, oversize_policy::own_group);
  CHECK(placed.groups == omnibal::grouping({0, 2, 3, 4, 5, 6}, {0, 2, 3, 5, 1, 4}));
  CHECK(placed.oversized.empty());
  CHECK(placed.report.lower_bound == packed.report.lower_bound + 2);
}

TEST_CASE("no packer loses a sample to the policy, and bounds stay bounds") {
  test::for_each_packer([](std::string const& name, auto const& pack) {
    for (std::uint64_t seed = 0; seed != 4; ++seed) {
      for (auto const& set : test::small_sets<2>(seed, 60)) {
        INFO(name << ", " << set.name);
        packing const packed = pack(set.samples, std::identity{}, set.capacity);
        packing const placed = place_oversized(packed, oversize_policy::own_group);
        REQUIRE(fault(placed, packed, set.samples.size()) == "");
        REQUIRE(placed.report.lower_bound <= placed.groups.size());
        // There is nothing left to do.
        REQUIRE(place_oversized(placed, oversize_policy::own_group) == placed);
        REQUIRE(place_oversized(placed, oversize_policy::reject) == placed);
        REQUIRE(place_oversized(packed, oversize_policy::list) == packed);
      }
    }
  });
}

TEST_CASE("samples may all be oversized, and there may be none") {
  packing const all = place_oversized(omnibal::best_packing(lengths, std::identity{}, 1),
                                      oversize_policy::own_group);
  CHECK(all.groups.size() == lengths.size());
  CHECK(all.report.lower_bound == lengths.size());
  CHECK(place_oversized(packing{}, oversize_policy::own_group) == packing{});
  CHECK(place_oversized(packing{}, oversize_policy::reject) == packing{});
}

TEST_CASE("a packing may be improved before oversized samples are placed, not after") {
  packing const packed = omnibal::next_fit(lengths, std::identity{}, 10);
  CHECK(place_oversized(omnibal::improve_packing(lengths, std::identity{}, 10, packed),
                        oversize_policy::own_group)
            .groups.size() == 5);
  CHECK_THROWS_AS(omnibal::improve_packing(lengths, std::identity{}, 10,
                                           place_oversized(packed, oversize_policy::own_group)),
                  std::invalid_argument);
}

TEST_CASE("a policy that rejects says how many samples are oversized and which is the first") {
  CHECK(error_of(omnibal::next_fit(lengths, std::identity{}, 10), oversize_policy::reject) ==
        "omnibal::place_oversized: packed.oversized has 2 samples, must have none; the first is "
        "sample 1");
}

TEST_CASE("a packing with an open group is an error") {
  packing packed;
  packed.groups.push(0);
  packed.groups.push(1);
  packed.oversized = {2};
  CHECK(error_of(packed, oversize_policy::own_group) ==
        "omnibal::place_oversized: packed has an open group with 2 samples, close it");
  CHECK(error_of(packed, oversize_policy::list) != "");
}
