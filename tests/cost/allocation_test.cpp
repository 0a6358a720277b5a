// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/models.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include <catch.hpp>

TEST_CASE("the costs of a layer and of a sample allocate nothing") {
  omnibal::micro_batch_work const batch{
      .tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})};
  std::vector<std::pair<int, std::int64_t>> const points{{1, 10}, {100, 500}, {2000, 90'000}};
  auto const table = omnibal::measured_table(points, &std::pair<int, std::int64_t>::first,
                                             &std::pair<int, std::int64_t>::second);
  std::int64_t sum = 0;
  CHECK(test::allocations_of([&] {
          omnibal::internvl_6_20b.for_each_layer(
              [&](auto const& layer, std::int64_t count) { sum += count * layer(batch).flops(); });
          sum += omnibal::document_cost(omnibal::deepseek_v2)(1000);
          sum += omnibal::count_parameters(omnibal::internvl_6_34b).active;
          sum += table(300);
        }) == 0);
  CHECK(sum > 0);
}
