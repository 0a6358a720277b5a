// SPDX-License-Identifier: Apache-2.0
// Costs as partitioning and recomputation take them, without adaptors.

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

constexpr omnibal::device_model device{.flops_per_second = 156'000'000'000'000,
                                       .bytes_per_second = 1'500'000'000'000};

std::vector<omnibal::layer_cost> usual_costs() {
  return omnibal::layer_costs(
      omnibal::internvl_6_20b,
      {.tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})},
      {.data = 8});
}

}  // namespace

TEST_CASE("a model is cut by the times of its layers") {
  auto const costs = usual_costs();
  auto const time = omnibal::stage_sum(costs, omnibal::layer_time{device});
  auto const cut = omnibal::partition_layers(costs, 4, time);
  std::int64_t const all = time(0, 0, costs.size());
  CHECK(cut.bottleneck >= (all + 3) / 4);
  CHECK(cut.bottleneck < all / 4 + all / 20);
}

TEST_CASE("the cut sends what the layer before it sends") {
  auto const costs = usual_costs();
  auto const time = omnibal::stage_sum(costs, omnibal::layer_time{device});
  auto const with_traffic = [&](std::size_t stage, std::size_t first, std::size_t last) {
    std::int64_t const sent = last == 0 ? 0 : costs[last - 1].cut_bytes / 25;
    return time(stage, first, last) + sent;
  };
  CHECK(omnibal::partition_layers(costs, 4, with_traffic).bottleneck >=
        omnibal::partition_layers(costs, 4, time).bottleneck);
}

TEST_CASE("activations of layers are chosen within a budget") {
  auto const costs = usual_costs();
  auto const choices = omnibal::timed_choices{device};
  std::int64_t all_kept = 0;
  std::int64_t max_transient = 0;
  for (auto const& cost : costs) {
    all_kept += cost[omnibal::recompute_choice::none].kept_bytes;
    max_transient = std::max(max_transient, cost[omnibal::recompute_choice::full].transient_bytes);
  }
  auto const rich = omnibal::select_recompute(costs, choices, all_kept + max_transient);
  REQUIRE(rich.choices.size() == costs.size());
  auto const poor = omnibal::select_recompute(costs, choices, all_kept / 2 + max_transient);
  REQUIRE(poor.choices.size() == costs.size());
  CHECK(rich.time == omnibal::stage_sum(costs, omnibal::layer_time{device})(0, 0, costs.size()));
  CHECK(poor.time > rich.time);
  CHECK(poor.bytes <= all_kept / 2 + max_transient);
}
