// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/demand.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <catch.hpp>

namespace {

using omnibal::aligned;
using omnibal::demand_of;
using omnibal::resources;
using test::error_text;

struct clip {
  std::int32_t images = 0;
  std::uint16_t tokens = 0;
  double seconds = 0.0;
  std::uint64_t bytes = 0;
  bool video = false;
  std::string name{};

  [[nodiscard]] std::int64_t frames() const { return 25 * static_cast<std::int64_t>(seconds); }
};

std::int64_t constexpr largest = std::numeric_limits<std::int64_t>::max();

template <class Demand>
using measured = std::invoke_result_t<Demand const&, clip const&>;

using two_integers = decltype(demand_of(&clip::images, &clip::tokens));
using with_seconds = decltype(demand_of(&clip::images, &clip::seconds));
static_assert(std::is_same_v<measured<two_integers>, resources<2>>);
static_assert(std::is_same_v<measured<with_seconds>, resources<2, double>>);

static_assert(!std::is_invocable_v<decltype(demand_of(&clip::video)), clip const&>);
static_assert(!std::is_invocable_v<decltype(demand_of(&clip::images, &clip::name)), clip const&>);
static_assert(!std::is_invocable_v<two_integers, int>);

template <class... Measures>
concept measures = requires(Measures... each) {
  demand_of(each...);
};
static_assert(measures<int clip::*, int clip::*> && !measures<>);

template <class Demand, class Multiple>
inline constexpr bool aligns = std::is_invocable_v<aligned<Demand, Multiple> const&, clip const&>;
static_assert(aligns<two_integers, resources<2>> && aligns<std::uint64_t clip::*, int>);
static_assert(!aligns<two_integers, int> && !aligns<two_integers, resources<3>>);
static_assert(!aligns<with_seconds, resources<2>>);

template <class Multiple>
concept multiple = requires {
  typename aligned<two_integers, Multiple>;
};
static_assert(multiple<resources<2>> && multiple<resources<2, int>>);
static_assert(!multiple<resources<2, double>> && !multiple<bool> && !multiple<std::string>);

constexpr auto doubled = demand_of([](int sample) { return 2 * sample; });
static_assert(doubled(21) == resources{42});

}  // namespace

TEST_CASE("a demand has one resource per member") {
  clip const sample{.images = 5, .tokens = 1341, .seconds = 2.5};
  CHECK(demand_of(&clip::images)(sample) == resources{5});
  CHECK(demand_of(&clip::images, &clip::tokens)(sample) == resources{5, 1341});
  CHECK(demand_of(&clip::tokens, &clip::images)(sample) == resources{1341, 5});
}

TEST_CASE("a demand mixes members, member functions and lambdas") {
  clip const sample{.images = 5, .seconds = 2.5};
  auto const demand =
      demand_of(&clip::images, &clip::frames, [](clip const& c) { return c.images * 256; });
  CHECK(demand(sample) == resources{5, 50, 1280});
}

TEST_CASE("one floating-point amount makes all of them double") {
  CHECK(demand_of(&clip::images, &clip::seconds)(clip{.images = 5, .seconds = 2.5}) ==
        resources{5.0, 2.5});
}

TEST_CASE("an unsigned amount above the signed range is an error") {
  auto const demand = demand_of(&clip::images, &clip::bytes);
  auto const bytes = static_cast<std::uint64_t>(largest);
  CHECK(demand(clip{.bytes = bytes}) == resources<2>{0, largest});
  CHECK(
      error_text<std::invalid_argument>([&] { (void)demand(clip{.bytes = bytes + 1}); }) ==
      "omnibal::demand_of: amount[1] is 9223372036854775808, must be at most 9223372036854775807");
}

TEST_CASE("an aligned demand is the next multiple") {
  aligned const demand{demand_of(&clip::images, &clip::tokens), resources{1, 128}};
  struct {
    std::uint16_t tokens;
    std::int64_t expected;
  } const rows[] = {{0, 0}, {1, 128}, {127, 128}, {128, 128}, {129, 256}, {65535, 65536}};
  for (auto const& row : rows) {
    CAPTURE(row.tokens);
    CHECK(demand(clip{.images = 5, .tokens = row.tokens}) == resources<2>{5, row.expected});
  }
}

TEST_CASE("a single weight has a single multiple") {
  CHECK(aligned{[](int tokens) { return tokens; }, 16}(17) == resources{32});
  CHECK(aligned{&clip::bytes, resources{4096}}(clip{.bytes = 1}) == resources{4096});
}

TEST_CASE("a negative demand passes alignment unchanged") {
  aligned const demand{&clip::images, 16};
  CHECK(demand(clip{.images = -1}) == resources{-1});
  CHECK(demand(clip{.images = -33}) == resources{-33});
}

TEST_CASE("a multiple below one is an error") {
  auto const demand = demand_of(&clip::images, &clip::tokens);
  CHECK(error_text<std::invalid_argument>([&] {
          aligned{demand, resources{1, 0}};
        }) == "omnibal::aligned: multiple[1] is 0, must be positive");
  CHECK(error_text<std::invalid_argument>([&] {
          aligned{demand, resources{-8, 1}};
        }) == "omnibal::aligned: multiple[0] is -8, must be positive");
}

TEST_CASE("rounding up beyond the type is an error") {
  auto const bytes = static_cast<std::uint64_t>(largest);
  aligned const demand{&clip::bytes, 128};
  CHECK(demand(clip{.bytes = bytes - 127}) == resources<1>{largest - 127});
  CHECK(error_text<std::overflow_error>([&] { (void)demand(clip{.bytes = bytes - 126}); }) ==
        "omnibal::aligned: a rounded demand exceeds the largest value of its type");
  CHECK_THROWS_AS(demand(clip{.bytes = bytes + 1}), std::invalid_argument);
}
