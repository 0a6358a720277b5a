// SPDX-License-Identifier: Apache-2.0
#include "orders.hpp"
#include "uniformity.hpp"

#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::feistel;
using test::shuffled;

using order = std::vector<std::uint32_t>;

static_assert(omnibal::rng::random_access_shuffler<feistel>);
static_assert(feistel{1}.order(1000, 2).inverse(feistel{1}.order(1000, 2)(7)) == 7);

}  // namespace

TEST_CASE("a Feistel shuffle and its order as a function agree") {
  for (std::size_t const n : {0u, 1u, 2u, 10u, 64u, 1000u}) {
    for (std::uint64_t const round : {0u, 1u, 7u}) {
      CAPTURE(n, round);
      feistel const shuffle{11};
      order const items = shuffled(shuffle, n, round);
      CHECK(test::is_permutation_of_indices(items));
      order expected;
      for (std::size_t i = 0; i != n; ++i) {
        expected.push_back(static_cast<std::uint32_t>(shuffle.order(n, round)(i)));
      }
      CHECK((items == expected));
    }
  }
}

TEST_CASE("Feistel shuffles are pinned") {
  CHECK(shuffled(feistel{0}, 10, 0) == order{4, 6, 3, 5, 1, 9, 7, 0, 8, 2});
  CHECK(shuffled(feistel{0}, 10, 1) == order{3, 1, 6, 4, 5, 2, 7, 0, 9, 8});
  CHECK(shuffled(feistel{7}, 10, 0) == order{3, 9, 7, 4, 2, 1, 0, 5, 8, 6});
  CHECK(test::digest(shuffled(feistel{1}, 1000, 2)) == 0x90bb5a8fb89869f1);
}

TEST_CASE("a Feistel shuffle moves items by position, whatever they are") {
  std::vector<char> letters{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'};
  feistel{0}(std::span(letters), 0);
  CHECK(letters == std::vector<char>{'e', 'g', 'd', 'f', 'b', 'j', 'h', 'a', 'i', 'c'});
  feistel{0}(std::span(letters), 0);
  CHECK(letters == std::vector<char>{'b', 'h', 'f', 'j', 'g', 'c', 'a', 'e', 'i', 'd'});
}

TEST_CASE("every Feistel order is equally likely, over seeds and over rounds") {
  for (std::size_t const n : {3u, 4u}) {
    CAPTURE(n);
    CHECK(test::has_uniform_orders(
        n, [n](std::uint64_t seed) { return shuffled(feistel{seed}, n, 0); }));
    CHECK(test::has_uniform_orders(
        n, [n](std::uint64_t round) { return shuffled(feistel{1}, n, round); }));
  }
}
