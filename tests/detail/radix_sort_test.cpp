// SPDX-License-Identifier: Apache-2.0
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::detail::order_descending;
using omnibal::detail::radix_sort;
using omnibal::rng::engine;

using words = std::vector<std::uint64_t>;
using order = std::vector<std::uint32_t>;

constexpr std::uint64_t largest = ~std::uint64_t{0};

words random_words(std::size_t count, std::uint64_t mask, std::uint64_t seed) {
  words result(count);
  engine source(seed);
  for (auto& word : result) word = source() & mask;
  return result;
}

order expected_order(words const& keys) {
  order result(keys.size());
  std::iota(result.begin(), result.end(), 0u);
  std::stable_sort(result.begin(), result.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  return result;
}

order actual_order(words const& keys) {
  return order_descending(keys.size(), [&](std::size_t i) { return keys[i]; });
}

/// The words with `value` as their first, or as their last.
words with_first(words values, std::uint64_t value) {
  values.front() = value;
  return values;
}
words with_last(words values, std::uint64_t value) {
  values.back() = value;
  return values;
}

}  // namespace

TEST_CASE("words are sorted stably by the given bits alone") {
  struct {
    unsigned first_bit;
    unsigned bits;
  } const rows[] = {{0, 0},  {0, 1},  {0, 11}, {0, 12}, {0, 13},  {0, 22},  {0, 23}, {0, 32},
                    {0, 63}, {0, 64}, {5, 13}, {32, 1}, {32, 31}, {32, 32}, {63, 1}, {41, 23}};
  for (auto const& row : rows) {
    for (std::size_t const count : {0u, 1u, 2u, 1000u, 5000u}) {
      CAPTURE(row.first_bit, row.bits, count);
      words const input = random_words(count, largest, row.bits);
      std::uint64_t const mask = row.bits == 0 ? 0 : largest >> (64 - row.bits) << row.first_bit;
      words expected = input;
      std::stable_sort(expected.begin(), expected.end(), [mask](std::uint64_t a, std::uint64_t b) {
        return (a & mask) < (b & mask);
      });
      words sorted = input;
      words spare;
      radix_sort(sorted, spare, row.first_bit, row.bits);
      CHECK((sorted == expected));
    }
  }
}

TEST_CASE("digits that are equal in all words are passed over") {
  // The middle digit alone differs; then none does.
  words sorted = random_words(3000, 0x7ff000000000, 1);
  for (auto& word : sorted) word |= largest << 52 | 0x123;
  words expected = sorted;
  std::sort(expected.begin(), expected.end());
  words spare;
  radix_sort(sorted, spare, 0, 64);
  CHECK((sorted == expected));

  words const equal(3000, 0xabcdef0123456789);
  sorted = equal;
  radix_sort(sorted, spare, 0, 64);
  CHECK((sorted == equal));
}

TEST_CASE("keys are ordered descending, equal ones by index") {
  CHECK(actual_order({}) == order{});
  CHECK(actual_order({7}) == order{0});
  CHECK(actual_order({5, 9, 5, 0, 9}) == order{1, 4, 0, 2, 3});
  CHECK(actual_order({largest, 0, largest}) == order{0, 2, 1});
}

TEST_CASE("keys of every range are ordered as by a stable comparison sort") {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    std::uint64_t const mask = bits == 0 ? 0 : largest >> (64 - bits);
    for (std::size_t const count : {1u, 2u, 100u, 3000u}) {
      CAPTURE(bits, count);
      words const keys = random_words(count, mask, bits);
      REQUIRE((actual_order(keys) == expected_order(keys)));
      words const raised = with_last(with_first(keys, mask), 0);
      REQUIRE((actual_order(raised) == expected_order(raised)));
    }
  }
}

TEST_CASE("adversarial keys are ordered as by a stable comparison sort") {
  std::uint64_t const offset = std::uint64_t{1} << 62;
  words ascending(5000);
  std::iota(ascending.begin(), ascending.end(), offset);
  words const descending(ascending.rbegin(), ascending.rend());
  words multiples = ascending;
  for (auto& key : multiples) key = (key - offset) << 20;
  words low_bits = random_words(5000, 0xff, 2);  // Below those that the first passes look at.
  words const rows[] = {
      ascending,
      descending,
      words(5000, 0),
      words(5000, largest),
      multiples,
      with_first(ascending, 0),
      with_last(ascending, largest),
      with_first(low_bits, largest),
      with_last(low_bits, largest),
      with_first(random_words(5000, 0xffffffff, 3), std::uint64_t{1} << 40),
      random_words(5000, 0xffff0000ffff0000, 4),
  };
  for (words const& keys : rows) CHECK((actual_order(keys) == expected_order(keys)));
}

TEST_CASE("ranges about the limits of counting are ordered") {
  // Keys in a range below max(1024, count / 4) are counted, wider ones sorted.
  for (std::uint64_t const range : {1022u, 1023u, 1024u, 1025u, 2499u, 2500u, 2501u}) {
    for (std::size_t const count : {100u, 10000u}) {
      CAPTURE(range, count);
      words keys = random_words(count, 4095, range);
      for (auto& key : keys) key = 77 + key % (range + 1);
      keys = with_last(with_first(keys, 77), 77 + range);
      CHECK((actual_order(keys) == expected_order(keys)));
    }
  }
}
