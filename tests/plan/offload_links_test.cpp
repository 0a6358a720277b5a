// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/plan/offload_links.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/plan/simulate_offload.hpp>
#include <omnibal/plan/stage_chunks.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_choice;
using omnibal::offload_layer;
using omnibal::offload_links;
using omnibal::solve_status;

using offload_layers_type = std::vector<offload_layer>;

/// Layers of two modules and an input, in megabytes and microseconds.
offload_layers_type equal_layers(std::size_t count) {
  offload_layer layer{
      {{{10, 0, omnibal::module_need::required}, {100, 20}, {200, 300}}, 300, 600}, 900, 50};
  return offload_layers_type(count, layer);
}

std::string links_error(offload_layers_type const& layers, omnibal::pipeline_machine const& machine,
                        offload_links const& links,
                        omnibal::plan_pipeline_options const& options = {.micro_batches = 4}) {
  return test::error_text<std::invalid_argument>(
      [&] { return omnibal::plan_pipeline(layers, machine, links, options); });
}

/// Six layers with the work and the bytes of a micro-batch of this size.
std::vector<omnibal::layer_cost> sized_costs(std::int64_t size) {
  std::vector<omnibal::layer_cost> costs(6);
  for (auto& cost : costs) {
    cost.forward.flops = 100 * size;
    cost.backward.flops = 200 * size;
    cost.parameters = 1;
    cost.parameter_bytes = 7;
    cost.choices[0] = {.kept_bytes = 100 * size, .transient_bytes = 5};
    cost.choices[1] = {
        .kept_bytes = 60 * size, .transient_bytes = 5 + 40 * size, .extra = {.flops = 8 * size}};
    cost.choices[2] = {
        .kept_bytes = 4 * size, .transient_bytes = 5 + 96 * size, .extra = {.flops = 100 * size}};
  }
  return costs;
}

// A call with links and with chunks must not compile, while one with either of them does.
template <class... Parts>
constexpr bool can_plan =
    std::is_invocable_v<omnibal::plan_pipeline_fn const&, Parts..., omnibal::plan_pipeline_options>;
using links_layers = std::vector<omnibal::offload_layer> const&;
using machine_type = omnibal::pipeline_machine const&;
static_assert(can_plan<links_layers, machine_type, omnibal::offload_links>);
static_assert(!can_plan<links_layers, machine_type, omnibal::stage_chunks, omnibal::offload_links>);

}  // namespace

// The reason for links: the same memory, and fewer recomputed modules.
TEST_CASE("A plan with a faster link has a shorter step") {
  auto const layers = equal_layers(16);
  omnibal::pipeline_machine const machine{.stages = 4, .memory_bytes = 2500};
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (double const rate : {0.0, 0.1, 0.3, 1.0}) {
    auto const plan =
        omnibal::plan_pipeline(layers, machine, offload_links{rate}, {.micro_batches = 8});
    CAPTURE(rate);
    REQUIRE(plan.status == solve_status::solved);
    REQUIRE(plan.lower_bound <= plan.step_time);
    REQUIRE(plan.step_time < least);
    for (auto const& stage : plan.stages) REQUIRE(stage.bytes <= 2500);
    least = plan.step_time;
  }
  CHECK(least == 11 * 4 * 900);
}

// Fixes by hand which part of a link each stage has.
TEST_CASE("Stages that share a link have the shares of its rate") {
  auto const rates = [](offload_links const& links, std::size_t stages) {
    std::vector<double> result;
    for (auto const& link : links.of_stages(stages)) result.push_back(link.bytes_per_time);
    return result;
  };
  CHECK(rates({.bytes_per_time = 12}, 3) == std::vector<double>{12, 12, 12});
  CHECK(rates({.bytes_per_time = {12, 6}, .stages_per_link = 2}, 3) ==
        std::vector<double>{6, 6, 6});
  CHECK(rates({.bytes_per_time = 12, .stages_per_link = 4, .shares = {3, 2, 1, 0}}, 4) ==
        std::vector<double>{6, 4, 2, 0});
  CHECK(rates({.bytes_per_time = 12, .stages_per_link = 2, .shares = {0, 0}}, 2) ==
        std::vector<double>{0, 0});
}

// The first stages of 1F1B keep more micro-batches, so they gain more from a shared link.
TEST_CASE("Shares by the micro-batches in flight shorten a step over one link") {
  auto const layers = equal_layers(16);
  omnibal::pipeline_machine const machine{.stages = 4, .memory_bytes = 2000};
  auto const step = [&](omnibal::weight_list<double> const& shares) {
    offload_links const links{.bytes_per_time = 0.6, .stages_per_link = 4, .shares = shares};
    auto const plan = omnibal::plan_pipeline(layers, machine, links, {.micro_batches = 8});
    REQUIRE(plan.status == solve_status::solved);
    return plan.step_time;
  };
  CHECK(step({4, 3, 2, 1}) < step({}));
}

