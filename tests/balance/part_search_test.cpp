// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "samples.hpp"

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_search.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

using omnibal::solve_status;

TEST_CASE("the search for parts finds what there is and proves what there is not") {
  using search_type = omnibal::detail::part_search<omnibal::resources<2>>;
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    for (auto const& set : test::small_sets<2>(seed, 8)) {
      auto amounts = set.samples;
      std::erase_if(amounts, [&](auto const& sample) { return !sample.fits(set.capacity); });
      std::size_t const fewest = test::min_groups(amounts, set.capacity);
      for (std::size_t parts = 1; parts != 7; ++parts) {
        INFO(set.name << ", seed " << seed << ", " << parts << " parts, " << fewest << " needed");
        search_type search(amounts, set.capacity, omnibal::detail::count_limits(parts));
        std::uint64_t nodes = 1'000'000;
        auto const right = fewest <= parts ? solve_status::solved : solve_status::infeasible;
        bool const is_right = search.run(nodes) == right;
        CHECK(is_right);
      }
    }
  }
}
