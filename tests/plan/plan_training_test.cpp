// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::solve_status;
using omnibal::training_lever;
using numbers = std::vector<std::uint32_t>;
using batches_type = std::vector<std::int64_t>;

constexpr omnibal::device_model one_flop_a_nanosecond{.flops_per_second = 1'000'000'000};

/// Six layers, the last two with few parameters and much work.
std::vector<omnibal::layer_cost> costs_of(std::int64_t size) {
  std::vector<omnibal::layer_cost> costs(6);
  for (std::size_t l = 0; l != costs.size(); ++l) {
    bool const is_heavy = l >= 4;
    std::int64_t const flops = (is_heavy ? 40 : 10) * size;
    auto& cost = costs[l];
    cost.forward.flops = flops;
    cost.backward.flops = 2 * flops;
    cost.parameters = is_heavy ? 1 : 10;
    cost.parameter_bytes = 7;
    cost.choices[0] = {.kept_bytes = 100 * size, .transient_bytes = 5};
    cost.choices[1] = {
        .kept_bytes = 50 * size, .transient_bytes = 9, .extra = {.flops = flops / 2}};
    cost.choices[2] = {.kept_bytes = size, .transient_bytes = 20, .extra = {.flops = flops}};
  }
  return costs;
}

/// `counts[rank]` micro-batches for each rank, in one step, in order.
omnibal::training_data<std::int64_t> one_step(batches_type const& sizes, numbers const& counts) {
  std::vector<std::vector<std::uint32_t>> cells;
  std::uint32_t next = 0;
  for (auto const count : counts) {
    auto& cell = cells.emplace_back();
    for (std::uint32_t i = 0; i != count; ++i) cell.push_back(next++);
  }
  return {sizes, omnibal::make_steps(cells, counts.size())};
}

omnibal::pipeline_plan<std::int64_t> recomputed_plan() {
  return omnibal::plan_by_parameters(costs_of(1), 2);
}

auto const first_data_of = [](batches_type const& samples) { return one_step(samples, {2, 2}); };
auto const even_data_of = [](batches_type const& samples) {
  std::int64_t sum = 0;
  for (std::int64_t const size : samples) sum += size;
  auto const count = static_cast<std::int64_t>(samples.size());
  return one_step(batches_type(samples.size(), sum / count), {2, 2});
};

}  // namespace

TEST_CASE("plan_by_parameters cuts as trainers do and recomputes everything") {
  auto const plan = recomputed_plan();
  CHECK(plan.boundaries == numbers{0, 2, 6});
  CHECK(plan.choices == numbers(6, 2));
}

TEST_CASE("simulate_training takes the slowest rank of each step and the true bytes") {
  auto const plan = recomputed_plan();
  omnibal::pipeline_machine const machine{.stages = 2,
                                          .memory_bytes = {1000},
                                          .reserve_bytes = {3, 4},
                                          .device = one_flop_a_nanosecond};
  // A micro-batch of size s takes 20 s forward and 60 s backward on stage 0, 100 s and 300 s on
  // stage 1, which waits 20 s for the first forward pass; stage 0 ends 60 s after it.
  auto const one = omnibal::simulate_training(plan, one_step({2}, {1}), machine, costs_of);
  CHECK(one.steps == 1);
  CHECK(one.nanoseconds == 2 * (20 + 100 + 300 + 60));
  CHECK(one.peak_bytes == std::vector<std::int64_t>{2 * 2 + 20 + 14 + 3, 2 * 4 + 20 + 28 + 4});
  CHECK(one.waiting_share == Approx(0.5));

  auto const both =
      omnibal::simulate_training(plan, one_step({2, 3, 1}, {1, 2}), machine, costs_of);
  // Rank 1: 60 for the first forward pass, 1200 and 400 on stage 1, then 60 backward on stage 0.
  CHECK(both.nanoseconds == 60 + 1200 + 400 + 60);
  // Stage 0 has both in flight, of 3 and of 1.
  CHECK(both.peak_bytes[0] == 2 * 3 + 2 * 1 + 20 + 14 + 3);
  CHECK(both.peak_bytes[1] == 4 * 3 + 20 + 28 + 4);
}

TEST_CASE("simulate_training runs any schedule with one chunk") {
  auto const plan = recomputed_plan();
  omnibal::pipeline_machine const machine{
      .stages = 2, .memory_bytes = {1000}, .device = one_flop_a_nanosecond};
  auto const data = one_step({2, 2, 2}, {3});
  auto const now = omnibal::simulate_training(plan, data, machine, costs_of);
  CHECK(now == omnibal::simulate_training(plan, data, machine, costs_of, omnibal::one_f_one_b{}));
  auto const all =
      omnibal::simulate_training(plan, data, machine, costs_of, omnibal::gpipe{.stages = 9});
  // Stage 1 keeps all three micro-batches, of 4 bytes for each sample, instead of one.
  CHECK(all.peak_bytes[1] == now.peak_bytes[1] + 2 * 4 * 2);
  auto const split = omnibal::simulate_training(plan, data, machine, costs_of, omnibal::zb_h1{});
  CHECK(split.nanoseconds <= all.nanoseconds);
  CHECK_THROWS_AS(omnibal::simulate_training(plan, data, machine, costs_of,
                                             omnibal::interleaved_1f1b{.chunks = 2}),
                  std::invalid_argument);
}