// A user finds the wrong number by the message alone.
TEST_CASE("plan_pipeline with links names what it refuses") {
  auto const layers = equal_layers(4);
  omnibal::pipeline_machine const machine{.stages = 2, .memory_bytes = 10'000};
  std::string const name = "omnibal::plan_pipeline: ";
  CHECK(links_error(layers, machine, {.stages_per_link = 0}) ==
        name + "links.stages_per_link is 0, must be positive");
  CHECK(links_error(layers, machine, {.bytes_per_time = {1, 2, 3}}) ==
        name + "links.bytes_per_time has 3 values, must have 1 or 2, the number of links");
  CHECK(links_error(layers, machine, {.bytes_per_time = {1, -2}})
            .find(name + "links.bytes_per_time[1] is -2") == 0);
  CHECK(links_error(layers, machine, {.bytes_per_time = 1, .shares = {1, 2, 3}}) ==
        name + "links.shares has 3 values, must have 1 or 2, the number of stages");
  CHECK(links_error(layers, machine, {1}, {}) ==
        name + "options.micro_batches is 0, must be positive and below 2^32");
  auto wrong = layers;
  wrong[2].activations.modules[1].bytes = -4;
  CHECK(links_error(wrong, machine, {1}).find(name + "bytes of module 1 of layer 2 is -4") == 0);
  wrong = layers;
  wrong[3].time = -1;
  CHECK(links_error(wrong, machine, {1}).find(name + "time[3] is -1") == 0);
  wrong = layers;
  wrong[1].state_bytes = -1;
  CHECK(links_error(wrong, machine, {1}).find(name + "state_bytes[1] is -1") == 0);
}

// The levers must never exceed the memory for any micro-batch, also with different sizes.
TEST_CASE("plan_training with links adds a lever that is never slower and fits the memory") {
  std::vector<std::int64_t> const sizes{3, 9, 4, 10, 7, 2, 8, 8, 1, 5, 6, 10};
  std::vector<std::vector<std::uint32_t>> const cells{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}};
  auto const data = [&](auto const&) {
    return omnibal::training_data<std::int64_t>{sizes, omnibal::make_steps(cells, 2)};
  };
  auto const cost = [](std::int64_t size) { return sized_costs(size); };
  for (std::int64_t const memory : {3000, 4000, 6000}) {
    omnibal::pipeline_machine const machine{.stages = 2,
                                            .memory_bytes = memory,
                                            .reserve_bytes = 11,
                                            .device = {.flops_per_second = 1'000'000'000}};
    auto const result = omnibal::plan_training(sizes, machine, offload_links{0.4}, data, data, cost,
                                               {.micro_batches = 3});
    auto const& last = result[omnibal::training_lever::memory];
    CAPTURE(memory);
    REQUIRE(result.extended.plan.status == solve_status::solved);
    REQUIRE(result.extended.plan.step_time <= last.plan.step_time);
    for (std::size_t s = 0; s != machine.stages; ++s) {
      REQUIRE(result.extended.estimate.peak_bytes[s] <= result.extended.plan.stages[s].bytes);
      REQUIRE(result.extended.plan.stages[s].bytes <= memory);
    }
    auto const again = omnibal::simulate_offload(result.extended.plan, result.balanced_data,
                                                 machine, offload_links{0.4}.of_stages(2), cost);
    REQUIRE(again == result.extended.estimate);
    if (memory == 3000) REQUIRE(result.extended.estimate.nanoseconds < last.estimate.nanoseconds);
  }
}

// The three modules must have the bytes and times of the three choices of recomputation.
TEST_CASE("offload_layers splits the choices of a layer into modules") {
  auto const layers = omnibal::offload_layers(sized_costs(3), {.flops_per_second = 1'000'000'000});
  REQUIRE(layers.size() == 6);
  CHECK(layers[0] ==
        offload_layer{
            {{{12, 0, omnibal::module_need::required}, {120, 24}, {168, 276}}, 300, 600, 5, 5},
            900,
            7});
}

// One stage has no other stage to wait for, so the simulation must find the times of the plan.
TEST_CASE("A simulated step of one stage takes the time of the plan with its recomputation") {
  std::vector<std::int64_t> const sizes(3, 5);
  omnibal::training_data<std::int64_t> const data{
      sizes, omnibal::make_steps(std::vector<std::vector<std::uint32_t>>{{0, 1, 2}}, 1)};
  auto const cost = [](std::int64_t size) { return sized_costs(size); };
  omnibal::pipeline_machine const machine{
      .stages = 1, .memory_bytes = 1000, .device = {.flops_per_second = 1'000'000'000}};
  auto const lever = offload_links{0.1}.train(data, machine, cost, {.micro_batches = 3});
  REQUIRE(lever.plan.status == solve_status::solved);
  for (auto const part : {omnibal::cost_module::selective, omnibal::cost_module::rest}) {
    CHECK(std::any_of(lever.plan.choices.begin(), lever.plan.choices.end(), [&](auto const& row) {
      return row[static_cast<std::size_t>(part)] == activation_choice::recompute;
    }));
  }
  CHECK(lever.estimate.nanoseconds == lever.plan.step_time);
}

// The link of a plan must be fast enough in the shortest micro-batch, for the largest bytes.
TEST_CASE("offload_shape_costs has the largest bytes and the shortest passes") {
  auto const cost = [](std::int64_t size) { return sized_costs(size); };
  auto const layers = omnibal::offload_shape_costs(std::vector<std::int64_t>{3, 1, 4},
                                                   {.flops_per_second = 1'000'000'000}, cost);
  REQUIRE(layers.size() == 6);
  CHECK(layers[5].activations.forward_time == 100);
  CHECK(layers[5].activations.backward_time == 200);
  CHECK(layers[5].activations.modules[1] == omnibal::activation_module<>{160, 22});
  CHECK(layers[5].time == 800);
}
