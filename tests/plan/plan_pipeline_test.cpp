// SPDX-License-Identifier: Apache-2.0
#include "every_pipeline.hpp"
#include "samples.hpp"

#include <omnibal/plan/plan_pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::pipeline_machine;
using omnibal::plan_pipeline;
using omnibal::plan_pipeline_options;
using omnibal::solve_status;
using bytes_of_stages = std::vector<std::int64_t>;
using boundaries = std::vector<std::uint32_t>;
using numbers = std::vector<std::uint32_t>;

constexpr std::int64_t plenty = std::int64_t{1} << 40;

/// Small numbers meet in ties, large ones do not.
test::plan_layers random_layers(test::random_amounts& random, std::int64_t most) {
  test::plan_layers layers(static_cast<std::size_t>(random.between(1, 7)));
  std::int64_t const limit = random.between(0, 1) == 0 ? 5 : 10'000;
  for (auto& layer : layers) {
    layer.state_bytes = random.heavy_tail(limit);
    layer.choices.resize(static_cast<std::size_t>(random.between(1, most)));
    for (auto& way : layer.choices) {
      way = {random.heavy_tail(limit), random.heavy_tail(limit), random.heavy_tail(limit)};
    }
  }
  if (random.between(0, 2) == 0) std::fill(layers.begin(), layers.end(), layers.front());
  return layers;
}

std::vector<test::stage_memory> random_machine(test::random_amounts& random, std::size_t layers,
                                               std::int64_t micro_batches) {
  auto const most = static_cast<std::int64_t>(std::min<std::size_t>(layers, 4));
  std::vector<test::stage_memory> machine(static_cast<std::size_t>(random.between(1, most)));
  std::int64_t const limit = random.between(0, 1) == 0 ? 40 : 60'000;
  std::int64_t const all = random.heavy_tail(limit);
  bool const is_even = random.between(0, 1) == 0;
  for (std::size_t s = 0; s != machine.size(); ++s) {
    machine[s].memory = is_even ? all : random.heavy_tail(limit);
    machine[s].reserve = random.heavy_tail(limit / 20);
    auto const after = static_cast<std::int64_t>(machine.size() - s);
    machine[s].in_flight = std::min(micro_batches, after);
  }
  return machine;
}

pipeline_machine to_machine(std::vector<test::stage_memory> const& stages) {
  return {.stages = stages.size(),
          .memory_bytes = {stages, &test::stage_memory::memory},
          .reserve_bytes = {stages, &test::stage_memory::reserve}};
}

template <class Time>
void check_plan(std::vector<omnibal::plan_layer<Time>> const& layers,
                std::vector<test::stage_memory> const& machine, std::size_t micro_batches,
                omnibal::pipeline_plan<Time> const& plan) {
  REQUIRE(plan.status == solve_status::solved);
  REQUIRE(plan.boundaries.size() == machine.size() + 1);
  REQUIRE(plan.boundaries.front() == 0);
  REQUIRE(plan.boundaries.back() == layers.size());
  REQUIRE(plan.choices.size() == layers.size());
  REQUIRE(plan.stages.size() == machine.size());
  Time largest{};
  Time sum{};
  for (std::size_t s = 0; s != machine.size(); ++s) {
    REQUIRE(plan.boundaries[s] <= plan.boundaries[s + 1]);
    Time time{};
    std::int64_t fixed = machine[s].reserve;
    std::int64_t kept = 0;
    std::int64_t transient = 0;
    for (std::size_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
      REQUIRE(plan.choices[l] < layers[l].choices.size());
      auto const& way = layers[l].choices[plan.choices[l]];
      time += way.time;
      kept += way.bytes;
      transient = std::max(transient, way.transient_bytes);
      fixed += layers[l].state_bytes;
    }
    CHECK(plan.stages[s].time == time);
    CHECK(plan.stages[s].in_flight == machine[s].in_flight);
    CHECK(plan.stages[s].bytes == machine[s].in_flight * kept + transient + fixed);
    REQUIRE(plan.stages[s].bytes <= machine[s].memory);
    largest = std::max(largest, time);
    sum += time;
  }
  CHECK(plan.step_time == static_cast<Time>(micro_batches - 1) * largest + sum);
  CHECK(plan.lower_bound <= plan.step_time);
}

}  // namespace

TEST_CASE("plan_pipeline agrees with trying every plan") {
  test::random_amounts random(1);
  int feasible = 0;
  int infeasible = 0;
  for (int run = 0; run != 3000; ++run) {
    CAPTURE(run);
    auto const layers = random_layers(random, 3);
    auto const micro_batches = random.between(1, 9);
    auto const machine = random_machine(random, layers.size(), micro_batches);
    auto const best = test::find_best_pipeline(layers, machine, micro_batches);
    plan_pipeline_options const options{.micro_batches = static_cast<std::size_t>(micro_batches),
                                        .max_gap = 0};
    auto const plan = plan_pipeline(layers, to_machine(machine), options);
    CHECK(plan.proven);
    if (best.step_time == test::no_plan) {
      ++infeasible;
      CHECK(plan.status == solve_status::infeasible);
      CHECK(plan.missing_bytes == best.missing_bytes);
      CHECK(plan.boundaries.empty());
      CHECK(plan.choices.empty());
    } else {
      ++feasible;
      check_plan(layers, machine, options.micro_batches, plan);
      CHECK(plan.step_time == best.step_time);
      CHECK(plan.lower_bound == best.step_time);
    }
  }
  CHECK(feasible > 800);
  CHECK(infeasible > 800);
}

