// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "packers.hpp"

#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/rng/numpy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct users_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The error names everything that `parts` lists.
void check_names(std::string const& error, std::vector<std::string> const& parts) {
  for (std::string const& part : parts) {
    INFO(error << " must name " << part);
    bool const named = error.find(part) != std::string::npos;
    CHECK(named);
  }
}

/// Every algorithm refuses these arguments with an error that names itself and `parts`.
template <class Samples, class Demand, class Capacity>
void check_refused(Samples const& samples, Demand const& demand, Capacity const& capacity,
                   std::vector<std::string> const& parts) {
  auto const check = [&](std::string const& name, auto const& algorithm) {
    std::string const error = test::error_text<std::invalid_argument>(
        [&] { return algorithm(samples, demand, capacity); });
    check_names(error, {"omnibal::" + name});
    check_names(error, parts);
  };
  test::for_each_packer(check);
  check("packing_bound", omnibal::packing_bound);
}

std::vector<std::int64_t> const lengths{3, 4, 5};

std::string isf_error(omnibal::isf_options const& options) {
  return test::error_text<std::invalid_argument>(
      [&] { return omnibal::isf(lengths, std::identity{}, 10, options); });
}

template <class Threshold>
std::string threshold_error(Threshold const& threshold) {
  return test::error_text<std::invalid_argument>([&] {
    std::vector<omnibal::resources<2>> const samples{{1, 2}};
    return omnibal::isf(samples, std::identity{}, omnibal::resources{9, 4096}, {},
                        omnibal::reaches_any{threshold});
  });
}

}  // namespace

TEST_CASE("packers refuse a capacity that is not positive and finite") {
  auto const as_double = [](std::int64_t length) { return static_cast<double>(length); };
  check_refused(lengths, std::identity{}, 0, {"capacity[0] is 0"});
  check_refused(lengths, std::identity{}, -7, {"capacity[0] is -7"});
  check_refused(lengths, std::identity{}, 0.0, {"capacity[0] is 0"});
  check_refused(lengths, as_double, not_a_number, {"capacity[0] is", "nan"});
  check_refused(lengths, as_double, infinity, {"capacity[0] is inf"});
  check_refused(lengths, std::identity{}, -infinity, {"capacity[0] is -inf"});
  auto const two = [](std::int64_t length) { return omnibal::resources{length, length}; };
  check_refused(lengths, two, omnibal::resources{9, 0}, {"capacity[1] is 0"});
  check_refused(lengths, two, omnibal::resources{9.0, not_a_number}, {"capacity[1] is", "nan"});
}

TEST_CASE("packers refuse a bad capacity where there is no sample") {
  std::vector<std::int64_t> const nothing;
  check_refused(nothing, std::identity{}, 0, {"capacity[0] is 0"});
}

TEST_CASE("packers refuse an unsigned amount above 2^63 - 1") {
  std::vector<std::uint64_t> const huge{1, std::uint64_t{1} << 63};
  check_refused(huge, std::identity{}, 10,
                {"demand of sample 1 is 9223372036854775808, must be at most 9223372036854775807"});
  check_refused(lengths, std::identity{}, huge[1],
                {"capacity[0] is 9223372036854775808, must be at most 9223372036854775807"});
  check_refused(lengths,
                [](std::int64_t length) {
                  return omnibal::resources{length, length};
                },
                omnibal::resources<2, std::uint64_t>{1, huge[1]}, {"capacity[1] is 92233720"});
  CHECK(omnibal::next_fit(std::vector<std::uint64_t>{huge[1] - 1}, std::identity{}, 10).oversized ==
        std::vector<std::uint32_t>{0});
}

TEST_CASE("packers refuse a demand that is negative or not finite") {
  auto const at_2 = [](auto value) {
    return [value](std::int64_t length) { return length == 5 ? value : decltype(value){1}; };
  };
  check_refused(lengths, at_2(-4), 10, {"sample 2", "-4", "resource 0"});
  check_refused(lengths, at_2(-4), std::int64_t{1} << 40, {"sample 2", "-4", "resource 0"});
  check_refused(lengths, at_2(-0.5), 10, {"sample 2", "-0.5", "resource 0"});
  check_refused(lengths, at_2(not_a_number), 10, {"sample 2", "nan", "resource 0"});
  check_refused(lengths, at_2(infinity), 10, {"sample 2", "inf", "resource 0"});
  check_refused(lengths, at_2(-infinity), 10.0, {"sample 2", "-inf", "resource 0"});
  auto const second = [](std::int64_t length) { return omnibal::resources{length, 4 - length}; };
  check_refused(lengths, second, omnibal::resources{10, 10}, {"sample 2", "-1", "resource 1"});
}

TEST_CASE("isf refuses options out of range") {
  check_names(isf_error({.rounds = 0}), {"omnibal::isf", "rounds", "0"});
  check_names(isf_error({.min_gain = -0.25}), {"omnibal::isf", "min_gain", "-0.25"});
  check_names(isf_error({.min_gain = 1.5}), {"omnibal::isf", "min_gain", "1.5"});
  check_names(isf_error({.min_gain = not_a_number}), {"omnibal::isf", "min_gain", "nan"});
  check_names(isf_error({.min_gain = infinity}), {"omnibal::isf", "min_gain", "inf"});
  CHECK(isf_error({.rounds = 1, .min_gain = 1.0}) == "no error");
}

