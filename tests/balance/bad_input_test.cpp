// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

struct users_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<std::int64_t> const lengths{3, 4, 5};

/// The text of the error that each algorithm gives for these costs of `lengths`; it names them.
template <class Error, class Cost>
void check_refused(Cost const& cost, std::vector<std::string> const& texts, std::size_t parts = 2) {
  auto const check = [&](std::string const& name, auto const& call) {
    std::string const error = test::error_text<Error>(call);
    INFO(error);
    bool const names_itself = error.find("omnibal::" + name + ": ") == 0;
    CHECK(names_itself);
    for (std::string const& text : texts) {
      INFO(text);
      bool const is_named = error.find(text) != std::string::npos;
      CHECK(is_named);
    }
  };
  check("lpt", [&] { return omnibal::lpt(lengths, parts, cost); });
  check("karmarkar_karp", [&] { return omnibal::karmarkar_karp(lengths, parts, cost); });
  check("deal", [&] { return omnibal::deal(lengths, parts, cost); });
  check("balance_optimally", [&] { return omnibal::balance_optimally(lengths, parts, cost); });
  if (parts == 0) return;
  omnibal::grouping const start({0, 3}, {0, 1, 2});
  check("refine_parts", [&] { return omnibal::refine_parts(lengths, start, cost); });
}

/// `value` for the sample 2, one for the others.
template <class T>
auto at_2(T value) {
  return [value](std::int64_t length) { return length == 5 ? value : T{1}; };
}

}  // namespace

TEST_CASE("balancers refuse costs that are negative, not finite or too large") {
  check_refused<std::invalid_argument>(at_2(-4), {"cost[2] is -4"});
  check_refused<std::invalid_argument>(at_2(-0.5), {"cost[2] is -0.5"});
  check_refused<std::invalid_argument>(at_2(not_a_number), {"cost[2] is", "nan"});
  check_refused<std::invalid_argument>(at_2(infinity), {"cost[2] is inf"});
  check_refused<std::invalid_argument>(at_2(-infinity), {"cost[2] is -inf"});
  check_refused<std::invalid_argument>(at_2(std::uint64_t{1} << 63),
                                       {"cost[2] is 9223372036854775808"});
}

TEST_CASE("balancers refuse a sum of costs that leaves its type") {
  check_refused<std::overflow_error>(at_2(largest), {"the sum of the costs"});
  check_refused<std::overflow_error>([](std::int64_t) { return 1e308; }, {"the sum of the costs"});
}

TEST_CASE("balancers refuse to make no parts, or more than indices can name") {
  check_refused<std::invalid_argument>(std::identity{}, {"parts is 0"}, 0);
  auto const text = test::error_text<std::length_error>(
      [] { return omnibal::lpt(lengths, std::size_t{1} << 32); });
  CHECK(text == "omnibal::lpt: parts is 4294967296, must be at most 4294967295");
}

TEST_CASE("balancers refuse equal counts that cannot be") {
  auto const check = [](std::string const& name, auto const& call) {
    std::string const error = test::error_text<std::invalid_argument>(call);
    INFO(error);
    CHECK(error.find("omnibal::" + name) == 0);
    CHECK(error.find("3 samples do not give 2 parts") != std::string::npos);
  };
  constexpr auto equal = omnibal::count_policy::equal;
  check("lpt", [] { return omnibal::lpt(lengths, 2, std::identity{}, {.count = equal}); });
  check("balance_optimally",
        [] { return omnibal::balance_optimally(lengths, 2, std::identity{}, {.count = equal}); });
}

TEST_CASE("balancers name the sample of a bad vector of costs") {
  auto const cost = [](std::int64_t length) { return omnibal::resources{length, 4 - length}; };
  auto const error =
      test::error_text<std::invalid_argument>([&] { return omnibal::lpt(lengths, 2, cost); });
  CHECK(error.find("cost[2] is -1") != std::string::npos);
  auto const overflow = [](std::int64_t) { return omnibal::resources{std::int64_t{1}, largest}; };
  CHECK(test::error_text<std::overflow_error>([&] { return omnibal::lpt(lengths, 2, overflow); }) !=
        "no error");
}

TEST_CASE("balancers pass on what a user's functor throws") {
  auto const cost = [](std::int64_t length) {
    if (length == 5) throw users_error("cost");
    return length;
  };
  CHECK(test::error_text<users_error>([&] { return omnibal::lpt(lengths, 2, cost); }) == "cost");
  CHECK(test::error_text<users_error>([&] { return omnibal::deal(lengths, 2, cost); }) == "cost");
}
