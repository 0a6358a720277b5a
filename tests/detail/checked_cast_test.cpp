// SPDX-License-Identifier: Apache-2.0
#include "../support/error_text.hpp"

#include <omnibal/detail/conversions.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>

#include <catch.hpp>

namespace {

using omnibal::detail::checked_cast;
using omnibal::detail::holds;
using omnibal::detail::int128;
using omnibal::detail::saturate_cast;
using omnibal::detail::uint128;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr int128 wide = 1;

static_assert(holds<std::int64_t>(wide * most) && holds<std::int64_t>(wide * least));
static_assert(!holds<std::int64_t>(wide * most + 1) && !holds<std::int64_t>(wide * least - 1));
static_assert(!holds<std::int64_t>(wide << 64) && !holds<std::int64_t>((wide << 64) + 5));
static_assert(!holds<std::uint64_t>(std::int64_t{-1}) && !holds<std::int64_t>(~std::uint64_t{0}));
static_assert(!holds<std::uint64_t>(-wide) && !holds<int128>(~uint128{0}));
static_assert(holds<std::uint32_t>(0xffff'ffff) && !holds<std::uint32_t>(std::int64_t{1} << 32));
static_assert(!holds<std::int32_t>(0x8000'0000u) && holds<std::int32_t>(-0x8000'0000l));

static_assert(saturate_cast<std::int64_t>(wide << 100) == most);
static_assert(saturate_cast<std::int64_t>(-(wide << 100)) == least);
static_assert(saturate_cast<std::int64_t>(wide * -7) == -7);
static_assert(saturate_cast<std::uint32_t>(-1) == 0);
static_assert(saturate_cast<std::uint32_t>(most) == 0xffff'ffff);

}  // namespace

TEST_CASE("checked_cast returns the number or names what does not fit") {
  CHECK(checked_cast<std::uint32_t>("f", "bytes", wide * 7) == 7);
  CHECK(test::error_text<std::overflow_error>([] {
          static_cast<void>(checked_cast<std::uint32_t>("f", "the bytes", -wide));
        }) == "omnibal::f: the bytes exceeds the largest value of its type");
}
