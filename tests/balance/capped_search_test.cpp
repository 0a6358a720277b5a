#include "brute_force.hpp"
#include "samples.hpp"

#include <omnibal/balance/detail/capped_search.hpp>
#include <omnibal/detail/measure.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>

#include <catch.hpp>

using omnibal::detail::capped_search;
using omnibal::detail::search_end;

TEST_CASE("the search of all ways finds what there is and proves what there is not") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    for (auto const& set : test::small_sets<2>(seed, 8)) {
      std::size_t const fewest = test::fewest_groups(set.samples, set.capacity);
      for (std::size_t parts = 1; parts != 7; ++parts) {
        INFO(set.name << ", seed " << seed << ", " << parts << " parts, " << fewest << " needed");
        auto const end = omnibal::detail::with_measured("test", set.samples, std::identity{},
                                                        set.capacity, [parts](auto&& input) {
                                                          capped_search search(input, parts);
                                                          return search.run(1'000'000);
                                                        });
        bool const is_right = end == (fewest <= parts ? search_end::found : search_end::exhausted);
        CHECK(is_right);
      }
    }
  }
}