TEST_CASE("plan_pipeline has a bound that holds when few states are kept") {
  test::random_amounts random(2);
  int without_proof = 0;
  for (int run = 0; run != 1000; ++run) {
    CAPTURE(run);
    auto const layers = random_layers(random, 4);
    auto const micro_batches = random.between(1, 9);
    auto machine = random_machine(random, layers.size(), micro_batches);
    for (auto& stage : machine) stage.memory += 10'000;
    auto const best = test::find_best_pipeline(layers, machine, micro_batches);
    plan_pipeline_options const options{.micro_batches = static_cast<std::size_t>(micro_batches),
                                        .states = static_cast<std::size_t>(random.between(1, 3)),
                                        .rounds = static_cast<std::size_t>(random.between(0, 1)),
                                        .max_gap = 0};
    auto const plan = plan_pipeline(layers, to_machine(machine), options);
    if (best.step_time == test::no_plan) {
      CHECK(plan.status == solve_status::infeasible);
      continue;
    }
    check_plan(layers, machine, options.micro_batches, plan);
    CHECK(plan.step_time >= best.step_time);
    CHECK(plan.lower_bound <= best.step_time);
    if (plan.proven) CHECK(plan.step_time == best.step_time);
    if (!plan.proven) ++without_proof;
  }
  CHECK(without_proof > 0);
}

TEST_CASE("plan_pipeline gives the last stages more layers where the first lack memory") {
  // Four layers that may recompute for 2 more; the first stage has two micro-batches in flight.
  test::plan_layers const layers(4, {{{10, 100, 0}, {12, 10, 0}}, 0});
  auto const plan =
      plan_pipeline(layers, {.stages = 2, .memory_bytes = {300}}, {.micro_batches = 100});
  CHECK(plan.boundaries == boundaries{0, 2, 4});
  CHECK(plan.choices == numbers{0, 1, 0, 0});
  CHECK(plan.step_time == 99 * 22 + 42);
  CHECK(plan.proven);
  CHECK(plan.stages[0].bytes == 220);
  CHECK(plan.stages[1].bytes == 200);
  CHECK(plan.stages[0].in_flight == 2);
  CHECK(plan.choices_of(1).size() == 2);
  CHECK(plan.choices_of(0)[1] == 1);
}

TEST_CASE("plan_pipeline says which stage lacks memory") {
  test::plan_layers const layers(2, {{{10, 100, 50}, {12, 10, 70}}, 5});
  pipeline_machine machine{.stages = 2, .memory_bytes = {95, 1000}, .reserve_bytes = {7}};
  // Two micro-batches of 10, 70 transient, 5 of state, 7 of reserve.
  auto const plan = plan_pipeline(layers, machine, {.micro_batches = 4});
  CHECK(plan.status == solve_status::infeasible);
  CHECK(plan.stage == 0);
  CHECK(plan.missing_bytes == 7);
  machine.memory_bytes = {102, 1000};
  CHECK(plan_pipeline(layers, machine, {.micro_batches = 4}).status == solve_status::solved);
  machine.memory_bytes = {1000, 91};
  auto const second = plan_pipeline(layers, machine, {.micro_batches = 4});
  CHECK(second.stage == 1);
  CHECK(second.missing_bytes == 1);
}

TEST_CASE("plan_pipeline never loses by more memory, more choices or stages that may be empty") {
  test::random_amounts random(3);
  for (int run = 0; run != 300; ++run) {
    CAPTURE(run);
    auto layers = random_layers(random, 3);
    auto machine = random_machine(random, layers.size(), 8);
    for (auto& stage : machine) stage.memory += 40'000;
    plan_pipeline_options options{.micro_batches = 8, .max_gap = 0};
    auto const plan = plan_pipeline(layers, to_machine(machine), options);
    if (plan.status != solve_status::solved) continue;
    auto larger = machine;
    for (auto& stage : larger) stage.memory += random.between(0, 9000);
    CHECK(plan_pipeline(layers, to_machine(larger), options).step_time <= plan.step_time);
    options.constraints.empty = omnibal::empty_stages::allowed;
    CHECK(plan_pipeline(layers, to_machine(machine), options).step_time <= plan.step_time);
    options.constraints.empty = omnibal::empty_stages::forbidden;
    layers[0].choices.push_back({1, 1, 0});
    CHECK(plan_pipeline(layers, to_machine(machine), options).step_time <= plan.step_time);
  }
}

