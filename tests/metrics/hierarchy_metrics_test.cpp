// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/steps.hpp>

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

using omnibal::attention_balance;
using omnibal::communication_ratio;
using omnibal::grouping;
using omnibal::steps;

struct document {
  std::int64_t tokens;
};

std::vector<int> const lengths{3, 1, 2, 5, 0};
/// Squares 10, 4, 25, 0.
grouping const groups({0, 2, 3, 4, 5}, {0, 1, 2, 3, 4});

static_assert(!std::invocable<omnibal::attention_balance_fn, steps, grouping, std::vector<double>>);
static_assert(
    !std::invocable<omnibal::communication_ratio_fn, grouping, std::vector<int>, std::string>);

}  // namespace

TEST_CASE("attention balance is the mean share of waiting over the steps") {
  // 10 | 4, then 25 | 0.
  steps const schedule = omnibal::make_steps({{0}, {1}, {2}, {3}}, 2);
  CHECK(attention_balance(schedule, groups, lengths) == Approx(((1 - 14.0 / 20) + 0.5) / 2));
  // All in one step of two ranks with two micro-batches: 14 | 25.
  steps const together = omnibal::make_steps({{0, 1}, {2, 3}}, 2);
  CHECK(attention_balance(together, groups, lengths) == Approx(1 - 39.0 / 50));
}

TEST_CASE("ranks without groups wait, steps without work do not count as waiting") {
  CHECK(attention_balance(omnibal::make_steps({{2}, {}, {}, {}}, 4), groups, lengths) ==
        Approx(0.75));
  CHECK(attention_balance(omnibal::make_steps({{3}, {}}, 2), groups, lengths) == 0.0);
  CHECK(attention_balance(steps(3), groups, lengths) == 0.0);
  CHECK(attention_balance(omnibal::make_steps({{0}, {1}}, 1), groups, lengths) == 0.0);
}

TEST_CASE("attention is by the squares of samples, not by the square of their sum") {
  // 4 tokens each: 10 of 3 + 1, 16 of one of 4.
  std::vector<document> const documents{{3}, {1}, {4}};
  steps const schedule = omnibal::make_steps({{0}, {1}}, 2);
  CHECK(attention_balance(schedule, grouping({0, 2, 3}, {0, 1, 2}), documents, &document::tokens) ==
        Approx(1 - 26.0 / 32));
}

TEST_CASE("communication ratio is the share of tokens in shared groups") {
  auto const shared_from = [](std::uint32_t first) {
    return [first](std::uint32_t group) { return group >= first ? 8 : 1; };
  };
  CHECK(communication_ratio(groups, lengths, shared_from(0)) == 1.0);
  CHECK(communication_ratio(groups, lengths, shared_from(1)) == Approx(7.0 / 11));
  CHECK(communication_ratio(groups, lengths, shared_from(2)) == Approx(5.0 / 11));
  CHECK(communication_ratio(groups, lengths, shared_from(9)) == 0.0);
  CHECK(communication_ratio(grouping(), lengths, shared_from(0)) == 0.0);
}

TEST_CASE("bad groups, lengths and degrees are errors of these metrics") {
  steps const schedule = omnibal::make_steps({{0}, {4}}, 2);
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(attention_balance(schedule, groups, lengths));
        }) == "omnibal::attention_balance: step 0 names group 4 of 4");
  steps const one = omnibal::make_steps({{0}}, 1);
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(attention_balance(one, groups, std::vector<int>{1}));
        }) == "omnibal::attention_balance: group 0 has item 1, but there are 1 samples");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(attention_balance(one, groups, std::vector<int>{1, -2, 1, 1, 1}));
        }) == "omnibal::attention_balance: length[1] is -2, must be finite and not negative");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(communication_ratio(groups, lengths, [](std::uint32_t) { return 0; }));
        }) == "omnibal::communication_ratio: the degree of group 0 is 0, must be at least 1");
}

TEST_CASE("squares and sums that leave their type are errors") {
  constexpr std::int64_t large = 3'037'000'500;
  grouping const pair({0, 1, 2}, {0, 1});
  steps const schedule = omnibal::make_steps({{0}, {1}}, 2);
  auto const of = [&](std::vector<std::int64_t> const& given) {
    return test::error_text<std::overflow_error>(
        [&] { static_cast<void>(attention_balance(schedule, pair, given)); });
  };
  CHECK(of({1, large}) ==
        "omnibal::attention_balance: the square of length[1] exceeds the largest value of its "
        "type");
  CHECK(
      of({large - 1, large - 1}) ==
      "omnibal::attention_balance: the sum over all of them exceeds the largest value of its type");
  CHECK(test::error_text<std::overflow_error>([&] {
          std::vector<std::int64_t> const huge(2, std::numeric_limits<std::int64_t>::max());
          static_cast<void>(communication_ratio(pair, huge, [](std::uint32_t) { return 1; }));
        }) ==
        "omnibal::communication_ratio: the sum of the lengths exceeds the largest value of its "
        "type");
}
