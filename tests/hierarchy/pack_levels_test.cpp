// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "level_faults.hpp"

#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::level_fill;
using omnibal::level_packing;
using omnibal::pack_levels;
using omnibal::pack_order;
using omnibal::packing;
using omnibal::packing_level;
using lengths_type = std::vector<std::int64_t>;

struct document {
  std::string text;
  std::int64_t tokens;
};

/// A packer that changes what next-fit makes of the samples.
template <class Change>
auto changed_next_fit(Change change) {
  return [change](auto const& samples, auto const& demand, auto const& capacity) {
    packing result = omnibal::next_fit(samples, demand, capacity);
    result.groups = change(result.groups);
    return result;
  };
}

template <class Pack>
std::string error_of_packer(Pack const& pack) {
  return test::error_text<std::invalid_argument>([&] {
    static_cast<void>(pack_levels(lengths_type{1, 2, 3}, std::identity{}, lengths_type{4}, pack));
  });
}

template <class Levels>
std::string error_of_levels(Levels const& levels) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(pack_levels(lengths_type{1}, std::identity{}, levels)); });
}

/// The same by looking at all samples for each gap.
grouping naively_filled(lengths_type const& lengths, lengths_type const& levels) {
  std::vector<std::vector<std::vector<std::uint32_t>>> packs(levels.size());
  std::vector<std::uint8_t> is_taken(lengths.size(), 0);
  for (std::size_t level = levels.size(); level-- != 0;) {
    std::int64_t const above = level == 0 ? -1 : levels[level - 1];
    auto const pack = [&](bool all) {
      std::vector<std::uint32_t> members;
      lengths_type own;
      for (std::uint32_t i = 0; i != lengths.size(); ++i) {
        if (lengths[i] <= above || lengths[i] > levels[level]) continue;
        if (is_taken[i] != 0 && !all) continue;
        members.push_back(i);
        own.push_back(lengths[i]);
      }
      packing const packed = omnibal::best_fit_decreasing(own, std::identity{}, levels[level]);
      std::vector<std::vector<std::uint32_t>> result;
      for (std::size_t g = 0; g != packed.groups.size(); ++g) {
        result.emplace_back();
        for (std::uint32_t const item : packed.groups[g]) {
          if (is_taken[members[item]] == 0) result.back().push_back(members[item]);
        }
        if (result.back().empty()) result.pop_back();
      }
      return result;
    };
    packs[level] = pack(false);
    if (auto const of_all = pack(true); of_all.size() < packs[level].size()) packs[level] = of_all;
    for (auto& group : packs[level]) {
      std::int64_t room = levels[level];
      for (std::uint32_t const item : group) room -= lengths[item];
      for (;;) {
        std::uint32_t best = std::numeric_limits<std::uint32_t>::max();
        for (std::uint32_t i = 0; i != lengths.size(); ++i) {
          if (is_taken[i] != 0 || lengths[i] > above || lengths[i] > room) continue;
          if (best >= lengths.size() || lengths[i] > lengths[best]) best = i;
        }
        if (best >= lengths.size()) break;
        is_taken[best] = 1;
        group.push_back(best);
        room -= lengths[best];
      }
    }
  }
  grouping result;
  for (auto const& level : packs) {
    for (auto const& group : level) {
      for (std::uint32_t const item : group) result.push(item);
      result.close();
    }
  }
  return result;
}

static_assert(std::invocable<omnibal::pack_levels_fn, lengths_type, std::identity, lengths_type>);
static_assert(!std::invocable<omnibal::pack_levels_fn, lengths_type, std::identity, int>);
static_assert(
    !std::invocable<omnibal::pack_levels_fn, std::vector<double>, std::identity, lengths_type>);
static_assert(!std::invocable<omnibal::pack_levels_fn, std::vector<omnibal::resources<2>>,
                              std::identity, lengths_type>);

}  // namespace

