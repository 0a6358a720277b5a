// SPDX-License-Identifier: Apache-2.0
#include "every_plan.hpp"

#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_option;
using omnibal::select_recompute;
using omnibal::solve_status;
using numbers = std::vector<std::uint32_t>;

/// Nothing recomputed, the attention, everything.
constexpr std::array<activation_option<>, 3> transformer_layer{activation_option<>{0, 1968, 0},
                                                               activation_option<>{400, 1181, 787},
                                                               activation_option<>{3980, 98, 1870}};

/// A trainer's own type.
struct profile {
  double time;
  std::uint32_t bytes;
};

struct layer {
  std::string name;
  std::vector<profile> ways;
};

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 2;

/// The least time of so many equal layers, by trying everything; their bytes may exceed 2^63.
std::int64_t min_time(std::span<activation_option<> const> choices, std::size_t layers,
                      std::int64_t budget) {
  if (layers == 0) return 0;
  std::int64_t least = never;
  for (activation_option<> const& one : choices) {
    if (one.bytes > budget) continue;
    least = std::min(least, one.time + min_time(choices, layers - 1, budget - one.bytes));
  }
  return least;
}

}  // namespace

TEST_CASE("select_recompute keeps what fits and recomputes the cheapest") {
  std::vector<std::array<activation_option<>, 2>> const layers{
      {activation_option<>{0, 100}, activation_option<>{7, 10}},
      {activation_option<>{0, 100}, activation_option<>{3, 10}},
      {activation_option<>{0, 100}, activation_option<>{5, 10}},
  };
  auto const with = [&](std::int64_t budget) { return select_recompute(layers, budget); };
  CHECK(with(300).choices == numbers{0, 0, 0});
  CHECK(with(299).choices == numbers{0, 1, 0});
  CHECK(with(210).choices == numbers{0, 1, 0});
  CHECK(with(209).choices == numbers{0, 1, 1});
  CHECK(with(30).choices == numbers{1, 1, 1});
  CHECK(with(210).time == 3);
  CHECK(with(210).lower_bound == 3);
  CHECK(with(210).proven);
  CHECK(with(210).bytes == 210);
  CHECK(with(210).missing_bytes == 0);
}

TEST_CASE("select_recompute says how many bytes are missing") {
  std::vector<std::array<activation_option<>, 3>> const layers(4, transformer_layer);
  omnibal::select_recompute_options const options{.in_flight = 3, .reserve_bytes = 50};
  auto const result = select_recompute(layers, 3000, options);
  CHECK(result.status == solve_status::infeasible);
  CHECK(result.choices.empty());
  CHECK(result.bytes == 3 * 4 * 98 + 1870 + 50);
  CHECK(result.missing_bytes == 3 * 4 * 98 + 1870 + 50 - 3000);
  CHECK(select_recompute(layers, result.bytes, options).status == solve_status::solved);
  CHECK(select_recompute(layers, result.bytes - 1, options).missing_bytes == 1);
  CHECK(select_recompute(layers, -7).missing_bytes == 4 * 98 + 1870 + 7);
}

TEST_CASE("select_recompute counts in-flight micro-batches, the transient peak and the reserve") {
  std::vector<std::array<activation_option<>, 3>> const layers(4, transformer_layer);
  // The transient bytes of a layer count once, and those of the largest only.
  CHECK(select_recompute(layers, 4 * 98 + 1870).choices == numbers{2, 2, 2, 2});
  // Two micro-batches of 1181 + 3 * 98 and 1870 for one layer.
  CHECK(select_recompute(layers, 2 * 1475 + 1870, {.in_flight = 2}).choices == numbers{1, 2, 2, 2});
  CHECK(select_recompute(layers, 2 * 1475 + 1869, {.in_flight = 2}).choices == numbers{2, 2, 2, 2});
  CHECK(select_recompute(layers, 4 * 1181 + 787 + 5, {.reserve_bytes = 5}).choices ==
        numbers{1, 1, 1, 1});
  CHECK(select_recompute(layers, 4 * 1181 + 787 + 5, {.reserve_bytes = 6}).choices ==
        numbers{0, 1, 2, 2});
}

TEST_CASE("select_recompute gives up a saving whose transient peak costs more") {
  // The second choice of layer 0 saves 60 bytes of 100 but needs 500 for a moment.
  test::layers_type const layers{{{0, 100, 0}, {1, 40, 500}}, {{0, 100, 0}, {50, 40, 0}}};
  CHECK(select_recompute(layers, 200).choices == numbers{0, 0});
  CHECK(select_recompute(layers, 199).choices == numbers{0, 1});
  CHECK(select_recompute(layers, 640).choices == numbers{0, 0});
}

