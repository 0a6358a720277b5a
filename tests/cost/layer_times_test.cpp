// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/concepts.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::device_model;
using omnibal::layer_work;
using omnibal::recompute_choice;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

static_assert(omnibal::stage_cost<omnibal::stage_sums<std::int64_t>>);
static_assert(omnibal::stage_cost<omnibal::stage_sums<double>>);
static_assert(omnibal::cost_function<omnibal::layer_time, omnibal::layer_cost const&>);

/// A layer that a trainer has measured.
struct trained_layer {
  double seconds;
};

template <class Call>
std::string invalid(Call const& call) {
  return test::error_text<std::invalid_argument>([&] { static_cast<void>(call()); });
}

}  // namespace

TEST_CASE("a device model turns work into nanoseconds, rounded up") {
  constexpr device_model device{.flops_per_second = 2'000'000'000'000,
                                .bytes_per_second = 1'000'000'000};
  static_assert(device(layer_work{}) == 0);
  static_assert(device(layer_work{.flops = 4'000'000}) == 2000);
  static_assert(device(layer_work{.flops = 1}) == 1);
  static_assert(device(layer_work{.flops = 4'000'000, .moved_bytes = 500}) == 2500);
  constexpr device_model without_memory{.flops_per_second = 1'000'000'000};
  static_assert(without_memory(layer_work{.flops = 7, .moved_bytes = largest}) == 7);
  static_assert(without_memory(layer_work{.flops = largest}) == largest);
}

TEST_CASE("impossible rates and work are errors") {
  CHECK(invalid([] { return device_model{}(layer_work{}); }) ==
        "omnibal::device_model: flops_per_second is 0, must be from 1 to 9223372036854775807");
  CHECK(invalid([] {
          return device_model{.flops_per_second = 5, .bytes_per_second = -1}(layer_work{});
        }) ==
        "omnibal::device_model: bytes_per_second is -1, must be from 1 to 9223372036854775807");
  CHECK(invalid([] { return device_model{.flops_per_second = 5}(layer_work{.flops = -2}); }) ==
        "omnibal::device_model: flops is -2, must be from 0 to 9223372036854775807");
  CHECK(test::error_text<std::overflow_error>([] {
          static_cast<void>(device_model{.flops_per_second = 5}(layer_work{.flops = largest}));
        }) ==
        "omnibal::device_model: the number of nanoseconds exceeds the largest value of its "
        "type");
}

TEST_CASE("times and choices of layers are those of a device model") {
  omnibal::micro_batch_work const batch{
      .tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})};
  auto const costs = omnibal::layer_costs(omnibal::internvl_6_20b, batch);
  device_model const device{.flops_per_second = 156'000'000'000'000,
                            .bytes_per_second = 1'500'000'000'000};
  omnibal::layer_time const time{device};
  for (auto const& cost : costs) {
    CHECK(time(cost) == device(cost.forward) + device(cost.backward));
    auto const choices = omnibal::timed_choices{device}(cost);
    CHECK(choices[0].time == time(cost));
    CHECK(choices[2].time == time(cost) + device(cost.forward));
    CHECK(choices[0].time <= choices[1].time);
    CHECK(choices[1].time <= choices[2].time);
    for (std::size_t i = 0; i != choices.size(); ++i) {
      auto const choice = static_cast<recompute_choice>(i);
      CHECK(choices[i].bytes == cost[choice].kept_bytes);
      CHECK(choices[i].transient_bytes == cost[choice].transient_bytes);
      CHECK(choices[i].time == omnibal::layer_time{device, choice}(cost));
    }
  }
}

