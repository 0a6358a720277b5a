// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <omnibal/balance/detail/vector_load_index.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

/// The same by a look at every part.
template <std::size_t R>
struct naive_loads {
  std::vector<omnibal::resources<R>> loads;
  std::vector<bool> is_closed;

  [[nodiscard]] std::size_t best(omnibal::resources<R> const& cost) const {
    auto const key = [&](std::size_t part) {
      omnibal::resources<R> const after = loads[part] + cost;
      auto const& now = loads[part].amounts;
      return std::array<std::int64_t, 3>{
          is_closed[part] ? 1 : 0,
          *std::max_element(std::begin(after.amounts), std::end(after.amounts)),
          std::accumulate(std::begin(now), std::end(now), std::int64_t{0})};
    };
    std::size_t result = 0;
    for (std::size_t part = 1; part != loads.size(); ++part) {
      if (key(part) < key(result)) result = part;
    }
    return result;
  }
};

/// The amounts of one cost; kinds differ in each way that mixtures do.
template <std::size_t R>
omnibal::resources<R> cost_of(std::string const& shape, test::random_amounts& random) {
  omnibal::resources<R> cost{};
  auto const chosen = static_cast<std::size_t>(random.between(0, R - 1));
  for (std::size_t r = 0; r != R; ++r) {
    if (shape == "all alike") cost[r] = 5;
    if (shape == "none") cost[r] = 0;
    if (shape == "small") cost[r] = random.between(0, 2);
    if (shape == "independent") cost[r] = random.between(0, 1'000'000);
    if (shape == "one kind each") cost[r] = r == chosen ? random.between(1, 1'000) : 0;
    if (shape == "huge") cost[r] = random.between(0, std::int64_t{1} << 38);
  }
  return cost;
}

template <std::size_t R>
void compare(std::size_t parts, std::string const& shape) {
  test::random_amounts random(parts + R);
  omnibal::detail::vector_load_index<R> loads(parts);
  naive_loads<R> naive{std::vector<omnibal::resources<R>>(parts), std::vector<bool>(parts)};
  std::size_t open = parts;
  for (std::size_t k = 0; k != 6 * parts; ++k) {
    auto const cost = cost_of<R>(shape, random);
    std::size_t const expected = naive.best(cost);
    INFO(parts << " parts, " << R << " kinds, " << shape << ", after " << k);
    REQUIRE(loads.best(cost) == expected);
    loads.add(expected, cost);
    naive.loads[expected] += cost;
    if (open == 1 || random.between(0, 9) != 0) continue;
    loads.close(expected);
    naive.is_closed[expected] = true;
    --open;
  }
}

}  // namespace

TEST_CASE("the part for a sample of several kinds is that of a look at every part", "[slow]") {
  for (std::string const shape :
       {"all alike", "none", "small", "independent", "one kind each", "huge"}) {
    for (std::size_t const parts : {1u, 7u, 256u, 257u, 700u}) {
      compare<2>(parts, shape);
      compare<3>(parts, shape);
      compare<5>(parts, shape);
    }
  }
}

TEST_CASE("loads that are used again begin without loads") {
  omnibal::detail::vector_load_index<2> loads(1000);
  for (std::size_t part = 0; part != 1000; ++part) loads.add(part, {1, 3});
  loads.reset(300);
  for (std::uint32_t part = 0; part != 300; ++part) {
    REQUIRE(loads.best({2, 1}) == part);
    loads.add(part, {2, 1});
  }
}