TEST_CASE("samples are packed in the first level that is as long as they are") {
  lengths_type const lengths{5, 10, 11, 100, 4, 101, 0, 6};
  auto const packed = pack_levels(lengths, std::identity{}, lengths_type{10, 100},
                                  omnibal::next_fit, {.fill = level_fill::none});
  CHECK(packed.groups == grouping({0, 1, 4, 5, 6, 7}, {1, 4, 6, 7, 0, 3, 2}));
  REQUIRE(packed.levels.size() == 2);
  CHECK(packed.levels[0] == omnibal::packed_level{{.length = 10}, 0, 3, 0});
  CHECK(packed.levels[1] == omnibal::packed_level{{.length = 100}, 3, 2, 0});
  CHECK(packed.oversized == std::vector<std::uint32_t>{5});
}

TEST_CASE("gaps of longer levels are filled with the longest samples that fit") {
  // 60 leaves 40 for 30 and 10; 90 leaves 10 for the other 10; of equal ones the first moves first.
  lengths_type const lengths{10, 90, 30, 60, 10, 30, 5};
  auto const packed = pack_levels(lengths, std::identity{}, lengths_type{40, 100});
  CHECK(packed.groups == grouping({0, 2, 4, 7}, {5, 6, 1, 0, 3, 2, 4}));
  CHECK(packed.levels[0] == omnibal::packed_level{{.length = 40}, 0, 1, 0});
  CHECK(packed.levels[1] == omnibal::packed_level{{.length = 100}, 1, 2, 3});
}

TEST_CASE("packs are in the order of their attention, or as they were packed") {
  lengths_type const lengths{3, 3, 3, 1, 8, 5, 5};
  auto const of = [&](pack_order order) {
    return pack_levels(lengths, std::identity{}, lengths_type{10}, omnibal::next_fit,
                       {.order = order})
        .groups;
  };
  CHECK(of(pack_order::as_packed) == grouping({0, 4, 5, 7}, {0, 1, 2, 3, 4, 5, 6}));
  CHECK(of(pack_order::by_attention) == grouping({0, 1, 3, 7}, {4, 5, 6, 0, 1, 2, 3}));
}

TEST_CASE("the result carries the settings of its levels") {
  std::vector<packing_level> const levels{{.length = 8, .checkpointed_layers = 3},
                                          {.length = 64, .sequence = 8, .checkpointed_layers = 5}};
  auto const packed = pack_levels(lengths_type{1, 9}, std::identity{}, levels);
  CHECK(packed.levels[0].setting == levels[0]);
  CHECK(packed.levels[1].setting == levels[1]);
}

TEST_CASE("demands may be members, resources of one kind and any integers") {
  std::vector<document> const documents{{"a", 3}, {"b", 7}, {"c", 2}};
  auto const expected = pack_levels(lengths_type{3, 7, 2}, std::identity{}, lengths_type{4, 8});
  CHECK(pack_levels(documents, &document::tokens, std::array<int, 2>{4, 8}) == expected);
  auto const resource = [](document const& d) { return omnibal::resources{d.tokens}; };
  CHECK(pack_levels(documents, resource, std::vector<std::uint64_t>{4, 8}) == expected);
}

TEST_CASE("any packer will do") {
  lengths_type lengths;
  test::random_amounts random(5);
  for (int i = 0; i != 300; ++i) lengths.push_back(random.heavy_tail(4096));
  auto const filtered = [](auto const& samples, auto const& demand, auto const& capacity) {
    return omnibal::isf(samples, demand, capacity, {.rounds = 3});
  };
  CHECK(test::level_fault(pack_levels(lengths, std::identity{}, lengths_type{256, 4096}, filtered),
                          lengths) == "");
}