TEST_CASE("isf refuses a threshold that no group can reach") {
  using omnibal::resources;
  check_names(threshold_error(resources{10, 4000}),
              {"omnibal::isf", "threshold[0] is 10", "capacity 9"});
  check_names(threshold_error(resources{9, 4097}),
              {"omnibal::isf", "threshold[1] is 4097", "capacity 4096"});
  check_names(threshold_error(resources{9, -1}), {"omnibal::isf", "threshold[1] is -1"});
  check_names(threshold_error(resources{9.0, not_a_number}),
              {"omnibal::isf", "threshold[1] is", "nan"});
  check_names(threshold_error(resources{9.5, 4000.0}), {"threshold[0] is 9.5", "capacity 9"});
  check_names(threshold_error(resources{9.0, 1e300}), {"threshold[1] is 1e+300"});
  check_names(threshold_error(resources<2, std::uint64_t>{9, ~std::uint64_t{0}}),
              {"threshold[1] is 18446744073709551615"});
  CHECK(threshold_error(resources{9, 4096}) == "no error");
  CHECK(threshold_error(resources{0, 0}) == "no error");
}

TEST_CASE("best_packing refuses to try no order") {
  std::vector<omnibal::resources<2>> const samples{{1, 2}};
  check_names(test::error_text<std::invalid_argument>([&] {
                return omnibal::best_packing(samples, std::identity{}, omnibal::resources{9, 9},
                                             {.orders = 0});
              }),
              {"omnibal::best_packing", "orders", "0"});
}

TEST_CASE("packers pass on what a user's functor throws") {
  auto const text = [](auto const& body) { return test::error_text<users_error>(body); };
  auto const demand = [](std::int64_t length) {
    if (length == 5) throw users_error("demand");
    return length;
  };
  CHECK(text([&] { return omnibal::next_fit(lengths, demand, 10); }) == "demand");
  CHECK(text([&] { return omnibal::isf(lengths, demand, 10); }) == "demand");
  CHECK(text([&] { return omnibal::best_fit_decreasing(lengths, demand, 10); }) == "demand");
  CHECK(text([&] { return omnibal::packing_bound(lengths, demand, 10); }) == "demand");

  auto const keep = [](omnibal::resources<1> const&) -> bool { throw users_error("keep"); };
  auto const shuffle = [](std::span<std::uint32_t>, std::uint64_t) {
    throw users_error("shuffle");
  };
  auto const score = [](auto const&, auto const&) -> int { throw users_error("score"); };
  CHECK(text([&] { return omnibal::isf(lengths, std::identity{}, 10, {}, keep); }) == "keep");
  CHECK(text([&] {
          auto const most = omnibal::reaches_most(omnibal::resources{10});
          return omnibal::isf(lengths, std::identity{}, 10, {}, most, shuffle);
        }) == "shuffle");
  CHECK(text([&] {
          return omnibal::best_fit_decreasing(lengths, std::identity{}, 10, {}, score);
        }) == "score");
}

TEST_CASE("isf refuses a shuffle that is no permutation") {
  auto const error = [](std::uint32_t first) {
    auto const shuffle = [first](std::span<std::uint32_t> order, std::uint64_t) {
      order[0] = first;
    };
    return test::error_text<std::invalid_argument>([&] {
      return omnibal::isf(lengths, std::identity{}, 10, {},
                          omnibal::reaches_most(omnibal::resources{10}), shuffle);
    });
  };
  check_names(error(2), {"omnibal::isf", "shuffle in round 0 names 2 twice"});
  check_names(error(3), {"omnibal::isf", "shuffle in round 0 names 3, there are 3 indices"});
  CHECK(error(0) == "no error");
}

TEST_CASE("numpy_shuffle refuses a seed that NumPy refuses") {
  auto const most = omnibal::reaches_most(omnibal::resources{10});
  auto const error = [&](std::uint64_t seed) {
    return test::error_text<std::invalid_argument>([&] {
      return omnibal::isf(lengths, std::identity{}, 10, {.rounds = 3}, most,
                          omnibal::rng::numpy_shuffle{seed});
    });
  };
  check_names(error(std::uint64_t{1} << 32), {"numpy_shuffle", "4294967296"});
  CHECK(error(7) == "no error");
}

TEST_CASE("packers compile only for matching numbers of resources") {
  using samples = std::vector<omnibal::resources<2>>;
  using three = omnibal::resources<3>;
  using two = omnibal::resources<2>;
  STATIC_REQUIRE(std::invocable<omnibal::next_fit_fn, samples, std::identity, two>);
  STATIC_REQUIRE_FALSE(std::invocable<omnibal::next_fit_fn, samples, std::identity, three>);
  STATIC_REQUIRE_FALSE(std::invocable<omnibal::isf_fn, samples, std::identity, three>);
  STATIC_REQUIRE_FALSE(
      std::invocable<omnibal::best_fit_decreasing_fn, samples, std::identity, int>);
  STATIC_REQUIRE_FALSE(std::invocable<omnibal::packing_bound_fn, samples, int, two>);
  STATIC_REQUIRE(omnibal::packer<omnibal::isf_fn, samples, std::identity, two>);
  STATIC_REQUIRE_FALSE(omnibal::packer<omnibal::packing_bound_fn, samples, std::identity, two>);
}
