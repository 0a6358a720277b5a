// SPDX-License-Identifier: Apache-2.0
#include "orders.hpp"
#include "uniformity.hpp"

#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::permutation;

static_assert(std::is_trivially_copyable_v<permutation>);

constexpr std::uint64_t largest = ~std::uint64_t{0};

std::vector<std::uint32_t> order_of(permutation const& positions) {
  std::vector<std::uint32_t> order;
  for (std::uint64_t i = 0; i != positions.size(); ++i) {
    order.push_back(static_cast<std::uint32_t>(positions(i)));
  }
  return order;
}

}  // namespace

TEST_CASE("a permutation has every element once, and an inverse") {
  for (std::uint64_t n = 0; n <= 300; ++n) {
    for (std::uint64_t seed = 0; seed != 3; ++seed) {
      CAPTURE(n, seed);
      permutation const positions(n, seed);
      REQUIRE(positions.size() == n);
      std::vector<std::uint32_t> const order = order_of(positions);
      REQUIRE(test::is_permutation_of_indices(order));
      bool inverts = true;
      for (std::uint64_t i = 0; i != n; ++i) {
        inverts = inverts && positions.inverse(order[static_cast<std::size_t>(i)]) == i;
      }
      REQUIRE(inverts);
    }
  }
}

TEST_CASE("a larger permutation has every element once") {
  for (std::uint64_t const n : {4095u, 4096u, 4097u, 65536u, 100003u}) {
    CAPTURE(n);
    CHECK(test::is_permutation_of_indices(order_of(permutation(n, n))));
  }
}

TEST_CASE("a permutation too large for an array has an inverse") {
  for (std::uint64_t const n :
       {std::uint64_t{1} << 32, (std::uint64_t{1} << 40) + 1, (std::uint64_t{1} << 63) - 1,
        std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 12345, largest}) {
    CAPTURE(n);
    permutation const positions(n, 8);
    omnibal::rng::engine words(n);
    for (int k = 0; k != 200; ++k) {
      std::uint64_t const i = omnibal::rng::below(words, n);
      REQUIRE(positions(i) < n);
      REQUIRE(positions.inverse(positions(i)) == i);
      REQUIRE(positions(positions.inverse(i)) == i);
    }
    CHECK(positions.inverse(positions(0)) == 0);
    CHECK(positions.inverse(positions(n - 1)) == n - 1);
  }
}

TEST_CASE("permutations are pinned") {
  CHECK(order_of(permutation(10, 0)) == std::vector<std::uint32_t>{1, 9, 2, 8, 5, 6, 0, 4, 3, 7});
  CHECK(order_of(permutation(10, 1)) == std::vector<std::uint32_t>{4, 9, 5, 7, 6, 8, 2, 3, 0, 1});
  CHECK(test::digest(order_of(permutation(64, 0))) == 0x54fa4d22acf52dc5);
  CHECK(test::digest(order_of(permutation(65, 0))) == 0xe1ddfdf1b26ffb85);
  CHECK(test::digest(order_of(permutation(1000, 2024))) == 0x3e46fc13e8a2cd31);

  struct {
    std::uint64_t n;
    std::uint64_t first;
    std::uint64_t second;
    std::uint64_t last;
  } const rows[] = {
      {std::uint64_t{1} << 32, 1431522788, 4285748768, 2683499283},
      {(std::uint64_t{1} << 40) + 1, 715442171237, 51987512285, 1065497281828},
      {largest, 9438573582829260307u, 10574390966301154299u, 12583026646997773731u},
  };
  for (auto const& row : rows) {
    CAPTURE(row.n);
    permutation const positions(row.n, 5);
    CHECK(positions(0) == row.first);
    CHECK(positions(1) == row.second);
    CHECK(positions(row.n - 1) == row.last);
  }
}

TEST_CASE("small permutations have every order equally often") {
  for (std::size_t const n : {2u, 3u, 4u, 5u}) {
    CAPTURE(n);
    CHECK(test::has_uniform_orders(
        n, [n](std::uint64_t seed) { return order_of(permutation(n, seed)); }));
  }
}

TEST_CASE("an element is equally likely to come to every position") {
  for (std::size_t const n : {63u, 64u, 100u, 1000u}) {
    CAPTURE(n);
    std::vector<std::uint64_t> first(n, 0);
    std::vector<std::uint64_t> last(n, 0);
    for (std::uint64_t seed = 0; seed != 20 * n; ++seed) {
      permutation const positions(n, seed);
      ++first[static_cast<std::size_t>(positions(0))];
      ++last[static_cast<std::size_t>(positions.inverse(n - 1))];
    }
    CHECK(test::is_uniform(first));
    CHECK(test::is_uniform(last));
  }
}

TEST_CASE("neighbors come to positions that have nothing to do with each other") {
  for (std::size_t const n : {63u, 64u, 100u, 1000u}) {
    CAPTURE(n);
    std::vector<std::uint64_t> distances(n - 1, 0);
    for (std::uint64_t seed = 0; seed != 20 * n; ++seed) {
      permutation const positions(n, seed);
      ++distances[static_cast<std::size_t>((positions(1) + n - positions(0)) % n) - 1];
    }
    CHECK(test::is_uniform(distances));
  }
}
