// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::resources;
using omnibal::detail::capacity_tree;
using omnibal::detail::uint128;

/// The part that a look at every part finds.
template <class Layout>
std::size_t first_least(Layout const& layout, std::vector<typename Layout::room_type> const& rooms,
                        typename Layout::demand_type const& demand,
                        std::vector<uint128> const& words) {
  std::size_t best = rooms.size();
  for (std::size_t part = 0; part != rooms.size(); ++part) {
    if (!layout.fits(rooms[part], demand)) continue;
    if (best == rooms.size() || words[part] < words[best]) best = part;
  }
  return best;
}

template <class T, std::size_t R>
resources<R, T> amounts(test::random_amounts& random, resources<R, T> const& most) {
  resources<R, T> result{};
  for (std::size_t r = 0; r != R; ++r) {
    result[r] = static_cast<T>(random.between(0, static_cast<std::int64_t>(most[r])));
  }
  return result;
}

/// Fills parts with random samples, each into the part that is found, until nothing has room.
template <std::size_t R, class T>
void fill_parts(std::size_t parts, resources<R, T> const& capacity, std::uint64_t seed) {
  omnibal::detail::with_layout(capacity, [&](auto const& layout) {
    using layout_type = std::remove_cvref_t<decltype(layout)>;
    test::random_amounts random(seed);
    std::vector<typename layout_type::room_type> rooms(parts, layout.empty_room());
    std::vector<uint128> words(parts, 0);
    capacity_tree<layout_type> tree(layout, rooms);
    CHECK_FALSE(tree.is_filled());
    tree.fill([&](std::size_t part) { return words[part]; });
    CHECK(tree.is_filled());
    std::size_t none = 0;
    for (std::size_t sample = 0; none != 4; ++sample) {
      resources<R, T> most = capacity;
      // Small samples fill what large ones leave, and some have no demand at all.
      for (std::size_t r = 0; r != R; ++r) most[r] /= static_cast<T>(1 + sample % 5);
      auto const demand = layout.encode(amounts(random, most));
      std::size_t const expected = first_least(layout, rooms, demand, words);
      std::size_t const part = tree.find(demand);
      REQUIRE(part == expected);
      if (part == parts) {
        ++none;
        continue;
      }
      layout.take(rooms[part], demand);
      words[part] += static_cast<uint128>(random.between(0, 2)) << 64;
      tree.set(part, words[part]);
    }
  });
}

}  // namespace

TEST_CASE("capacity_tree finds the first least part with room") {
  std::uint64_t seed = 0;
  for (std::size_t const parts : {1u, 2u, 3u, 7u, 64u, 100u}) {
    fill_parts(parts, resources<1>{100}, ++seed);
    fill_parts(parts, resources<2>{9, 4096}, ++seed);
    fill_parts(parts, resources<3>{std::int64_t{1} << 40, 1000, std::int64_t{1} << 40}, ++seed);
    fill_parts(parts, resources<2, double>{7.0, 1000.0}, ++seed);
  }
}

TEST_CASE("capacity_tree may be filled when parts already have samples") {
  omnibal::detail::with_layout(resources<1>{10}, [&](auto const& layout) {
    using layout_type = std::remove_cvref_t<decltype(layout)>;
    std::vector<typename layout_type::room_type> rooms(5, layout.empty_room());
    std::vector<uint128> const words{4, 1, 2, 0, 3};
    for (std::size_t const part : {1u, 3u}) {
      layout.take(rooms[part], layout.encode(resources<1>{8}));
    }
    capacity_tree<layout_type> tree(layout, rooms);
    tree.fill([&](std::size_t part) { return words[part]; });
    CHECK(tree.find(layout.encode(resources<1>{2})) == 3);
    CHECK(tree.find(layout.encode(resources<1>{3})) == 2);
    CHECK(tree.find(layout.encode(resources<1>{10})) == 2);
    for (std::size_t const part : {0u, 2u, 4u}) {
      layout.take(rooms[part], layout.encode(resources<1>{1}));
      tree.set(part, words[part]);
    }
    CHECK(tree.find(layout.encode(resources<1>{10})) == 5);
  });
}
