// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"
#include "separate_plan.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

using layers_type = std::vector<omnibal::plan_layer<>>;

constexpr omnibal::device_model half_an_a100{.flops_per_second = 156'000'000'000'000,
                                             .bytes_per_second = 1'500'000'000'000};

layers_type vision_language_layers() {
  auto model = omnibal::internvl_6_20b;
  model.vision.layer.heads = 26;
  model.vision.layer.head_size = 128;
  return omnibal::timed_layers(
      omnibal::layer_costs(
          model, {.tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})},
          {.tensor = 2, .data = 8, .norms = omnibal::norm_regions::split}),
      half_an_a100);
}

layers_type language_layers() {
  return omnibal::timed_layers(
      omnibal::layer_costs(omnibal::llama3_8b,
                           {.documents = omnibal::equal_sequences({.count = 1, .length = 8192})},
                           {.data = 8}),
      half_an_a100);
}

/// The largest gain over planning cuts and choices one after the other, over machines of 16 to 160
/// GB for each stage.
double largest_gain(layers_type const& layers, std::size_t stages, std::size_t micro_batches) {
  double best = 0;
  for (std::int64_t gigabytes = 16; gigabytes <= 160; gigabytes += 8) {
    CAPTURE(stages, micro_batches, gigabytes);
    std::int64_t const memory = gigabytes * 1'000'000'000;
    auto const plan = omnibal::plan_pipeline(layers, {.stages = stages, .memory_bytes = {memory}},
                                             {.micro_batches = micro_batches});
    test::separate_problem const problem{layers, stages, memory, micro_batches};
    auto const separate =
        std::min(test::separate_step_time(problem, test::balanced_time::all_kept),
                 test::separate_step_time(problem, test::balanced_time::all_recomputed));
    if (plan.status != omnibal::solve_status::solved) {
      CHECK(separate == std::numeric_limits<std::int64_t>::max());
      continue;
    }
    CHECK(plan.step_time <= separate);
    double const step = static_cast<double>(plan.step_time);
    CHECK(static_cast<double>(plan.lower_bound) >= 0.995 * step);
    if (separate == std::numeric_limits<std::int64_t>::max()) continue;
    best = std::max(best, static_cast<double>(separate) / step - 1);
  }
  return best;
}

}  // namespace

TEST_CASE("plan_pipeline beats balancing first and recomputing then", "[slow]") {
  auto const vision_language = vision_language_layers();
  CHECK(largest_gain(vision_language, 8, 64) > 0.09);
  CHECK(largest_gain(vision_language, 16, 64) > 0.08);
  auto const language = language_layers();
  CHECK(largest_gain(language, 8, 64) > 0.15);
  CHECK(largest_gain(language, 8, 16) > 0.12);
}

TEST_CASE("plan_pipeline has a small gap for layers that are nearly equal") {
  test::random_amounts random(6);
  for (std::size_t const stages : {2u, 4u, 8u, 16u}) {
    layers_type layers;
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (int l = 0; l != 128; ++l) {
      auto const noisy = [&](std::int64_t value) {
        return value + random.between(-value / 50, value / 50);
      };
      std::int64_t const time = noisy(3'000'000);
      layers.push_back({{{3 * time, noisy(1968), noisy(490)},
                         {3 * time + time / 10, noisy(1181), noisy(980)},
                         {4 * time, noisy(98), noisy(1960)}},
                        noisy(1200)});
      least += 98 * static_cast<std::int64_t>(stages) + layers.back().state_bytes;
      most += 1968 * static_cast<std::int64_t>(stages) + layers.back().state_bytes;
    }
    auto const count = static_cast<std::int64_t>(stages);
    for (int part = 1; part != 6; ++part) {
      CAPTURE(stages, part);
      std::int64_t const memory = 3000 + (least + (most - least) * part / 8) / count;
      auto const plan = omnibal::plan_pipeline(layers, {.stages = stages, .memory_bytes = {memory}},
                                               {.micro_batches = 32});
      REQUIRE(plan.status == omnibal::solve_status::solved);
      CHECK(static_cast<double>(plan.lower_bound) >= 0.995 * static_cast<double>(plan.step_time));
    }
  }
}
