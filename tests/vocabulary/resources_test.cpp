// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::integral_measure;
using omnibal::measure;
using omnibal::resources;
using omnibal::scalar_measure;

template <class T>
concept two_of = requires {
  typename resources<2, T>;
};
template <std::size_t R>
concept kinds = requires {
  typename resources<R>;
};

static_assert(scalar_measure<int> && scalar_measure<std::uint8_t> &&
              scalar_measure<std::uint64_t> && scalar_measure<float>);
static_assert(scalar_measure<int const>);
static_assert(!scalar_measure<bool> && !scalar_measure<bool const> && !scalar_measure<int&> &&
              !scalar_measure<int*>);
static_assert(!scalar_measure<omnibal::detail::int128> && !scalar_measure<void>);
static_assert(!scalar_measure<std::string> && !scalar_measure<resources<1>> &&
              !scalar_measure<std::byte>);

static_assert(measure<int> && measure<double> && measure<resources<1>> &&
              measure<resources<3, float>>);
static_assert(integral_measure<int> && integral_measure<resources<3, std::uint8_t>>);
static_assert(!integral_measure<double> && !integral_measure<resources<3, float>>);
static_assert(!integral_measure<bool> && !integral_measure<std::string>);
static_assert(!measure<bool> && !measure<std::string> && !measure<std::vector<int>>);

static_assert(two_of<int> && !two_of<bool> && !two_of<std::string>);
static_assert(kinds<1> && !kinds<0>);

static_assert(std::is_same_v<decltype(resources{9, 4096}), resources<2, std::int64_t>>);
static_assert(std::is_same_v<decltype(resources{9u, std::int8_t{4}}), resources<2, std::int64_t>>);
static_assert(std::is_same_v<decltype(resources{9, 0.5f}), resources<2, double>>);
static_assert(std::is_same_v<resources<3>::value_type, std::int64_t>);

static_assert(std::is_trivially_copyable_v<resources<2>> &&
              std::is_standard_layout_v<resources<2>>);
static_assert(std::is_trivially_default_constructible_v<resources<2>>);
// Neither too few amounts nor a fraction as an integer.
static_assert(!std::is_constructible_v<resources<2>, int>);
static_assert(!std::is_constructible_v<resources<2>, int, double>);
static_assert(!std::is_constructible_v<resources<2>, int, bool>);
static_assert(std::is_constructible_v<resources<2, double>, int, double>);
static_assert(sizeof(resources<3, std::uint16_t>) == 6);

static_assert(resources<3>::size() == 3 && std::tuple_size_v<resources<3>> == 3);
static_assert(std::is_same_v<std::tuple_element_t<1, resources<3, float>>, float>);

static_assert(resources{1, 2} + resources{10, 20} == resources{11, 22});
static_assert(resources{1, 2} - resources{10, 20} == resources{-9, -18});
static_assert(resources{1, 2} != resources{1, 3} && resources{1, 2} != resources{0, 2});
static_assert(get<1>(resources{1, 2}) == 2);

}  // namespace

TEST_CASE("resources fit where no amount is above the capacity") {
  resources const capacity{9, 4096};
  CHECK(resources{0, 0}.fits(capacity));
  CHECK(resources{9, 4096}.fits(capacity));
  CHECK_FALSE(resources{10, 4096}.fits(capacity));
  CHECK_FALSE(resources{9, 4097}.fits(capacity));
  CHECK_FALSE(resources{10, 4097}.fits(capacity));
}

TEST_CASE("not-a-number never fits, nor does anything fit it") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(resources{1.0, 0.5}.fits(resources{1.0, 0.5}));
  CHECK_FALSE(resources{1.0, nan}.fits(resources{1.0, 1.0}));
  CHECK_FALSE(resources{nan, 1.0}.fits(resources{1.0, 1.0}));
  CHECK_FALSE(resources{1.0, 1.0}.fits(resources{nan, 1.0}));
}

TEST_CASE("amounts are added and subtracted kind by kind") {
  resources<3> load{1, 2, 3};
  load += {10, 20, 30};
  CHECK(load == resources{11, 22, 33});
  load -= {1, 2, 3};
  CHECK(load == resources{10, 20, 30});
  load[1] = 7;
  CHECK(load[1] == 7);
}

TEST_CASE("narrow amounts are added in their own type") {
  resources<2, std::uint8_t> const sum =
      resources<2, std::uint8_t>{200, 1} + resources<2, std::uint8_t>{55, 2};
  CHECK(sum[0] == 255);
  CHECK(sum[1] == 3);
}

TEST_CASE("resources take integers of any type") {
  std::size_t const tokens = 4096;
  unsigned const images = 9;
  std::vector<int> const lengths(7);
  CHECK(resources{images, tokens} == resources{9, 4096});
  CHECK(resources{lengths.size(), images} == resources{7, 9});
  CHECK(resources<2, double>{tokens, 0.5} == resources{4096.0, 0.5});
  static_assert(resources{std::size_t{3}, std::uint64_t{1} << 62}[1] == std::int64_t{1} << 62);
  auto const demand = [&](std::vector<int> const& sample) { return resources{1u, sample.size()}; };
  CHECK(demand(lengths) == resources{1, 7});
}

TEST_CASE("resources refuse an integer that they cannot hold") {
  std::size_t const none = static_cast<std::size_t>(-1);
  CHECK(test::error_text<std::invalid_argument>([&] {
          return resources{1u, none};
        }) ==
        "omnibal::resources: amount[1] is 18446744073709551615, must be in [-9223372036854775808, "
        "9223372036854775807]");
  std::size_t const half = std::size_t{1} << 63;
  CHECK_THROWS_AS(resources{half}, std::invalid_argument);
  CHECK(resources{half - 1}[0] == std::numeric_limits<std::int64_t>::max());
  int const many = 256;
  CHECK(test::error_text<std::invalid_argument>([&] { return resources<1, std::uint8_t>{many}; }) ==
        "omnibal::resources: amount[0] is 256, must be in [0, 255]");
  int const negative = -1;
  CHECK_THROWS_AS((resources<2, std::uint64_t>{0, negative}), std::invalid_argument);
  CHECK(resources<2, std::uint64_t>{0, many}[1] == 256);
}

TEST_CASE("resources bind to names") {
  auto const [images, tokens] = resources{5, 1341};
  CHECK(images == 5);
  CHECK(tokens == 1341);
}
