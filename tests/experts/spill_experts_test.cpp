// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "spill_faults.hpp"

#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/experts/split_experts.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::effort;
using omnibal::foreign_copy;
using omnibal::solve_status;
using omnibal::spill_experts;
using omnibal::spill_experts_options;
using test::error_text;
using test::skewed_batch;
using test::spill_faults;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

}  // namespace

// A reader of the plan relies on these properties, whatever cap, effort and slots are.
TEST_CASE("spill_experts: plans of many shapes are valid") {
  struct shape {
    std::size_t experts, ranks;
  };
  omnibal::spill_experts_workspace workspace;
  for (shape const& s :
       {shape{128, 64}, shape{256, 32}, shape{64, 64}, shape{32, 4}, shape{3, 8}, shape{9, 1}}) {
    for (std::uint64_t seed = 0; seed != 6; ++seed) {
      auto const given = skewed_batch(seed, s.experts, s.ranks);
      for (double const overload : {0.0, 0.02, 0.1, 0.5, 1e9}) {
        for (std::size_t const slots :
             {std::size_t{0}, std::size_t{1}, std::size_t{2}, unlimited}) {
          spill_experts_options options;
          options.max_overload = overload;
          options.effort = seed % 2 == 0 ? effort::fast : effort::normal;
          if (slots != unlimited) options.slots = slots;
          auto const& plan = spill_experts(given.tokens, given.home, s.ranks, options, workspace);
          INFO(s.experts << " experts, " << s.ranks << " ranks, seed " << seed << ", overload "
                         << overload << ", slots " << slots);
          CHECK(spill_faults(given, plan, slots) == "");
          if (slots == unlimited) CHECK(plan.status == solve_status::solved);
          CHECK(plan == spill_experts(given.tokens, given.home, s.ranks, options));
        }
      }
    }
  }
}

// More effort may not give more copies, and the bound is close where ranks have few experts.
TEST_CASE("spill_experts: the search comes close to the bound") {
  std::size_t fast = 0;
  std::size_t normal = 0;
  std::size_t thorough = 0;
  std::size_t bound = 0;
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    auto const given = skewed_batch(seed, 128, 64);
    auto const copies = [&](effort level) {
      spill_experts_options options;
      options.max_overload = 0.02;
      options.effort = level;
      auto const plan = spill_experts(given.tokens, given.home, 64, options);
      bound += level == effort::fast ? plan.fewest_copies : 0;
      return plan.copies.size();
    };
    fast += copies(effort::fast);
    normal += copies(effort::normal);
    thorough += copies(effort::thorough);
  }
  INFO("copies " << fast << ", " << normal << ", " << thorough << ", bound " << bound);
  CHECK(normal < fast);
  CHECK(thorough < normal);
  CHECK(bound <= thorough);
  CHECK(fast * 100 <= bound * 102);
  CHECK(normal * 100 <= bound * 101);
}

// The smallest rooms that hold a surplus are used, so that the large ones stay for others.
TEST_CASE("spill_experts: surpluses and rooms that fit are paired") {
  // The cap is 100: surpluses of 70 and 40, rooms of 70, 40 and 0.
  std::vector<int> const tokens{140, 170, 30, 60, 100};
  std::vector<std::uint32_t> const home{0, 1, 2, 3, 4};
  auto const plan = spill_experts(tokens, home, 5, {.max_overload = 0});
  CHECK(plan.copies == std::vector<foreign_copy>{{0, 3, 40}, {1, 2, 70}});
  CHECK(plan.home_tokens == std::vector<std::int64_t>{100, 100, 30, 60, 100});
  CHECK(plan.proven);
}

// A surplus of several experts needs a copy of each, however large the rooms are.
TEST_CASE("spill_experts: a copy carries one expert") {
  std::vector<int> const tokens{50, 50, 50, 50, 0};
  std::vector<std::uint32_t> const home{0, 0, 0, 0, 1};
  auto const plan = spill_experts(tokens, home, 2, {.max_overload = 0});
  CHECK(plan.copies.size() == 2);
  CHECK(plan.fewest_copies == 2);
  CHECK(plan.largest == 100);
}

