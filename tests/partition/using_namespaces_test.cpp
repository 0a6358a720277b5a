// SPDX-License-Identifier: Apache-2.0
// Programs that take all names of both namespaces compile, with nothing qualified.

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

// Here, so that the names of Catch2 are in nobody's way.
using namespace std;
using namespace omnibal;

vector<uint32_t> cut_by_all_means(vector<int64_t> const& costs) {
  auto const cost = [&](size_t, size_t first, size_t last) {
    auto const begin = costs.begin();
    return accumulate(begin + static_cast<ptrdiff_t>(first), begin + static_cast<ptrdiff_t>(last),
                      int64_t{0});
  };
  memory_rule const rule{cost, 1000};
  partition_constraints const constraints{
      .empty = empty_stages::forbidden, .pinned = {{0, 0}}, .tied = {{0, 1}}};
  auto const layers = partition_layers(costs, 2, cost, rule, {.constraints = constraints});
  auto const step = partition_throughput(costs, 2, cost, fits_always{}, {.micro_batches = 4});
  CHECK(layers.status == solve_status::solved);
  CHECK(step.bottleneck >= layers.bottleneck);
  partition_minimax_workspace<> workspace;
  CHECK(partition_minimax(costs, 2, workspace).bottleneck ==
        partition_minimax(costs, 2, identity{}).bottleneck);
  cut_score const score(costs, costs, 2);
  auto const first_cut = [](span<uint32_t const> boundaries) { return boundaries[1]; };
  auto const found = search_cuts(neighbors(layers.boundaries, 1), score, 3, first_cut);
  CHECK(found.candidates.size() == 3);
  return layers.boundaries;
}

vector<int64_t> cost_by_all_means() {
  micro_batch_work const batch{.documents = equal_sequences({.count = 2, .length = 128})};
  vector<int64_t> flops;
  for (layer_cost const& cost : layer_costs(llama3_8b, batch)) flops.push_back(cost.forward.flops);
  return flops;
}

}  // namespace

TEST_CASE("all names of std and omnibal can be used together") {
  CHECK(cut_by_all_means({4, 3, 2, 1, 1}) == std::vector<std::uint32_t>{0, 2, 5});
  CHECK(cost_by_all_means().size() == 34);
}
