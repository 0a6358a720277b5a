// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/check.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include <catch.hpp>

namespace {

using test::error_text;
namespace detail = omnibal::detail;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

static_assert(omnibal::max_index_count == 4294967295u);

static_assert(detail::is_valid_weight(0) && detail::is_valid_weight(largest));
static_assert(!detail::is_valid_weight(-1));
static_assert(detail::is_valid_weight(0.0) && detail::is_valid_weight(-0.0));
static_assert(detail::is_valid_weight(std::numeric_limits<double>::max()));
static_assert(!detail::is_valid_weight(-0.5) && !detail::is_valid_weight(not_a_number));
static_assert(!detail::is_valid_weight(infinity) && !detail::is_valid_weight(-infinity));
static_assert(detail::is_finite(-1.0) && detail::is_finite(std::numeric_limits<double>::lowest()));
static_assert(detail::is_finite(-0.0F) &&
              !detail::is_finite(-std::numeric_limits<float>::infinity()));
static_assert(!detail::is_finite(not_a_number) && !detail::is_finite(infinity));

}  // namespace

TEST_CASE("numbers are written as short as they read back") {
  CHECK(detail::to_text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(detail::to_text(~std::uint64_t{0}) == "18446744073709551615");
  CHECK(detail::to_text(0.1) == "0.1");
  CHECK(detail::to_text(0.1f) == "0.1");
  CHECK(detail::to_text(-2.5e300) == "-2.5e+300");
  CHECK(detail::to_text(not_a_number) == "nan");
  CHECK(detail::to_text(-infinity) == "-inf");
}

TEST_CASE("a wrong argument is named with its function and value") {
  CHECK(error_text<std::invalid_argument>([] { detail::throw_invalid("isf", "rounds is 0"); }) ==
        "omnibal::isf: rounds is 0");
  CHECK(error_text<std::invalid_argument>([] {
          detail::check_weight("lpt", "cost", 17, std::int64_t{-3});
        }) == "omnibal::lpt: cost[17] is -3, must be finite and not negative");
  CHECK(error_text<std::invalid_argument>([] {
          detail::check_weight("lpt", "cost", 0, not_a_number);
        }) == "omnibal::lpt: cost[0] is nan, must be finite and not negative");
  CHECK_NOTHROW(detail::check_weight("lpt", "cost", 0, 0.0));
}

TEST_CASE("too many elements for 32-bit indices are a length error") {
  CHECK_NOTHROW(detail::check_index_count("isf", "samples", omnibal::max_index_count));
  CHECK(error_text<std::length_error>([] {
          detail::check_index_count("isf", "samples", omnibal::max_index_count + 1);
        }) == "omnibal::isf: samples has 4294967296 elements, more than 32-bit indices can name");
}

TEST_CASE("a sum that leaves its type is an overflow error") {
  std::int64_t integer = largest - 5;
  detail::checked_add("lpt", "the load of a part", integer, std::int64_t{5});
  CHECK(integer == largest);
  CHECK(error_text<std::overflow_error>([&] {
          detail::checked_add("lpt", "the load of a part", integer, std::int64_t{1});
        }) == "omnibal::lpt: the load of a part exceeds the largest value of its type");

  double number = 1.5e308;
  detail::checked_add("lpt", "a load", number, 0.25e308);
  CHECK(number == 1.75e308);
  CHECK(error_text<std::overflow_error>([&] {
          detail::checked_add("lpt", "a load", number, 1e308);
        }) == "omnibal::lpt: a load exceeds the largest value of its type");
}
