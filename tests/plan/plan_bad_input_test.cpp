// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/plan/write_plan.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using layers_type = std::vector<omnibal::plan_layer<>>;
using machine_type = omnibal::pipeline_machine;
using options_type = omnibal::plan_pipeline_options;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

layers_type two_layers() { return layers_type(2, {{{10, 100, 3}, {13, 10, 5}}, 20}); }

std::string error_of(layers_type const& layers, machine_type const& machine,
                     options_type const& options = {.micro_batches = 4}) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(omnibal::plan_pipeline(layers, machine, options)); });
}

template <class Layers>
concept can_be_planned = requires(Layers const& layers) {
  omnibal::plan_pipeline(layers, machine_type{}, options_type{});
};

struct no_state {
  std::vector<omnibal::activation_option<>> choices;
};

}  // namespace

static_assert(can_be_planned<layers_type>);
static_assert(can_be_planned<std::vector<omnibal::plan_layer<double>>>);
static_assert(can_be_planned<std::vector<omnibal::layer_cost>>);
static_assert(!can_be_planned<std::vector<no_state>>);
static_assert(!can_be_planned<std::vector<int>>);

TEST_CASE("plan_pipeline names what it refuses in the machine and the options") {
  auto const layers = two_layers();
  machine_type const machine{.stages = 2, .memory_bytes = {1000}};
  CHECK(error_of(layers, {.stages = 0, .memory_bytes = {1000}}).find("stages") !=
        std::string::npos);
  CHECK(error_of(layers, {.stages = 3, .memory_bytes = {1000}}).find("plan_pipeline") !=
        std::string::npos);
  CHECK(error_of(layers, {.stages = 2}) ==
        "omnibal::plan_pipeline: machine.memory_bytes has 0 values, must have 1 or 2");
  CHECK(error_of(layers, {.stages = 2, .memory_bytes = {1, 2, 3}}) ==
        "omnibal::plan_pipeline: machine.memory_bytes has 3 values, must have 1 or 2");
  CHECK(error_of(layers, {.stages = 2, .memory_bytes = {-1}}) ==
        "omnibal::plan_pipeline: machine.memory_bytes[0] is -1, must be finite and not negative");
  CHECK(error_of(layers, {.stages = 2, .memory_bytes = {9}, .reserve_bytes = {0, -2}}) ==
        "omnibal::plan_pipeline: machine.reserve_bytes[1] is -2, must be finite and not negative");
  CHECK(error_of(layers, machine, {}) ==
        "omnibal::plan_pipeline: options.micro_batches is 0, must be positive and below 2^32");
  CHECK(error_of(layers, machine, {.micro_batches = 4, .in_flight = {1, 0}}) ==
        "omnibal::plan_pipeline: options.in_flight[1] is 0, must be at least 1");
  CHECK(error_of(layers, machine, {.micro_batches = 4, .states = 0}) ==
        "omnibal::plan_pipeline: options.states is 0, must be positive and below 2^32");
  CHECK(error_of(layers, machine, {.micro_batches = 4, .max_gap = -1}) ==
        "omnibal::plan_pipeline: options.max_gap is -1, must be from 0 to below 1");
  CHECK(error_of(layers, machine,
                 {.micro_batches = 4, .max_gap = std::numeric_limits<double>::quiet_NaN()})
            .find("max_gap") != std::string::npos);
  CHECK(error_of(layers, machine, {.micro_batches = 4, .constraints = {.bytes = {1, 1}}})
            .find("constraints") != std::string::npos);
  CHECK(error_of(layers, machine, {.micro_batches = 4, .constraints = {.devices = 1}})
            .find("constraints") != std::string::npos);
}

