// SPDX-License-Identifier: Apache-2.0
#include "packing_rivals.hpp"

#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;
using packs_of_lengths = std::vector<std::vector<std::int64_t>>;

std::vector<std::int64_t> random_lengths(std::uint64_t seed, std::size_t count,
                                         std::int64_t longest) {
  omnibal::rng::engine random(seed, 0);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i != count; ++i) {
    auto const bound = static_cast<std::uint64_t>(longest);
    result.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, bound)) + 1);
  }
  return result;
}

/// The lengths of each pack, after a check that every sample is there once.
packs_of_lengths lengths_in(omnibal::packing const& packed, std::span<std::int64_t const> lengths,
                            std::int64_t capacity) {
  std::vector<std::uint32_t> items(packed.groups.items().begin(), packed.groups.items().end());
  items.insert(items.end(), packed.oversized.begin(), packed.oversized.end());
  std::ranges::sort(items);
  std::vector<std::uint32_t> all(lengths.size());
  std::iota(all.begin(), all.end(), std::uint32_t{0});
  REQUIRE(items == all);
  packs_of_lengths result;
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    auto& pack = result.emplace_back();
    for (std::uint32_t const i : packed.groups[g]) pack.push_back(lengths[i]);
    REQUIRE(std::accumulate(pack.begin(), pack.end(), std::int64_t{0}) <= capacity);
  }
  CHECK(result.size() >= packed.report.lower_bound);
  return result;
}

std::int64_t room_of(std::vector<std::int64_t> const& pack, std::int64_t capacity) {
  return capacity - std::accumulate(pack.begin(), pack.end(), std::int64_t{0});
}

/// Sums of the packs, ascending.
std::vector<std::int64_t> sums_of(packs_of_lengths const& packs) {
  std::vector<std::int64_t> result;
  for (auto const& pack : packs) {
    result.push_back(std::accumulate(pack.begin(), pack.end(), std::int64_t{0}));
  }
  std::ranges::sort(result);
  return result;
}

}  // namespace

TEST_CASE("first fit takes the first pack with room, in the order of the shuffle") {
  constexpr std::int64_t capacity = 50;
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    auto const lengths = random_lengths(seed, seed * 5, 60);
    auto const made = lengths_in(first_fit_shuffled(lengths, capacity, seed), lengths, capacity);
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i != lengths.size(); ++i) {
      if (lengths[i] <= capacity) order.push_back(i);
    }
    omnibal::rng::fisher_yates{seed}(std::span(order), 0);
    packs_of_lengths expected;
    for (std::uint32_t const i : order) {
      auto const fits = [&](auto const& pack) { return room_of(pack, capacity) >= lengths[i]; };
      auto pack = std::ranges::find_if(expected, fits);
      if (pack == expected.end()) pack = expected.emplace(pack);
      pack->push_back(lengths[i]);
    }
    CHECK(made == expected);
  }
}

TEST_CASE("lengths go to the shortest packs, from the longest length to the shortest") {
  std::vector<std::int64_t> const lengths{2, 7, 4, 2, 9, 4, 2, 30};
  auto const packed = shortest_pack_first(lengths, 10);
  // 9; 7; none has room for 4, so that both begin a pack; these have the most room for 2.
  CHECK(sums_of(lengths_in(packed, lengths, 10)) == std::vector<std::int64_t>{6, 7, 8, 9});
  CHECK(packed.oversized == std::vector<std::uint32_t>{7});
  CHECK(shortest_pack_first({}, 10).groups.empty());

  constexpr std::int64_t capacity = 50;
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    auto const drawn = random_lengths(seed, seed * 5, 60);
    auto const made = sums_of(lengths_in(shortest_pack_first(drawn, capacity), drawn, capacity));
    std::vector<std::int64_t> sorted;
    for (std::int64_t const length : drawn) {
      if (length <= capacity) sorted.push_back(length);
    }
    std::ranges::sort(sorted, std::greater{});
    // The sums are those of any choice among packs of one room. Those of one length that no pack
    // has room for begin one each.
    std::vector<std::int64_t> rooms;
    for (std::size_t i = 0; i != sorted.size(); ++i) {
      auto const widest = std::ranges::max_element(rooms);
      bool const fits = widest != rooms.end() && *widest >= sorted[i];
      if (fits) {
        *widest -= sorted[i];
        continue;
      }
      std::size_t last = i;
      while (last + 1 != sorted.size() && sorted[last + 1] == sorted[i]) ++last;
      rooms.insert(rooms.end(), last - i + 1, capacity - sorted[i]);
      i = last;
    }
    std::vector<std::int64_t> expected;
    for (std::int64_t const room : rooms) expected.push_back(capacity - room);
    std::ranges::sort(expected);
    CHECK(made == expected);
  }
}
