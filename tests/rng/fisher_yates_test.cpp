// SPDX-License-Identifier: Apache-2.0
#include "orders.hpp"
#include "uniformity.hpp"

#include <omnibal/rng/fisher_yates.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::fisher_yates;
using test::shuffled;

using order = std::vector<std::uint32_t>;

/// As large as the records that packers shuffle.
struct record {
  std::uint32_t index = 0;
  std::uint64_t demand[2] = {};

  record& operator++() {
    ++index;
    return *this;
  }
};

}  // namespace

TEST_CASE("a Fisher-Yates shuffle keeps every item") {
  // Partners are drawn in blocks of 64.
  for (std::size_t const n : {0u, 1u, 2u, 3u, 63u, 64u, 65u, 66u, 128u, 129u, 130u, 1000u}) {
    CAPTURE(n);
    CHECK(test::is_permutation_of_indices(shuffled(fisher_yates{9}, n, 1)));
  }
}

TEST_CASE("Fisher-Yates shuffles are pinned") {
  CHECK(shuffled(fisher_yates{0}, 10, 0) == order{8, 7, 4, 0, 5, 6, 9, 2, 3, 1});
  CHECK(shuffled(fisher_yates{0}, 10, 1) == order{4, 0, 1, 6, 9, 3, 2, 7, 5, 8});
  CHECK(shuffled(fisher_yates{1}, 10, 0) == order{0, 8, 4, 1, 7, 9, 2, 6, 3, 5});
  CHECK(shuffled(fisher_yates{12345678901234567890u}, 10, 3) ==
        order{2, 4, 3, 0, 9, 1, 5, 8, 6, 7});

  struct {
    std::size_t n;
    fisher_yates shuffle;
    std::uint64_t round;
    std::uint64_t digest;
  } const rows[] = {
      {63, {0}, 0, 0x34f532977fac357a},
      {64, {0}, 0, 0x434758587e58fc25},
      {65, {0}, 0, 0xf1a7f365858a9365},
      {129, {0}, 0, 0x536148ea24c21b05},
      {1000, {1}, 2, 0xf5795ba72194b2cd},
      // So many items that some draws are rejected and that memory is prefetched.
      {300000, {0}, 0, 0xca4b49b69cbe7119},
  };
  for (auto const& row : rows) {
    CAPTURE(row.n);
    CHECK(test::digest(shuffled(row.shuffle, row.n, row.round)) == row.digest);
  }
}

TEST_CASE("a Fisher-Yates order does not depend on the type of the items") {
  // 40000 items of four bytes are below the size from which memory is prefetched, others above.
  for (std::size_t const n : {10u, 129u, 40000u}) {
    CAPTURE(n);
    order const expected = shuffled(fisher_yates{3}, n, 5);

    order of_words;
    for (auto const item : shuffled<std::uint64_t>(fisher_yates{3}, n, 5)) {
      of_words.push_back(static_cast<std::uint32_t>(item));
    }
    CHECK((of_words == expected));

    order of_records;
    for (auto const& item : shuffled<record>(fisher_yates{3}, n, 5)) {
      of_records.push_back(item.index);
    }
    CHECK((of_records == expected));
  }
  std::vector<std::string> names{"a", "b", "c", "d", "e"};
  fisher_yates{3}(std::span(names), 5);
  std::string joined;
  for (auto const& name : names) joined += name;
  std::string expected;
  for (auto const item : shuffled(fisher_yates{3}, 5, 5)) expected += "abcde"[item];
  CHECK(joined == expected);
}

TEST_CASE("seed and round alone decide a Fisher-Yates order") {
  order const first = shuffled(fisher_yates{3}, 100, 5);
  CHECK(shuffled(fisher_yates{3}, 100, 5) == first);
  CHECK(shuffled(fisher_yates{4}, 100, 5) != first);
  CHECK(shuffled(fisher_yates{3}, 100, 6) != first);
  CHECK(shuffled(fisher_yates{5}, 100, 3) != first);
}

TEST_CASE("every Fisher-Yates order is equally likely, over seeds and over rounds") {
  for (std::size_t const n : {2u, 3u, 4u, 5u}) {
    CAPTURE(n);
    CHECK(test::has_uniform_orders(
        n, [n](std::uint64_t seed) { return shuffled(fisher_yates{seed}, n, 0); }));
    CHECK(test::has_uniform_orders(
        n, [n](std::uint64_t round) { return shuffled(fisher_yates{1}, n, round); }));
  }
}

TEST_CASE("a Fisher-Yates shuffle brings every item equally often to either end") {
  constexpr std::size_t n = 129;
  std::vector<std::uint64_t> at_front(n, 0);
  std::vector<std::uint64_t> at_back(n, 0);
  for (std::uint64_t round = 0; round != 20 * n; ++round) {
    order const items = shuffled(fisher_yates{2}, n, round);
    ++at_front[items.front()];
    ++at_back[items.back()];
  }
  CHECK(test::is_uniform(at_front));
  CHECK(test::is_uniform(at_back));
}