TEST_CASE("plan_pipeline never loses by one more stage that may be empty") {
  test::random_amounts random(7);
  int compared = 0;
  for (int run = 0; run != 300; ++run) {
    CAPTURE(run);
    auto const layers = random_layers(random, 3);
    auto const memory = random.between(5000, 60'000);
    pipeline_machine machine{.stages = static_cast<std::size_t>(random.between(1, 3)),
                             .memory_bytes = {memory}};
    plan_pipeline_options options{.micro_batches = 8, .max_gap = 0};
    options.constraints.empty = omnibal::empty_stages::allowed;
    auto const plan = plan_pipeline(layers, machine, options);
    ++machine.stages;
    auto const more = plan_pipeline(layers, machine, options);
    if (plan.status != solve_status::solved) continue;
    ++compared;
    REQUIRE(more.status == solve_status::solved);
    // The first stage may be the empty one: the others keep as many micro-batches as before.
    CHECK(more.step_time <= plan.step_time);
  }
  CHECK(compared > 100);
}

TEST_CASE("plan_pipeline plans floating-point times as it plans integers") {
  test::random_amounts random(4);
  for (int run = 0; run != 300; ++run) {
    CAPTURE(run);
    auto const layers = random_layers(random, 3);
    auto machine = random_machine(random, layers.size(), 8);
    for (auto& stage : machine) stage.memory += 20'000;
    std::vector<omnibal::plan_layer<double>> floating(layers.size());
    for (std::size_t l = 0; l != layers.size(); ++l) {
      floating[l].state_bytes = layers[l].state_bytes;
      for (auto const& way : layers[l].choices) {
        floating[l].choices.push_back(
            {static_cast<double>(way.time) / 4, way.bytes, way.transient_bytes});
      }
    }
    plan_pipeline_options const options{.micro_batches = 8, .max_gap = 0};
    auto const expected = plan_pipeline(layers, to_machine(machine), options);
    auto const plan = plan_pipeline(floating, to_machine(machine), options);
    CHECK(plan.status == expected.status);
    CHECK(plan.step_time == static_cast<double>(expected.step_time) / 4);
    CHECK(plan.boundaries == expected.boundaries);
    CHECK(plan.choices == expected.choices);
    CHECK(plan.proven);
    if (plan.status == solve_status::solved) check_plan(floating, machine, 8, plan);
  }
}

TEST_CASE("plan_pipeline obeys constraints of the cuts") {
  test::plan_layers const layers(6, {{{10, 1, 0}}, 0});
  pipeline_machine const machine{.stages = 3, .memory_bytes = {plenty}};
  plan_pipeline_options options{.micro_batches = 4};
  CHECK(plan_pipeline(layers, machine, options).boundaries == boundaries{0, 2, 4, 6});
  options.constraints.forbidden_cuts = {4};
  CHECK(plan_pipeline(layers, machine, options).boundaries == boundaries{0, 1, 3, 6});
  options.constraints.max_layers = {4, 4, 1};
  auto const plan = plan_pipeline(layers, machine, options);
  CHECK(plan.boundaries == boundaries{0, 2, 5, 6});
}

TEST_CASE("plan_pipeline takes the micro-batches in flight of other schedules") {
  test::plan_layers const layers(2, {{{10, 100, 0}, {12, 10, 0}}, 0});
  pipeline_machine const machine{.stages = 2, .memory_bytes = {200}};
  plan_pipeline_options options{.micro_batches = 4};
  CHECK(plan_pipeline(layers, machine, options).choices == numbers{0, 0});
  options.in_flight = {4};
  auto const plan = plan_pipeline(layers, machine, options);
  CHECK(plan.choices == numbers{1, 1});
  CHECK(plan.stages[1].in_flight == 4);
}

TEST_CASE("plan_pipeline plans the costs of layers") {
  omnibal::layer_cost cost{.forward = {.flops = 1000}, .backward = {.flops = 2000}};
  cost.parameter_bytes = 40;
  cost.optimizer_bytes = 60;
  cost.choices = {{{.kept_bytes = 50}, {.kept_bytes = 20}, {.kept_bytes = 2}}};
  cost.choices[1].extra.flops = 500;
  cost.choices[2].extra.flops = 1000;
  std::vector<omnibal::layer_cost> const costs(4, cost);
  auto const plan = plan_pipeline(
      costs, {.stages = 2, .memory_bytes = {300}, .device = {.flops_per_second = 1'000'000'000}},
      {.micro_batches = 8});
  CHECK(plan.boundaries == boundaries{0, 2, 4});
  CHECK(plan.stages[0].time == 7000);
  CHECK(plan.stages[0].bytes == 200 + 2 * 40);
  CHECK(plan.stages[1].time == 6000);
  CHECK(plan.stages[1].bytes == 300);
}

TEST_CASE("plan_pipeline does the same twice") {
  test::random_amounts random(5);
  for (int run = 0; run != 50; ++run) {
    auto const layers = random_layers(random, 3);
    auto const machine = to_machine(random_machine(random, layers.size(), 5));
    CHECK(plan_pipeline(layers, machine, {.micro_batches = 5}) ==
          plan_pipeline(layers, machine, {.micro_batches = 5}));
  }
}