TEST_CASE("there may be no samples, none of a level, and none that fits") {
  lengths_type const levels{4, 8, 16};
  auto const none = pack_levels(lengths_type{}, std::identity{}, levels);
  CHECK(none.groups.empty());
  CHECK(none.levels.size() == 3);
  auto const middle = pack_levels(lengths_type{7, 7}, std::identity{}, levels);
  CHECK(middle.levels[0].group_count == 0);
  CHECK(middle.levels[1].group_count == 2);
  CHECK(middle.levels[2].group_count == 0);
  auto const too_long = pack_levels(lengths_type{17, 99}, std::identity{}, levels);
  CHECK(too_long.groups.empty());
  CHECK(too_long.oversized == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("samples longer than the last level may be packs of their own in it") {
  // The room beside 30 and 60 takes the 10; no pack above the level takes any.
  lengths_type const lengths{5, 101, 30, 60, 10, 300, 101};
  lengths_type const levels{10, 100};
  auto const packed = pack_levels(lengths, std::identity{}, levels, omnibal::next_fit,
                                  {.oversized = omnibal::oversize_policy::own_group});
  CHECK(packed.oversized.empty());
  CHECK(packed.groups == grouping({0, 1, 2, 3, 4, 7}, {0, 5, 1, 6, 2, 3, 4}));
  CHECK(packed.levels[0] == omnibal::packed_level{{.length = 10}, 0, 1, 0});
  CHECK(packed.levels[1] == omnibal::packed_level{{.length = 100}, 1, 4, 1});
  for (std::uint64_t seed = 0; seed != 4; ++seed) {
    for (auto const& set : test::length_sets(seed, 60)) {
      for (auto const& some : test::level_sets()) {
        INFO(set.name << ", " << some.size() << " levels");
        auto const packs = [&](omnibal::oversize_policy policy) {
          return pack_levels(set.lengths, std::identity{}, some, omnibal::best_fit_decreasing,
                             {.order = pack_order::as_packed, .oversized = policy});
        };
        auto listed = packs(omnibal::oversize_policy::list);
        auto const alone = packs(omnibal::oversize_policy::own_group);
        // The same packs, and before those of the last level the samples above it.
        auto const count = static_cast<std::uint32_t>(listed.oversized.size());
        omnibal::packed_level& last = listed.levels.back();
        grouping expected;
        for (std::uint32_t g = 0; g != alone.groups.size(); ++g) {
          if (g < last.first_group) {
            for (std::uint32_t const item : listed.groups[g]) expected.push(item);
          } else if (g < last.first_group + count) {
            expected.push(listed.oversized[g - last.first_group]);
          } else {
            for (std::uint32_t const item : listed.groups[g - count]) expected.push(item);
          }
          expected.close();
        }
        last.group_count += count;
        REQUIRE(alone.groups == expected);
        REQUIRE(alone.levels == listed.levels);
        REQUIRE(alone.oversized.empty());
      }
    }
  }
}

TEST_CASE("nothing is lost, levels and lengths are respected, and filling adds no packs") {
  for (std::size_t const count : {3u, 40u, 400u}) {
    for (auto const& set : test::length_sets(count, count)) {
      for (auto const& levels : test::level_sets()) {
        INFO(set.name << ", " << set.lengths.size() << " samples, " << levels.size() << " levels");
        auto const filled = pack_levels(set.lengths, std::identity{}, levels);
        auto const plain = pack_levels(set.lengths, std::identity{}, levels,
                                       omnibal::best_fit_decreasing, {.fill = level_fill::none});
        REQUIRE(test::level_fault(filled, set.lengths) == "");
        REQUIRE(test::level_fault(plain, set.lengths) == "");
        REQUIRE(
            pack_levels(set.lengths, std::identity{}, levels, {.fill = level_fill::none}).groups ==
            plain.groups);
        for (std::size_t level = 0; level != levels.size(); ++level) {
          REQUIRE(filled.levels[level].group_count <= plain.levels[level].group_count);
          REQUIRE(plain.levels[level].filled_in == 0);
        }
        for (std::uint32_t g = 1; g < filled.groups.size(); ++g) {
          if (filled.level_of(g) != filled.level_of(g - 1)) continue;
          REQUIRE(test::squares_of(filled, g, set.lengths) <=
                  test::squares_of(filled, g - 1, set.lengths));
        }
      }
    }
  }
}

TEST_CASE("filling is the same as by looking at all samples for each gap") {
  for (std::uint64_t seed = 0; seed != 8; ++seed) {
    for (auto const& set : test::length_sets(seed, 60)) {
      for (auto const& levels : test::level_sets()) {
        INFO(set.name << ", " << levels.size() << " levels");
        auto const packed =
            pack_levels(set.lengths, std::identity{}, levels, omnibal::best_fit_decreasing,
                        {.order = pack_order::as_packed});
        REQUIRE(packed.groups == naively_filled(set.lengths, levels));
      }
    }
  }
}

TEST_CASE("a packer that needs more packs for fewer samples adds none") {
  // One group for all three, one each for fewer.
  auto const fickle = [](auto const& samples, auto const& demand, auto const& capacity) {
    if (samples.size() >= 3) return omnibal::next_fit(samples, demand, capacity);
    packing result;
    for (std::uint32_t i = 0; i != samples.size(); ++i) {
      result.groups.push(i);
      result.groups.close();
    }
    return result;
  };
  lengths_type const lengths{1, 1, 1, 9};
  auto const packed = pack_levels(lengths, std::identity{}, lengths_type{5, 10}, fickle);
  CHECK(packed.levels[1].filled_in == 1);
  CHECK(packed.levels[0].group_count == 1);
  CHECK(test::level_fault(packed, lengths) == "");
}

TEST_CASE("levels that are none, not positive or not increasing are errors") {
  CHECK(error_of_levels(lengths_type{}) == "omnibal::pack_levels: levels is empty");
  CHECK(error_of_levels(lengths_type{0, 4}) ==
        "omnibal::pack_levels: levels[0].length is 0, must be from 1 to 3037000499");
  CHECK(error_of_levels(lengths_type{4, 3037000500}) ==
        "omnibal::pack_levels: levels[1].length is 3037000500, must be from 1 to 3037000499");
  CHECK(error_of_levels(lengths_type{4, 8, 8}) ==
        "omnibal::pack_levels: levels[2].length is 8, must be above that of the level before it, "
        "8");
  CHECK(error_of_levels(std::vector<packing_level>{{.length = 4, .sequence = 0}}) ==
        "omnibal::pack_levels: levels[0].sequence is 0, must be from 1 to 1048576");
  CHECK(error_of_levels(std::vector<packing_level>{{.length = 4, .checkpointed_layers = -1}}) ==
        "omnibal::pack_levels: levels[0].checkpointed_layers is -1, must be not negative");
}

TEST_CASE("a negative length is an error, the longest level none") {
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(pack_levels(lengths_type{1, -1}, std::identity{}, lengths_type{4}));
        }) == "omnibal::pack_levels: demand[1] is -1, must be finite and not negative");
  lengths_type const lengths{omnibal::longest_level, std::numeric_limits<std::int64_t>::max(),
                             omnibal::longest_level / 2, omnibal::longest_level / 2};
  auto const packed = pack_levels(lengths, std::identity{}, lengths_type{omnibal::longest_level});
  CHECK(test::level_fault(packed, lengths) == "");
}

TEST_CASE("a packer that loses or doubles samples or exceeds a length is an error") {
  CHECK(error_of_packer(changed_next_fit([](grouping const&) { return grouping(); })) ==
        "omnibal::pack_levels: the packer has 0 of 3 samples");
  CHECK(error_of_packer(changed_next_fit([](grouping const&) {
          return grouping({0, 2, 4}, {0, 1, 2, 1});
        })) == "omnibal::pack_levels: the packer names 1 twice, of 3 samples");
  CHECK(error_of_packer(changed_next_fit([](grouping const&) {
          return grouping({0, 1}, {3});
        })) == "omnibal::pack_levels: the packer names 3, there are 3 samples");
  CHECK(error_of_packer(changed_next_fit([](grouping const&) {
          return grouping({0, 1, 3}, {0, 1, 2});
        })) == "omnibal::pack_levels: the packer exceeds the capacity 4 in group 1");
  // Empty groups are dropped.
  auto const with_empty = changed_next_fit([](grouping const&) {
    return grouping({0, 0, 1, 1, 2, 3}, {0, 1, 2});
  });
  lengths_type const lengths{1, 2, 3};
  CHECK(pack_levels(lengths, std::identity{}, lengths_type{4}, with_empty).groups.size() == 3);
}