TEST_CASE("simulate_training counts the bytes between stages where links have a speed") {
  auto const plan = recomputed_plan();
  omnibal::pipeline_machine machine{
      .stages = 2, .memory_bytes = {1000}, .device = one_flop_a_nanosecond};
  auto const with_cuts = [](std::int64_t size) {
    auto costs = costs_of(size);
    // Only what leaves stage 0 is sent.
    for (std::size_t l = 0; l != costs.size(); ++l) costs[l].cut_bytes = l == 1 ? 7 * size : 1000;
    return costs;
  };
  auto const time = [&] {
    return omnibal::simulate_training(plan, one_step({2}, {1}), machine, with_cuts).nanoseconds;
  };
  CHECK(time() == 2 * (20 + 100 + 300 + 60));
  // 14 bytes forward, 14 backward.
  machine.link_bytes_per_second = 500'000'000;
  CHECK(time() == 2 * (20 + 100 + 300 + 60) + 2 * 28);
  machine.link_bytes_per_second = 0;
  CHECK_THROWS_AS(time(), std::invalid_argument);
}

TEST_CASE("plan_training applies the levers one after the other") {
  omnibal::pipeline_machine const machine{
      .stages = 2, .memory_bytes = {2000}, .device = one_flop_a_nanosecond};
  batches_type const samples{6, 1, 2, 3};
  auto const plan = omnibal::plan_training(samples, machine, first_data_of, even_data_of, costs_of,
                                           {.micro_batches = 2});
  auto const time = [&](training_lever lever) { return plan[lever].estimate.nanoseconds; };
  CHECK(time(training_lever::baseline) > time(training_lever::data));
  CHECK(time(training_lever::data) > time(training_lever::model));
  CHECK(time(training_lever::model) > time(training_lever::memory));
  CHECK(plan[training_lever::data].plan == plan[training_lever::baseline].plan);
  CHECK(plan[training_lever::model].plan.boundaries == numbers{0, 4, 6});
  CHECK(plan[training_lever::model].plan.choices == numbers(6, 2));
  CHECK(plan.first_data.batches == samples);
  CHECK(plan.balanced_data.batches == batches_type(4, 3));

  auto const again = omnibal::simulate_training(plan[training_lever::memory].plan,
                                                plan.balanced_data, machine, costs_of);
  CHECK(again == plan[training_lever::memory].estimate);
  auto const layers = omnibal::shape_costs(plan.balanced_data.batches, machine.device, costs_of);
  CHECK(omnibal::plan_pipeline(layers, machine, {.micro_batches = 2}) ==
        plan[training_lever::memory].plan);
}

TEST_CASE("plan_training keeps every step within the memory") {
  for (std::int64_t memory = 60; memory < 2500; memory += 40) {
    CAPTURE(memory);
    omnibal::pipeline_machine const machine{
        .stages = 2, .memory_bytes = {memory}, .device = one_flop_a_nanosecond};
    auto const plan = omnibal::plan_training(batches_type{6, 1, 2, 3}, machine, first_data_of,
                                             first_data_of, costs_of, {.micro_batches = 2});
    for (auto const lever : {training_lever::model, training_lever::memory}) {
      if (plan[lever].plan.status != solve_status::solved) {
        CHECK(plan[lever].plan.missing_bytes > 0);
        CHECK(plan[lever].estimate.steps == 0);
        continue;
      }
      for (std::int64_t const peak : plan[lever].estimate.peak_bytes) CHECK(peak <= memory);
    }
  }
}

