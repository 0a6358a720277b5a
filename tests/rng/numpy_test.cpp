// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "orders.hpp"

#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::numpy_shuffle;
using omnibal::rng::detail::mersenne_twister;
using test::error_text;
using test::shuffled;

using order = std::vector<std::uint32_t>;

/// NumPy's shuffle as its source has it.
order reference_order(std::uint32_t seed, std::size_t n) {
  std::mt19937 words(seed);
  order items = test::ascending(n);
  for (std::size_t i = n; i-- > 1;) {
    std::size_t mask = i;
    for (unsigned shift = 1; shift != 32; shift *= 2) mask |= mask >> shift;
    std::size_t partner = words() & mask;
    while (partner > i) partner = words() & mask;
    std::swap(items[i], items[partner]);
  }
  return items;
}

}  // namespace

TEST_CASE("the blocks are the words of std::mt19937") {
  for (std::uint32_t const seed : {0u, 1u, 5489u, 4294967295u}) {
    CAPTURE(seed);
    mersenne_twister twister(seed);
    std::vector<std::uint32_t> words(4 * mersenne_twister::block);
    for (std::size_t first = 0; first != words.size(); first += mersenne_twister::block) {
      twister.generate(words.data() + first);
    }
    std::vector<std::uint32_t> expected(words.size());
    std::mt19937 reference(seed);
    std::generate(expected.begin(), expected.end(),
                  [&] { return static_cast<std::uint32_t>(reference()); });
    CHECK((words == expected));
  }
}

TEST_CASE("the ten thousandth word is that of the C++ standard") {
  mersenne_twister twister(5489);
  std::uint32_t words[mersenne_twister::block];
  for (std::size_t drawn = 0; drawn < 10000; drawn += mersenne_twister::block) {
    twister.generate(words);
  }
  CHECK(words[9999 % mersenne_twister::block] == 4123659995u);
}

TEST_CASE("NumPy shuffles are those of numpy.random.RandomState") {
  CHECK(shuffled(numpy_shuffle{0}, 10, 0) == order{2, 8, 4, 9, 1, 6, 7, 3, 0, 5});
  CHECK(shuffled(numpy_shuffle{1024}, 10, 0) == order{2, 3, 7, 0, 6, 8, 5, 4, 9, 1});
  CHECK(shuffled(numpy_shuffle{1024}, 10, 2) == order{0, 6, 9, 4, 1, 3, 7, 5, 8, 2});
  CHECK(shuffled(numpy_shuffle{4294967295}, 10, 1) == order{6, 9, 5, 1, 8, 0, 7, 4, 2, 3});

  // Digests of RandomState(seed + max(round - 1, 0)).shuffle(arange(n)).
  constexpr std::size_t sizes[] = {1, 2, 10, 100, 1000};
  struct {
    std::uint64_t seed;
    std::uint64_t round;
    std::uint64_t digests[5];
  } const rows[] = {
      {0,
       0,
       {0xa8c7f832281a39c5, 0x392209f14dea4c24, 0x10caae69a213bf84, 0x9eb856be6980a245,
        0xba2367a46d22aa5d}},
      {0,
       1,
       {0xa8c7f832281a39c5, 0x392209f14dea4c24, 0x10caae69a213bf84, 0x9eb856be6980a245,
        0xba2367a46d22aa5d}},
      {0,
       2,
       {0xa8c7f832281a39c5, 0x692558b056101a44, 0x37295f1cced0e724, 0xec8dd2da40908725,
        0xbe0e4064e4851001}},
      {1024,
       0,
       {0xa8c7f832281a39c5, 0x692558b056101a44, 0xfba91e2f42b1b324, 0x28682d899cc20b05,
        0x989cdd005824d2dd}},
      {1024,
       1,
       {0xa8c7f832281a39c5, 0x692558b056101a44, 0xfba91e2f42b1b324, 0x28682d899cc20b05,
        0x989cdd005824d2dd}},
      {1024,
       2,
       {0xa8c7f832281a39c5, 0x392209f14dea4c24, 0x215a5d354a6db6e4, 0xce282e4480639965,
        0xaeb1b42c210dac95}},
      {4294967295,
       0,
       {0xa8c7f832281a39c5, 0x692558b056101a44, 0xcb264fad4615e204, 0xd96a0f8851b497a5,
        0x4439aacf69c3cbed}},
      {4294967295,
       1,
       {0xa8c7f832281a39c5, 0x692558b056101a44, 0xcb264fad4615e204, 0xd96a0f8851b497a5,
        0x4439aacf69c3cbed}},
  };
  for (auto const& row : rows) {
    for (int k = 0; k != 5; ++k) {
      CAPTURE(row.seed, row.round, sizes[k]);
      CHECK(test::digest(shuffled(numpy_shuffle{row.seed}, sizes[k], row.round)) == row.digests[k]);
    }
  }
}

TEST_CASE("NumPy shuffles are those of a plain implementation") {
  for (std::size_t const n : {0u, 1u, 2u, 3u, 63u, 64u, 65u, 66u, 129u, 625u, 5000u, 100000u}) {
    CAPTURE(n);
    CHECK((shuffled(numpy_shuffle{31}, n, 0) == reference_order(31, n)));
    CHECK((shuffled(numpy_shuffle{31}, n, 1) == reference_order(31, n)));
    CHECK((shuffled(numpy_shuffle{31}, n, 5) == reference_order(35, n)));
  }
}

TEST_CASE("a NumPy order does not depend on the type of the items") {
  std::vector<std::string> names{"a", "b", "c", "d", "e"};
  numpy_shuffle{3}(std::span(names), 0);
  std::vector<std::string> expected;
  for (auto const item : reference_order(3, 5)) expected.emplace_back(1, "abcde"[item]);
  CHECK(names == expected);
}

TEST_CASE("a seed above 32 bits is an error") {
  CHECK(error_text<std::invalid_argument>([] { shuffled(numpy_shuffle{4294967295}, 5, 2); }) ==
        "omnibal::rng::numpy_shuffle: seed 4294967295 in round 2 is above 2^32 - 1");
  CHECK(error_text<std::invalid_argument>([] { shuffled(numpy_shuffle{4294967296}, 5, 0); }) ==
        "omnibal::rng::numpy_shuffle: seed 4294967296 in round 0 is above 2^32 - 1");
  CHECK_THROWS_AS(shuffled(numpy_shuffle{0}, 5, ~std::uint64_t{0}), std::invalid_argument);
  CHECK_THROWS_AS(shuffled(numpy_shuffle{1}, 5, std::uint64_t{1} << 32), std::invalid_argument);
  CHECK(shuffled(numpy_shuffle{0}, 5, std::uint64_t{1} << 32) == reference_order(4294967295u, 5));
}