TEST_CASE("stage sums are those of the layers") {
  test::random_amounts random(1);
  std::vector<std::int64_t> costs(50);
  for (auto& cost : costs) cost = random.heavy_tail(1'000'000);
  auto const sum = omnibal::stage_sum(costs);
  CHECK(sum.layers() == 50);
  for (std::size_t first = 0; first <= costs.size(); ++first) {
    for (std::size_t last = first; last <= costs.size(); ++last) {
      auto const begin = costs.begin() + static_cast<std::ptrdiff_t>(first);
      auto const end = costs.begin() + static_cast<std::ptrdiff_t>(last);
      CHECK(sum(3, first, last) == std::accumulate(begin, end, std::int64_t{0}));
    }
  }
  auto const model = omnibal::layer_costs(omnibal::yi_34b, {});
  CHECK(omnibal::stage_sum(model, &omnibal::layer_cost::state_bytes)(0, 0, model.size()) ==
        18 * omnibal::count_parameters(omnibal::yi_34b).total);
}

TEST_CASE("stage sums take a trainer's own layers") {
  std::vector<trained_layer> const layers{{0.5}, {0.25}, {1.0}};
  auto const sum = omnibal::stage_sum(layers, &trained_layer::seconds);
  CHECK(sum(0, 1, 3) == 1.25);
  CHECK(omnibal::stage_sum(std::vector<int>{})(0, 0, 0) == 0);
}

TEST_CASE("bad costs of layers are errors") {
  std::vector<double> const costs{1.0, std::numeric_limits<double>::quiet_NaN()};
  CHECK(invalid([&] { return omnibal::stage_sum(costs); }) ==
        "omnibal::stage_sum: cost[1] is nan, must be finite and not negative");
  std::vector<int> const negative{1, -3};
  CHECK(invalid([&] { return omnibal::stage_sum(negative); }) ==
        "omnibal::stage_sum: cost[1] is -3, must be finite and not negative");
  std::vector<std::int64_t> const large{largest, 1};
  CHECK(test::error_text<std::overflow_error>([&] {
          static_cast<void>(omnibal::stage_sum(large));
        }) == "omnibal::stage_sum: the sum of the costs exceeds the largest value of its type");
}

TEST_CASE("utilization is FLOPs over what the devices could have done") {
  CHECK(omnibal::flops_utilization(
            {.flops = 6e17, .seconds = 4.0, .gpus = 1000, .peak_flops_per_gpu_second = 3e14}) ==
        Approx(0.5));
  omnibal::measured_step step{
      .flops = 0.0, .seconds = 4.0, .gpus = 8, .peak_flops_per_gpu_second = 3e14};
  CHECK(omnibal::flops_utilization(step) == 0.0);
  step.seconds = 0.0;
  CHECK(invalid([&] { return omnibal::flops_utilization(step); }) ==
        "omnibal::flops_utilization: seconds is 0, must be positive and finite");
  step = {.flops = -1.0, .seconds = 4.0, .gpus = 8, .peak_flops_per_gpu_second = 3e14};
  CHECK(invalid([&] { return omnibal::flops_utilization(step); }) ==
        "omnibal::flops_utilization: flops is -1, must be finite and not negative");
  step = {.flops = 1.0, .seconds = 4.0, .gpus = 8, .peak_flops_per_gpu_second = std::nan("")};
  CHECK(invalid([&] { return omnibal::flops_utilization(step); }) ==
        "omnibal::flops_utilization: peak_flops_per_gpu_second is nan, must be positive and "
        "finite");
}

TEST_CASE("GPU days are devices times days") {
  CHECK(omnibal::gpu_days({.steps = 1000, .seconds_per_step = 86.4, .gpus = 64}) == Approx(64.0));
  CHECK(invalid([] {
          return omnibal::gpu_days({.steps = 1000, .seconds_per_step = -1, .gpus = 64});
        }) == "omnibal::gpu_days: seconds_per_step is -1, must be positive and finite");
  CHECK(invalid([] { return omnibal::gpu_days({.steps = 1, .seconds_per_step = 1, .gpus = 0}); }) ==
        "omnibal::gpu_days: gpus is 0, must be positive and finite");
}
