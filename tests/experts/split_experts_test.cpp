// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "split_faults.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/experts/split_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::split_experts;
using omnibal::split_experts_options;
using omnibal::split_experts_workspace;
using test::error_text;
using test::placed_batch;
using test::split_faults;
using test::split_instance;

// An option cannot view an array that ends before the call.
static_assert(std::is_assignable_v<decltype(split_experts_options::first_tokens)&,
                                   std::vector<std::int64_t> const&>);
static_assert(!std::is_assignable_v<decltype(split_experts_options::first_tokens)&,
                                    std::vector<std::int64_t>>);

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

}  // namespace

// The cut proves that the split is optimal on shapes that no brute force reaches.
TEST_CASE("split_experts: the cut proves splits of large placements") {
  struct shape {
    std::size_t experts, slots, ranks;
  };
  split_experts_workspace workspace;
  for (shape const& s : {shape{256, 34, 8}, shape{256, 18, 16}, shape{256, 9, 32},
                         shape{256, 5, 64}, shape{64, 3, 200}, shape{5, 5, 3}, shape{1, 1, 9}}) {
    for (std::uint64_t seed = 0; seed != 20; ++seed) {
      auto const given = placed_batch(seed, s.experts, s.slots, s.ranks);
      auto const& split = split_experts(given.tokens, given.placement, s.ranks, workspace);
      INFO(s.experts << " experts, " << s.ranks << " x " << s.slots << ", seed " << seed);
      CHECK(split_faults(given, split) == "");
      CHECK(split == split_experts(given.tokens, given.placement, s.ranks));
    }
  }
}

// Experts with one copy fix the largest rank, and the cut consists of the ranks that they fill.
TEST_CASE("split_experts: one copy of each expert leaves no choice") {
  std::vector<int> const tokens{5, 1, 9, 2};
  std::vector<std::uint32_t> const placement{0, 1, 2, 3};
  auto const split = split_experts(tokens, placement, 2);
  CHECK(split.tokens == std::vector<std::int64_t>{5, 1, 9, 2});
  CHECK(split.rank_tokens == std::vector<std::int64_t>{6, 11});
  CHECK(split.largest == 11);
  CHECK(split.full_ranks == std::vector<std::uint32_t>{1});
}

// A path through several ranks is needed here: each expert has copies on two neighbors only.
TEST_CASE("split_experts: tokens move along a chain of ranks") {
  std::vector<std::int64_t> const tokens{100, 0, 0, 0};
  std::vector<std::uint32_t> const placement{0, 0, 0, 1, 1, 2, 2, 3};
  split_instance given{tokens, placement, {0, 0, 0, 0}};
  CHECK(split_experts(tokens, placement, 4).largest == 50);
  given.tokens = {40, 40, 40, 0};
  auto const split = split_experts(given.tokens, placement, 4);
  CHECK(split_faults(given, split) == "");
  CHECK(split.largest == 30);
}

// Ranks that serve other tokens, such as the ones of shared experts, get fewer.
TEST_CASE("split_experts: first tokens count") {
  std::vector<int> const tokens{10, 10};
  std::vector<std::uint32_t> const placement{0, 1, 1, 0, 0, 1};
  std::vector<std::int64_t> const first{0, 7, 3};
  auto const split = split_experts(tokens, placement, 3, {.first_tokens = first});
  CHECK(split.rank_tokens == std::vector<std::int64_t>{10, 10, 10});
  std::vector<std::int64_t> const heavy{0, 100, 3};
  auto const full = split_experts(tokens, placement, 3, {.first_tokens = heavy});
  CHECK(full.largest == 100);
  CHECK(full.full_ranks == std::vector<std::uint32_t>{1});
  CHECK(split_faults({{10, 10}, placement, heavy}, full) == "");
}

// Steps without tokens, layers without experts and sums near the limit must not fail.
TEST_CASE("split_experts: empty and extreme numbers") {
  std::vector<std::int64_t> const none;
  CHECK(split_experts(none, {}, 3).rank_tokens == std::vector<std::int64_t>{0, 0, 0});
  std::vector<int> const zeros(4, 0);
  std::vector<std::uint32_t> const two{0, 1};
  CHECK(split_experts(zeros, two, 2).largest == 0);
  std::vector<std::int64_t> const huge{most};
  std::vector<std::uint32_t> const everywhere(5, 0);
  auto const split = split_experts(huge, everywhere, 5);
  CHECK(split_faults({huge, everywhere, std::vector<std::int64_t>(5, 0)}, split) == "");
  CHECK(split.largest == most / 5 + 1);
}

// Two copies on one rank are no reason to refuse a placement of another program.
TEST_CASE("split_experts: two copies on a rank") {
  split_instance const given{{90, 10}, {0, 0, 0, 1}, {0, 0}};
  auto const split = split_experts(given.tokens, given.placement, 2);
  CHECK(split_faults(given, split) == "");
  CHECK(split.largest == 50);
}

// Each argument without a split is refused with its name and value.
TEST_CASE("split_experts: errors name the argument") {
  using invalid = std::invalid_argument;
  std::vector<int> const tokens{8, 4, 0};
  std::vector<std::uint32_t> const placement{0, 1};
  auto const text = [&](std::vector<std::uint32_t> const& own, std::size_t ranks,
                        split_experts_options const& options) {
    return error_text<invalid>([&] { (void)split_experts(tokens, own, ranks, options); });
  };
  std::string const start = "omnibal::split_experts: ";
  CHECK(text(placement, 0, {}) == start + "ranks is 0, must be positive");
  CHECK(text(placement, 3, {}) == start + "slots has 2 values, must have a multiple of 3 ranks");
  CHECK(text({0, 3}, 2, {}) == start + "slots[1] is 3, must be below the 3 experts");
  CHECK(text({0, 2}, 2, {}) == start + "slots has none for expert 1 with 4 tokens, must have one");
  std::vector<std::int64_t> const three(3, 0);
  CHECK(text(placement, 2, {.first_tokens = three}) ==
        start + "options.first_tokens has 3 values for 2 ranks");
  std::vector<std::int64_t> const negative{0, -1};
  CHECK(text(placement, 2, {.first_tokens = negative}) ==
        start + "options.first_tokens[1] is -1, must be finite and not negative");
  std::vector<int> const below{1, -2};
  CHECK(error_text<invalid>([&] { (void)split_experts(below, placement, 2); }) ==
        start + "tokens[1] is -2, must be finite and not negative");
  std::vector<std::int64_t> const large{most, 1};
  CHECK(error_text<std::overflow_error>([&] { (void)split_experts(large, placement, 2); }) ==
        start + "the sum of the tokens exceeds the largest value of its type");
  std::vector<std::int64_t> const first{most, 0};
  CHECK(error_text<std::overflow_error>([&] {
          (void)split_experts(tokens, placement, 2, {.first_tokens = first});
        }) == start + "the sum of the tokens exceeds the largest value of its type");
}