TEST_CASE("simulate_training of equal micro-batches is near the step time of the plan") {
  omnibal::pipeline_machine const machine{
      .stages = 2, .memory_bytes = {100'000}, .device = one_flop_a_nanosecond};
  auto const data = one_step(batches_type(32, 5), {32});
  auto const layers = omnibal::shape_costs(data.batches, machine.device, costs_of);
  auto const plan = omnibal::plan_pipeline(layers, machine, {.micro_batches = 32});
  auto const estimate = omnibal::simulate_training(plan, data, machine, costs_of);
  CHECK(static_cast<double>(estimate.nanoseconds) ==
        Approx(static_cast<double>(plan.step_time)).epsilon(0.03));
}

TEST_CASE("simulate_training refuses what does not belong together") {
  omnibal::pipeline_machine machine{
      .stages = 2, .memory_bytes = {1000}, .device = one_flop_a_nanosecond};
  auto const data = one_step({1, 2}, {2});
  auto plan = recomputed_plan();
  auto const error = [&] {
    return test::error_text<std::invalid_argument>(
        [&] { static_cast<void>(omnibal::simulate_training(plan, data, machine, costs_of)); });
  };
  CHECK(error() == "no error");
  machine.stages = 3;
  CHECK(error() == "omnibal::simulate_training: the plan has 3 boundaries, the machine 3 stages");
  machine.stages = 2;
  plan.choices.push_back(0);
  CHECK(error() == "omnibal::simulate_training: a micro-batch has 6 layers, the plan has 7");
  plan.choices.pop_back();
  plan.choices[3] = 3;
  CHECK(error() == "omnibal::simulate_training: the plan has choice 3, layers have 3");
  plan = recomputed_plan();
  auto missing = data;
  missing.batches.pop_back();
  CHECK_THROWS_AS(omnibal::simulate_training(plan, missing, machine, costs_of),
                  std::invalid_argument);
  auto const no_data = [](batches_type const&) { return one_step({}, {0}); };
  CHECK_THROWS_AS(omnibal::plan_training(batches_type{1}, machine, no_data, first_data_of, costs_of,
                                         {.micro_batches = 1}),
                  std::invalid_argument);
}

// Why: the plan promises the memory of a step and estimates its time, and the simulation of the
// same schedule must agree with both.
TEST_CASE("simulate_training runs plans with chunks") {
  omnibal::pipeline_machine const machine{
      .stages = 2, .memory_bytes = {1300}, .reserve_bytes = {11}, .device = one_flop_a_nanosecond};
  auto const costs = [](std::int64_t) {
    auto result = costs_of(2);
    for (auto const& more : costs_of(2)) result.push_back(more);
    return result;
  };
  std::vector<std::int64_t> const sizes(8, 2);
  auto const data = one_step(sizes, {8});
  for (std::size_t const chunks : {2u, 3u}) {
    CAPTURE(chunks);
    auto const plan =
        omnibal::plan_pipeline(costs(2), machine, {.count = chunks}, {.micro_batches = 8});
    REQUIRE(plan.status == solve_status::solved);
    omnibal::interleaved_1f1b const schedule{.chunks = chunks};
    auto const found = omnibal::simulate_training(plan, data, machine, costs, schedule);
    for (std::size_t d = 0; d != 2; ++d) {
      CHECK(found.peak_bytes[d] == plan.stages[d].bytes);
      CHECK(found.peak_bytes[d] <= 1300);
    }
    CHECK(static_cast<double>(found.nanoseconds) > .9 * static_cast<double>(plan.step_time));
    CHECK(static_cast<double>(found.nanoseconds) < 1.1 * static_cast<double>(plan.step_time));
    CHECK(test::error_text<std::invalid_argument>([&] {
            static_cast<void>(omnibal::simulate_training(plan, data, machine, costs));
          }) == "omnibal::simulate_training: the schedule has 1 chunks, must have " +
                    std::to_string(chunks));
    auto other = plan;
    other.placement = omnibal::chunk_placement::v_shape;
    CHECK(test::error_text<std::invalid_argument>([&] {
            static_cast<void>(omnibal::simulate_training(other, data, machine, costs, schedule));
          }) ==
          "omnibal::simulate_training: chunk 1 of stage 0 is virtual stage 2 of the schedule "
          "and 3 of the plan");
  }
}

// Why: all levers of a plan with chunks must run on the schedule that has them.
TEST_CASE("plan_training plans chunks") {
  omnibal::pipeline_machine const machine{
      .stages = 2, .memory_bytes = {1200}, .device = one_flop_a_nanosecond};
  batches_type const samples{1, 3, 2, 2};
  auto const plan = omnibal::plan_training(samples, machine, {.count = 2}, first_data_of,
                                           even_data_of, costs_of, {.micro_batches = 2});
  for (omnibal::lever_result const& lever : plan.levers) {
    CHECK(lever.plan.status == solve_status::solved);
    CHECK(lever.plan.chunks == 2);
    CHECK(lever.plan.boundaries.size() == 5);
    CHECK(lever.estimate.nanoseconds > 0);
  }
  auto const time_of = [&](training_lever lever) { return plan[lever].estimate.nanoseconds; };
  CHECK(time_of(training_lever::memory) <= time_of(training_lever::model));
  auto const one = omnibal::plan_training(samples, machine, {.count = 1}, first_data_of,
                                          even_data_of, costs_of, {.micro_batches = 2});
  CHECK(one.levers == omnibal::plan_training(samples, machine, first_data_of, even_data_of,
                                             costs_of, {.micro_batches = 2})
                          .levers);
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::plan_training(
              samples, machine, {.count = 2, .placement = omnibal::chunk_placement::v_shape},
              first_data_of, even_data_of, costs_of, {.micro_batches = 2}));
        }) ==
        "omnibal::plan_training: chunks.placement is not looped: call the parts with a "
        "schedule of your own");
}