TEST_CASE("select_recompute takes the first of equal choices and orders those of equal layers") {
  test::layers_type const same(3, test::layer_choices{{5, 10}, {5, 10}});
  CHECK(select_recompute(same, 100).choices == numbers{0, 0, 0});
  test::layers_type const three(3, test::layer_choices{{5, 10}, {0, 30}});
  CHECK(select_recompute(three, 70).choices == numbers{0, 1, 1});
}

TEST_CASE("select_recompute takes a trainer's own types, functors and flat arrays") {
  std::vector<layer> const model{{"a", {{0.0, 90}, {0.25, 10}}}, {"b", {{0.0, 90}, {0.5, 10}}}};
  auto const result = select_recompute(model, &layer::ways, 100);
  CHECK(result.choices == numbers{1, 0});
  CHECK(result.time == 0.25);
  CHECK(result.proven);

  std::vector<activation_option<>> const flat{{0, 90}, {3, 10}, {0, 90}, {1, 50}, {6, 10}};
  std::vector<std::size_t> const offsets{0, 2, 5};
  std::vector<std::size_t> const indices{0, 1};
  auto const choices_of = [&](std::size_t i) {
    return std::span(flat).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  };
  CHECK(select_recompute(indices, choices_of, 140).choices == numbers{0, 1});
  CHECK(select_recompute(indices, choices_of, 139).choices == numbers{1, 0});
}

TEST_CASE("select_recompute of no layers needs the reserve only") {
  test::layers_type const none;
  auto const result = select_recompute(none, 10, {.reserve_bytes = 10});
  CHECK(result.status == solve_status::solved);
  CHECK(result.proven);
  CHECK(result.choices.empty());
  CHECK(result.time == 0);
  CHECK(result.bytes == 10);
  CHECK(select_recompute(none, 9, {.reserve_bytes = 10}).missing_bytes == 1);
}

TEST_CASE("select_recompute takes the largest numbers") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  test::layers_type const layers{{{0, largest, 0}, {largest / 2, 0, 0}},
                                 {{0, largest, 0}, {largest / 2, 0, 0}}};
  CHECK(select_recompute(layers, largest).choices == numbers{0, 1});
  CHECK(select_recompute(layers, largest - 1).time == largest - 1);
  CHECK(select_recompute(layers, 0, {.in_flight = largest}).choices == numbers{1, 1});
  CHECK(select_recompute(layers, largest, {.states = 1}).choices.size() == 2);
}

TEST_CASE("select_recompute stays within the budget where the bytes of equal layers exceed 2^63") {
  omnibal::rng::engine words(7);
  for (int instance = 0; instance != 3000; ++instance) {
    auto const below = [&words](std::uint64_t count) {
      return static_cast<std::int64_t>(omnibal::rng::below(words, count));
    };
    test::layer_choices choices{{below(50), 0, 0}};
    for (int k = 0; k != 3; ++k) {
      std::int64_t const time = below(50);
      choices.push_back({time, below(std::uint64_t{1} << 63), 0});
    }
    test::layers_type const layers(static_cast<std::size_t>(4 + instance % 4), choices);
    std::int64_t const budget =
        std::numeric_limits<std::int64_t>::max() - below(std::uint64_t{1} << 60);
    INFO("instance " << instance);
    auto const result = select_recompute(layers, budget);
    CHECK(result.proven);
    CHECK(result.time == min_time(choices, layers.size(), budget));
  }
}

TEST_CASE("choice deduces its type") {
  static_assert(std::same_as<decltype(activation_option{1.5, 100}), activation_option<double>>);
  static_assert(
      std::same_as<decltype(activation_option{1, 100, 10}), activation_option<std::int64_t>>);
  CHECK(activation_option{3, 100}.transient_bytes == 0);
}

namespace {

using algorithm = omnibal::select_recompute_fn;

struct no_bytes {
  double time;
};
struct fractional_bytes {
  double time;
  double bytes;
};

static_assert(std::invocable<algorithm, test::layers_type, std::int64_t>);
static_assert(std::invocable<algorithm, std::vector<layer>, std::vector<profile> layer::*, int>);
static_assert(!std::invocable<algorithm, std::vector<layer>, int>);
static_assert(!std::invocable<algorithm, test::layers_type>);
static_assert(!std::invocable<algorithm, std::vector<std::vector<no_bytes>>, int>);
static_assert(!std::invocable<algorithm, std::vector<std::vector<fractional_bytes>>, int>);
static_assert(!std::invocable<algorithm, std::vector<activation_option<>>, int>);

}  // namespace
