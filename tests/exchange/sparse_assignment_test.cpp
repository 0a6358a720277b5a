// SPDX-License-Identifier: Apache-2.0
#include "../balance/best_relabeling.hpp"
#include "samples.hpp"

#include <omnibal/detail/rank_placer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

/// Parts with gains at some of a few places, each of which has room for several.
struct few_places {
  std::vector<std::vector<std::int64_t>> gains;
  std::vector<std::size_t> rooms;

  std::size_t parts() const { return gains.size(); }
  std::size_t places() const { return rooms.size(); }
  std::size_t room(std::size_t place) const { return rooms[place]; }
  std::size_t largest_room() const { return *std::max_element(rooms.begin(), rooms.end()); }
  template <class F>
  void for_each_offer(std::uint32_t part, F const& f) const {
    for (std::uint32_t place = 0; place != places(); ++place) {
      if (gains[part][place] > 0) f(place, gains[part][place]);
    }
  }
  static std::size_t hubs() { return 0; }
  static std::size_t hub_of(std::size_t) { return 0; }
  static std::pair<std::uint32_t, std::uint32_t> members(std::size_t) { return {}; }
};

few_places random_places(std::uint64_t seed, std::size_t parts, std::size_t places,
                         std::int64_t largest) {
  test::random_amounts random(seed);
  few_places result;
  for (std::size_t place = 0; place != places; ++place) {
    result.rooms.push_back(static_cast<std::size_t>(
        random.between(0, 3) == 0 ? random.between(0, 2) : random.between(1, 40)));
  }
  result.rooms[0] = std::max<std::size_t>(result.rooms[0], 1);
  for (std::size_t part = 0; part != parts; ++part) {
    auto& gains = result.gains.emplace_back(places, 0);
    for (auto& gain : gains) gain = random.between(-largest / 4, largest);
  }
  return result;
}

/// The largest sum of gains, where each place is as many columns as it has room.
std::int64_t max_gain(few_places const& given) {
  std::size_t columns = 0;
  for (std::size_t const room : given.rooms) columns += room;
  std::size_t const size = std::max(columns, given.parts());
  std::vector<std::vector<std::int64_t>> gain(size, std::vector<std::int64_t>(size, 0));
  for (std::size_t part = 0; part != given.parts(); ++part) {
    std::size_t column = 0;
    for (std::size_t place = 0; place != given.places(); ++place) {
      for (std::size_t k = 0; k != given.rooms[place]; ++k) {
        gain[part][column++] = std::max<std::int64_t>(given.gains[part][place], 0);
      }
    }
  }
  return test::max_gain(gain);
}

std::int64_t sum_of_gains(few_places const& given,
                          omnibal::detail::sparse_assignment<std::int64_t> const& assignment) {
  std::int64_t sum = 0;
  std::vector<std::size_t> taken(given.places(), 0);
  for (std::size_t part = 0; part != given.parts(); ++part) {
    std::uint32_t const place = assignment.place_of(part);
    if (place == assignment.none) continue;
    REQUIRE(place < given.places());
    CHECK(given.gains[part][place] > 0);
    CHECK(++taken[place] <= given.rooms[place]);
    sum += given.gains[part][place];
  }
  return sum;
}

}  // namespace

TEST_CASE("an assignment to places with room for several is the best", "[slow]") {
  omnibal::detail::sparse_assignment<std::int64_t> assignment;
  for (std::uint64_t seed = 0; seed != 150; ++seed) {
    std::size_t const parts = seed % 3 == 0 ? 7 : 90;
    std::size_t const places = 1 + seed % 9;
    auto const given = random_places(seed, parts, places, seed % 2 == 0 ? 5 : 1'000'000);
    INFO("seed " << seed);
    assignment.run(given, std::numeric_limits<std::uint64_t>::max());
    CHECK(assignment.is_optimal());
    std::int64_t const most = max_gain(given);
    CHECK(sum_of_gains(given, assignment) == most);
    CHECK(assignment.bound(given) == most);
    assignment.run(given, 0);
    CHECK(sum_of_gains(given, assignment) <= most);
    CHECK(assignment.bound(given) >= most);
  }
}

TEST_CASE("an assignment without parts, and without anything to gain") {
  omnibal::detail::sparse_assignment<std::int64_t> assignment;
  few_places const none{{}, {3, 1}};
  assignment.run(none, 100);
  CHECK(assignment.bound(none) == 0);
  few_places const worthless{{{0, 0}, {0, 0}}, {3, 1}};
  assignment.run(worthless, 100);
  CHECK(assignment.place_of(0) == assignment.none);
  CHECK(assignment.is_optimal());
  CHECK(assignment.bound(worthless) == 0);
}
