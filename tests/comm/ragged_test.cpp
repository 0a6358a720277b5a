// SPDX-License-Identifier: Apache-2.0
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

using omnibal::ragged;

TEST_CASE("rows keep their values") {
  ragged<int> rows;
  CHECK(rows.empty());
  CHECK(rows.begin() == rows.end());
  rows.push(std::vector<int>{1, 2});
  rows.push({});
  rows.push(std::vector<int>{3});
  CHECK(rows == ragged<int>({0, 2, 2, 3}, {1, 2, 3}));
  CHECK(rows.size() == 3);
  CHECK(rows[1].empty());
  rows[2][0] = 7;
  CHECK(rows != ragged<int>({0, 2, 2, 3}, {1, 2, 3}));
  std::string walked;
  for (auto const row : rows) {
    for (int const value : row) walked += std::to_string(value);
    walked += ' ';
  }
  CHECK(walked == "12  7 ");
  CHECK(rows.end() - rows.begin() == 3);
  CHECK(rows.begin()[2][0] == 7);
  CHECK((*--rows.end())[0] == 7);
  rows.clear();
  CHECK(rows == ragged<int>());
}

TEST_CASE("rows of given lengths") {
  ragged<char> rows;
  rows.shape(std::vector<std::uint64_t>{0, 3, 1});
  CHECK(rows.size() == 3);
  CHECK(rows[1].size() == 3);
  CHECK(rows.values().size() == 4);
  rows.shape(std::vector<std::uint64_t>{1});
  CHECK(rows.size() == 1);
  CHECK(rows.values().size() == 1);
  auto const most = std::numeric_limits<std::uint64_t>::max();
  CHECK_THROWS_AS(rows.shape(std::vector<std::uint64_t>{most, 1}), std::overflow_error);
}

TEST_CASE("ready arrays must be rows") {
  CHECK_THROWS_AS(ragged<int>({}, {}), std::invalid_argument);
  CHECK_THROWS_AS(ragged<int>({1, 2}, {1, 2}), std::invalid_argument);
  CHECK_THROWS_AS(ragged<int>({0, 2, 1, 2}, {1, 2}), std::invalid_argument);
  CHECK_THROWS_AS(ragged<int>({0, 1}, {1, 2}), std::invalid_argument);
}

static_assert(omnibal::sample_range<ragged<float>>);
static_assert(std::ranges::random_access_range<ragged<float>>);
