// SPDX-License-Identifier: Apache-2.0
#include "uniformity.hpp"

#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::below;
using omnibal::rng::engine;

/// Gives these words, then fails.
class listed_words {
 public:
  using result_type = std::uint64_t;

  explicit listed_words(std::vector<std::uint64_t> words) : words_(std::move(words)) {}

  std::uint64_t operator()() { return words_.at(drawn_++); }
  [[nodiscard]] std::size_t drawn() const { return drawn_; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t drawn_ = 0;
};

constexpr std::uint64_t largest = ~std::uint64_t{0};
constexpr std::uint64_t half = std::uint64_t{1} << 63;

}  // namespace

TEST_CASE("an integer is the word scaled to the range") {
  struct {
    std::uint64_t word;
    std::uint64_t n;
    std::uint64_t expected;
  } const rows[] = {
      {0, 1, 0},
      {largest, 1, 0},
      {half + 1, 10, 5},
      {half - 1, 10, 4},
      {largest, 10, 9},
      {largest, largest, largest - 1},
      {half, half, half / 2},
      {largest / 3 * 2 + 1, 3, 2},
  };
  for (auto const& row : rows) {
    CAPTURE(row.word, row.n);
    listed_words words({row.word});
    CHECK(below(words, row.n) == row.expected);
    CHECK(words.drawn() == 1);
  }
}

TEST_CASE("words that would favor some integers are rejected") {
  struct {
    std::vector<std::uint64_t> words;
    std::uint64_t n;
    std::uint64_t expected;
    std::size_t drawn;
  } const rows[] = {
      {{0, half}, 3, 1, 2},         // 2^64 mod 3 = 1: the word 0 is one too many.
      {{0}, 8, 0, 1},               // A power of two rejects nothing.
      {{0, 0, 1}, 10, 0, 3},        // 2^64 mod 10 = 6.
      {{2, 2, 1}, half + 1, 0, 3},  // 2^63 - 1 of the words are rejected.
      {{0, 4, 3}, half + 1, 1, 3},
      {{1, 0, 2}, largest, 0, 1},  // 2^64 mod (2^64 - 1) = 1.
      {{0, 2}, largest, 1, 2},
  };
  for (auto const& row : rows) {
    CAPTURE(row.n, row.drawn);
    listed_words words(row.words);
    CHECK(below(words, row.n) == row.expected);
    CHECK(words.drawn() == row.drawn);
  }
}

TEST_CASE("integers stay below their bound") {
  engine words(3);
  for (std::uint64_t const n : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1000003},
                                half - 1, half, half + 1, largest}) {
    CAPTURE(n);
    for (int k = 0; k != 1000; ++k) REQUIRE(below(words, n) < n);
  }
}

TEST_CASE("small integers are equally likely") {
  for (std::size_t const n : {2u, 3u, 5u, 6u, 7u, 10u, 100u}) {
    CAPTURE(n);
    engine words(n);
    std::vector<std::uint64_t> counts(n, 0);
    for (std::size_t k = 0; k != 500 * n; ++k) ++counts[below(words, n)];
    CHECK(test::is_uniform(counts));
  }
}

TEST_CASE("large integers are equally likely") {
  // Without rejection the three quarters would occur 2 : 1 : 1 or similar.
  engine words(4);
  std::uint64_t const quarter = std::uint64_t{1} << 62;
  std::vector<std::uint64_t> counts(3, 0);
  std::vector<std::uint64_t> remainders(3, 0);
  for (int k = 0; k != 10000; ++k) {
    std::uint64_t const value = below(words, 3 * quarter);
    ++counts[value / quarter];
    ++remainders[value % 3];
  }
  CHECK(test::is_uniform(counts));
  CHECK(test::is_uniform(remainders));
}
