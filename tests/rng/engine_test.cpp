// SPDX-License-Identifier: Apache-2.0
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::engine;
using omnibal::rng::mix;

static_assert(std::uniform_random_bit_generator<engine>);
static_assert(std::is_trivially_copyable_v<engine>);
static_assert(!std::is_convertible_v<std::uint64_t, engine>);

constexpr std::uint64_t largest = ~std::uint64_t{0};

}  // namespace

TEST_CASE("the finalizer gives SplitMix64's published words") {
  std::uint64_t const increment = 0x9e3779b97f4a7c15;
  CHECK(mix(1234567 + increment) == 6457827717110365317u);
  CHECK(mix(1234567 + 2 * increment) == 3203168211198807973u);
  CHECK(mix(1234567 + 3 * increment) == 9817491932198370423u);
}

TEST_CASE("the words of the engine are pinned") {
  struct {
    std::uint64_t seed;
    std::uint64_t stream;
    std::uint64_t words[5];
  } const rows[] = {
      {0,
       0,
       {0x568a9b0b1a2c05ec, 0x44e5b8b147ef718b, 0x458563ab55521133, 0x52ac8058a1a2df4f,
        0x33fe8bd4f9c57863}},
      {0,
       1,
       {0xa26ab114db1f32cc, 0x505a12f8f712377b, 0xbbdad9b089bfef18, 0xfc51ca97fe071e1d,
        0x61b9f1327e004672}},
      {1,
       0,
       {0x6ec85f1f8547bc0c, 0x6cf63afcc21a470a, 0x8a27b94cff7526aa, 0xa1b3afb0331c1dab,
        0x0a385ef24fa6a992}},
      {2024,
       7,
       {0xedfaddb2c2256cb3, 0xa9c3735fa8a2fc0d, 0x54af8d4c9c23744d, 0xfc8ad8c0b9323554,
        0xf4a17669429eb82d}},
      {largest,
       largest,
       {0xf1d2d5d7fff1fb34, 0x6639511c87d26a3e, 0x20d7a9557c5a8725, 0xd5feb34fa0ffae0a,
        0xdd48de5b91a3fa85}},
  };
  std::uint64_t const positions[] = {0, 1, 2, std::uint64_t{1} << 40, largest};
  for (auto const& row : rows) {
    CAPTURE(row.seed, row.stream);
    engine const words(row.seed, row.stream);
    for (int k = 0; k != 5; ++k) CHECK(words.word(positions[k]) == row.words[k]);
  }
}

TEST_CASE("drawing, seeking, skipping and asking agree") {
  engine const start(42, 3);
  engine words = start;
  for (std::uint64_t position = 0; position != 100; ++position) {
    CHECK(words.position() == position);
    CHECK(words() == start.word(position));
  }
  words.seek(10);
  CHECK(words() == start.word(10));
  words.discard(20);
  CHECK(words.position() == 31);
  CHECK(words() == start.word(31));
  words.seek(0);
  CHECK(words == start);
}

TEST_CASE("engines are equal where seed, stream and position are") {
  CHECK(engine(1) == engine(1, 0));
  CHECK(engine(1, 2) != engine(2, 1));
  CHECK(engine(1, 2) != engine(1, 3));
  engine moved(1, 2);
  moved.discard(1);
  CHECK(moved != engine(1, 2));
}

TEST_CASE("seeds, streams and positions give different words") {
  std::vector<std::uint64_t> words;
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    for (std::uint64_t stream = 0; stream != 20; ++stream) {
      for (std::uint64_t position = 0; position != 20; ++position) {
        words.push_back(engine(seed, stream).word(position));
      }
    }
  }
  std::sort(words.begin(), words.end());
  CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
}

TEST_CASE("a changed bit of seed, stream or position changes half of the bits") {
  for (unsigned bit = 0; bit != 64; ++bit) {
    CAPTURE(bit);
    std::uint64_t const flip = std::uint64_t{1} << bit;
    int changed[3] = {};
    for (std::uint64_t k = 0; k != 100; ++k) {
      std::uint64_t const word = engine(k, k).word(k);
      changed[0] += std::popcount(word ^ engine(k ^ flip, k).word(k));
      changed[1] += std::popcount(word ^ engine(k, k ^ flip).word(k));
      changed[2] += std::popcount(word ^ engine(k, k).word(k ^ flip));
    }
    // 6400 fair coins: 3200 with a standard deviation of 40.
    for (int const count : changed) CHECK(std::abs(count - 3200) < 200);
  }
}