// A trainer with few slots must learn whether no plan exists or none was found.
TEST_CASE("spill_experts: too few slots are said") {
  std::vector<int> const tokens{30, 30, 30, 30, 0};
  std::vector<std::uint32_t> const home{0, 0, 0, 0, 1};
  auto const plan = spill_experts(tokens, home, 2, {.slots = 0, .max_overload = 0});
  CHECK(plan.status == solve_status::infeasible);
  CHECK(plan.largest == 120);
  CHECK(plan.copies.empty());
  auto const one = spill_experts(tokens, home, 2, {.slots = 1, .max_overload = 0.1});
  CHECK(one.status == solve_status::not_found);
  CHECK(one.copies.size() == 1);
  CHECK(one.largest == 90);
  CHECK(spill_experts(tokens, home, 2, {.slots = 2}).status == solve_status::solved);
}

// Even batches, empty batches and sums near the limit must not fail.
TEST_CASE("spill_experts: empty and extreme numbers") {
  std::vector<std::int64_t> const none;
  auto const empty = spill_experts(none, {}, 3);
  CHECK(empty.proven);
  CHECK(empty.rank_tokens == std::vector<std::int64_t>{0, 0, 0});
  std::vector<std::int64_t> const even{7, 7, 7};
  std::vector<std::uint32_t> const home{0, 1, 2};
  CHECK(spill_experts(even, home, 3).copies.empty());
  std::vector<std::int64_t> const huge{std::numeric_limits<std::int64_t>::max(), 0, 0};
  for (double const overload : {0.0, 0.1, 1e300}) {
    auto const plan = spill_experts(huge, home, 3, {.max_overload = overload});
    CHECK(spill_faults({huge, home}, plan, 3) == "");
    CHECK(plan.copies.size() == (overload > 1 ? 0 : 2));
  }
}

// The copies of a plan are copies that `split_experts` accepts, and it levels them further.
TEST_CASE("spill_experts: the split of its copies is at least as even") {
  auto const given = skewed_batch(3, 32, 16);
  auto const plan = spill_experts(given.tokens, given.home, 16, {.slots = 2});
  REQUIRE(plan.status == solve_status::solved);
  // Two slots at home and two for foreign experts; free slots repeat the first expert of the rank.
  std::vector<std::uint32_t> placement;
  for (std::uint32_t r = 0; r != 16; ++r) {
    placement.insert(placement.end(), {2 * r, 2 * r + 1});
    for (auto const& copy : plan.copies) {
      if (copy.rank == r) placement.push_back(copy.expert);
    }
    placement.resize(4 * (r + 1), 2 * r);
  }
  CHECK(omnibal::split_experts(given.tokens, placement, 16).largest <= plan.largest);
}

// Each argument without a plan is refused with its name and value.
TEST_CASE("spill_experts: errors name the argument") {
  using invalid = std::invalid_argument;
  std::vector<int> const tokens{8, 4};
  std::vector<std::uint32_t> const home{0, 1};
  auto const text = [&](std::vector<std::uint32_t> const& own, std::size_t ranks,
                        spill_experts_options const& options) {
    return error_text<invalid>([&] { (void)spill_experts(tokens, own, ranks, options); });
  };
  std::string const start = "omnibal::spill_experts: ";
  CHECK(text(home, 0, {}) == start + "ranks is 0, must be positive");
  CHECK(text({0, 1, 1}, 2, {}) == start + "home has 3 values for 2 experts");
  CHECK(text({0, 2}, 2, {}) == start + "home[1] is 2, must be below the 2 ranks");
  CHECK(text(home, 2, {.max_overload = -0.5}) ==
        start + "options.max_overload is -0.5, must be finite and not negative");
  std::vector<int> const below{1, -2};
  CHECK(error_text<invalid>([&] { (void)spill_experts(below, home, 2); }) ==
        start + "tokens[1] is -2, must be finite and not negative");
  std::vector<std::int64_t> const large{std::numeric_limits<std::int64_t>::max(), 1};
  CHECK(error_text<std::overflow_error>([&] { (void)spill_experts(large, home, 2); }) ==
        start + "the sum of the tokens exceeds the largest value of its type");
}