TEST_CASE("plan_pipeline names what it refuses in the layers") {
  machine_type const machine{.stages = 2, .memory_bytes = {1000}};
  auto layers = two_layers();
  layers[1].choices.clear();
  CHECK(error_of(layers, machine) == "omnibal::plan_pipeline: layer 1 has no choices");
  layers = two_layers();
  layers[1].state_bytes = -3;
  CHECK(error_of(layers, machine) ==
        "omnibal::plan_pipeline: state_bytes[1] is -3, must be finite and not negative");
  layers = two_layers();
  layers[0].choices[1].time = -1;
  CHECK(error_of(layers, machine).find("time of choice 1 of layer 0 is -1") != std::string::npos);
  layers = two_layers();
  layers[0].choices[1].transient_bytes = -1;
  CHECK(error_of(layers, machine).find("transient_bytes of choice 1") != std::string::npos);
}

TEST_CASE("plan_pipeline throws where sums leave their type") {
  machine_type const machine{.stages = 2, .memory_bytes = {1000}};
  auto const plan = [&](layers_type const& layers, machine_type const& given) {
    static_cast<void>(omnibal::plan_pipeline(layers, given, {.micro_batches = 4}));
  };
  auto layers = two_layers();
  layers[0].choices[0].time = largest;
  CHECK_THROWS_AS(plan(layers, machine), std::overflow_error);
  layers = two_layers();
  layers[0].choices = {{largest / 2, 1, 0}};
  CHECK_THROWS_AS(plan(layers, machine), std::overflow_error);
  layers = two_layers();
  layers[0].state_bytes = largest;
  CHECK_THROWS_AS(plan(layers, machine), std::overflow_error);
  layers = two_layers();
  CHECK_THROWS_AS(plan(layers, {.stages = 2, .memory_bytes = {1}, .reserve_bytes = {largest}}),
                  std::overflow_error);
}

TEST_CASE("plan_pipeline plans the largest bytes") {
  auto layers = two_layers();
  layers[0].choices = {{1, largest, largest}, {2, 0, 0}};
  auto const plan = omnibal::plan_pipeline(layers, {.stages = 2, .memory_bytes = {largest}},
                                           {.micro_batches = 4});
  CHECK(plan.status == omnibal::solve_status::solved);
  CHECK(plan.choices[0] == 1);
  CHECK(plan.proven);
}

TEST_CASE("combine_shapes takes the mean of times and the largest of bytes") {
  omnibal::plan_layer<> const small{{{10, 100, 3}, {13, 10, 50}}, 20};
  omnibal::plan_layer<> const large{{{20, 90, 4}, {30, 15, 40}}, 21};
  std::vector<omnibal::shape_layers<>> const shapes{{3, {small}}, {1, {large}}};
  layers_type const expected{{{{13, 100, 4}, {18, 15, 50}}, 21}};
  CHECK(omnibal::combine_shapes(shapes) == expected);

  std::vector<omnibal::shape_layers<double>> const floating{{1, {{{{1.0, 5, 0}}, 0}}},
                                                            {3, {{{{2.0, 4, 0}}, 0}}}};
  CHECK(omnibal::combine_shapes(floating)[0].choices[0].time == 1.75);
  CHECK(omnibal::combine_shapes(floating)[0].choices[0].bytes == 5);
}

TEST_CASE("combine_shapes refuses shapes that do not match") {
  using shapes_type = std::vector<omnibal::shape_layers<>>;
  auto const error = [](shapes_type const& shapes) {
    return test::error_text<std::invalid_argument>(
        [&] { static_cast<void>(omnibal::combine_shapes(shapes)); });
  };
  CHECK(error({}) == "omnibal::combine_shapes: there are no shapes");
  CHECK(error({{0, two_layers()}}) == "omnibal::combine_shapes: all counts are 0");
  CHECK(error({{-1, two_layers()}}).find("count[0] is -1") != std::string::npos);
  CHECK(error({{1, two_layers()}, {1, {}}}) ==
        "omnibal::combine_shapes: shapes[1] has 0 layers, the first has 2");
  auto fewer = two_layers();
  fewer[1].choices.pop_back();
  CHECK(error({{1, two_layers()}, {1, fewer}}) ==
        "omnibal::combine_shapes: layer 1 has 1 choices, the first has 2");
  fewer = two_layers();
  fewer[0].choices[0].time = -4;
  CHECK(error({{1, fewer}}).find("time[0] is -4") != std::string::npos);
}

