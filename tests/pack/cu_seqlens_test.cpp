// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "to_vector.hpp"

#include <omnibal/grouping.hpp>
#include <omnibal/pack/cu_seqlens.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::cu_seqlens;
using omnibal::grouping;
using omnibal::sequence_offsets;
using test::error_text;
using test::to_vector;

using tokens = std::vector<std::int32_t>;
using lengths = std::vector<std::int64_t>;

constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();

template <class Samples, class Length>
inline constexpr bool has_offsets =
    std::is_invocable_v<decltype(cu_seqlens), grouping const&, Samples const&, Length>;
static_assert(has_offsets<lengths, std::identity>);
static_assert(!has_offsets<std::vector<double>, std::identity>);
static_assert(!has_offsets<std::list<int>, std::identity>);

}  // namespace

TEST_CASE("each group has cumulative lengths from zero") {
  struct sample {
    std::uint16_t length;
    bool unused;
  };
  std::deque<sample> const samples{{4, false}, {0, false}, {7, false}, {2, false}};
  sequence_offsets const offsets =
      cu_seqlens(grouping({0, 2, 2, 4, 5}, {2, 0, 3, 1, 1}), samples, &sample::length);

  std::vector<tokens> const expected{{0, 7, 11}, {0}, {0, 2, 2}, {0, 0}};
  tokens const longest{7, 0, 2, 0};
  tokens const counts{11, 0, 2, 0};
  REQUIRE(offsets.size() == expected.size());
  CHECK_FALSE(offsets.empty());
  for (std::size_t g = 0; g != expected.size(); ++g) {
    CAPTURE(g);
    CHECK(to_vector(offsets[g]) == expected[g]);
    CHECK(offsets.longest(g) == longest[g]);
    CHECK(offsets.tokens(g) == counts[g]);
  }
  CHECK(to_vector(offsets.offsets()) == tokens{0, 7, 11, 0, 0, 2, 2, 0, 0});
  CHECK(to_vector(offsets.begins()) == std::vector<std::size_t>{0, 3, 4, 7, 9});
}

TEST_CASE("no groups have no offsets") {
  for (sequence_offsets const& none : {sequence_offsets(), cu_seqlens(grouping(), lengths{})}) {
    CHECK(none.empty());
    CHECK(none.size() == 0);
    CHECK(none.offsets().empty());
  }
  auto const none = cu_seqlens(grouping(), lengths{});
  CHECK(to_vector(none.begins()) == std::vector<std::size_t>{0});
}

TEST_CASE("position ids restart with each sequence") {
  sequence_offsets const offsets = cu_seqlens(grouping({0, 3, 3}, {0, 1, 2}), lengths{3, 0, 2});
  tokens ids{-1};
  offsets.position_ids(0, std::back_inserter(ids));
  CHECK(ids == tokens{-1, 0, 1, 2, 0, 1});
  offsets.position_ids(1, std::back_inserter(ids));
  CHECK(ids.size() == 6);

  tokens room(6, -1);
  CHECK(offsets.position_ids(0, room.begin()) == room.begin() + 5);
  CHECK(room == tokens{0, 1, 2, 0, 1, -1});
}

TEST_CASE("a sequence must be a sample of a length that is not negative") {
  CHECK(error_text<std::invalid_argument>([] {
          (void)cu_seqlens(grouping({0, 1, 2}, {0, 2}), lengths{4, 5});
        }) == "omnibal::cu_seqlens: group 1 has item 2, but there are 2 samples");
  CHECK(error_text<std::invalid_argument>([] {
          (void)cu_seqlens(grouping({0, 2}, {0, 1}), lengths{4, -5});
        }) == "omnibal::cu_seqlens: length[1] is -5, must be finite and not negative");
}

TEST_CASE("a group has at most as many tokens as 32 bits count") {
  grouping const pair({0, 2}, {0, 1});
  CHECK(cu_seqlens(pair, lengths{largest - 9, 9}).tokens(0) == largest);
  CHECK(cu_seqlens(grouping({0, 1, 2}, {0, 1}), lengths{largest, largest}).longest(1) == largest);
  CHECK(error_text<std::overflow_error>([&] {
          (void)cu_seqlens(pair, lengths{largest, 1});
        }) ==
        "omnibal::cu_seqlens: the number of tokens of group 0 exceeds the largest value of its "
        "type");
  std::int64_t const huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(cu_seqlens(pair, lengths{huge, 1}), std::overflow_error);
  CHECK_THROWS_AS(cu_seqlens(pair, lengths{1, huge}), std::overflow_error);
}