TEST_CASE("recompute_lists refuses plans that contradict themselves") {
  struct bad_plan {
    std::vector<std::uint32_t> boundaries;
    std::vector<std::uint32_t> choices;
    std::string text;
  };
  std::vector<bad_plan> const plans{
      {{1, 2}, {0, 0}, "boundaries[0] is 1, must be 0"},
      {{0, 2, 1}, {0, 0}, "boundaries[2] is 1, must be at least 2"},
      {{0, 1, 2}, {0}, "the plan has 1 choices, its boundaries end with 2"},
      {{0, 1}, {0, 0}, "the plan has 2 choices, its boundaries end with 1"},
      {{0}, {0}, "the plan has 1 choices, its boundaries end with 0"}};
  for (bad_plan const& bad : plans) {
    omnibal::pipeline_plan<std::int64_t> plan;
    plan.boundaries = bad.boundaries;
    plan.choices = bad.choices;
    CHECK(test::error_text<std::invalid_argument>([&] {
            static_cast<void>(omnibal::recompute_lists(plan, 0));
          }) == "omnibal::recompute_lists: " + bad.text);
  }
  CHECK(omnibal::recompute_lists(omnibal::pipeline_plan<std::int64_t>{}, 0).size() == 0);
}

TEST_CASE("plan_pipeline refuses floating-point times that are not finite or too large") {
  struct bad_time {
    double time;
    std::string text;
  };
  std::vector<bad_time> const times{
      {std::numeric_limits<double>::quiet_NaN(), "time of choice 1 of layer 1 is nan"},
      {-std::numeric_limits<double>::quiet_NaN(), "time of choice 1 of layer 1"},
      {std::numeric_limits<double>::infinity(), "time of choice 1 of layer 1 is inf"},
      {-0.5, "time of choice 1 of layer 1 is -0.5"}};
  using floating_layers = std::vector<omnibal::plan_layer<double>>;
  floating_layers const good(2, {{{1.0, 10, 0}, {2.0, 5, 0}}, 1});
  machine_type const machine{.stages = 2, .memory_bytes = {1000}};
  for (bad_time const& bad : times) {
    floating_layers layers = good;
    layers[1].choices[1].time = bad.time;
    auto const error = test::error_text<std::invalid_argument>(
        [&] { static_cast<void>(omnibal::plan_pipeline(layers, machine, {.micro_batches = 4})); });
    INFO(error);
    bool const names_value = error.find(bad.text) != std::string::npos;
    CHECK(names_value);
  }
  floating_layers layers = good;
  layers[0].choices[0].time = layers[1].choices[0].time = 1e308;
  CHECK_THROWS_AS(omnibal::plan_pipeline(layers, machine, {.micro_batches = 4}),
                  std::overflow_error);
}

TEST_CASE("plan_pipeline names the stage that lacks memory, and by how much") {
  // Each stage has one layer: it keeps 10 bytes for every micro-batch in flight, 5 besides while it
  // runs backward, and 20 of state.
  auto const layers = two_layers();
  struct budget {
    std::int64_t bytes;
    std::int64_t missing;
  };
  for (budget const& given : {budget{45, 0}, budget{44, 1}, budget{30, 15}, budget{0, 45}}) {
    CAPTURE(given.bytes);
    auto const plan = omnibal::plan_pipeline(
        layers, {.stages = 2, .memory_bytes = {given.bytes, 1000}}, {.micro_batches = 4});
    CHECK((plan.status == omnibal::solve_status::solved) == (given.missing == 0));
    CHECK(plan.missing_bytes == given.missing);
    if (given.missing != 0) CHECK(plan.stage == 0);
  }
}

TEST_CASE("timed_layers refuses devices without speed") {
  std::vector<omnibal::layer_cost> const costs(1);
  CHECK_THROWS_AS(omnibal::timed_layers(costs, {.flops_per_second = -1}), std::invalid_argument);
}
