// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"
#include "every_configuration.hpp"

#include <omnibal/cost/machines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::loss_reason;
using omnibal::solve_status;
using test::every_configuration;
using test::no_seconds;
using test::number_between;

template <class T>
T one_of(omnibal::rng::engine& random, std::vector<T> const& values) {
  return values[static_cast<std::size_t>(
      number_between(random, 0, static_cast<std::int64_t>(values.size()) - 1))];
}

omnibal::language_model random_model(omnibal::rng::engine& random) {
  std::int64_t const heads = one_of<std::int64_t>(random, {2, 4, 6, 8});
  std::int64_t const hidden = heads * one_of<std::int64_t>(random, {8, 64, 128});
  std::int64_t const vocabulary = one_of<std::int64_t>(random, {64, 8'000, 128'000});
  omnibal::language_model model{
      .input = {.vocabulary = vocabulary, .hidden = hidden},
      .layers = number_between(random, 1, 6),
      .layer = {.hidden = hidden, .heads = heads, .mlp = 12 * number_between(random, 1, 200)},
      .output = {.vocabulary = vocabulary, .hidden = hidden}};
  if (number_between(random, 0, 3) == 0) {
    model.layer.mlp = 0;
    model.layer.experts = {.routed = one_of<std::int64_t>(random, {2, 4}),
                           .active = 2,
                           .mlp = 12 * number_between(random, 1, 100)};
  }
  if (number_between(random, 0, 3) == 0) model.output.weights = omnibal::head_weights::tied;
  return model;
}

/// A machine whose rates are up to sixteen times faster or slower.
omnibal::machine random_machine(omnibal::rng::engine& random) {
  omnibal::machine on = omnibal::machines::h100;
  for (auto const& constant : omnibal::machine_constants) {
    auto const factor = static_cast<double>(number_between(random, 1, 16));
    on.*constant.member *= number_between(random, 0, 1) == 0 ? factor : 1 / factor;
  }
  if (number_between(random, 0, 1) == 0) on.launch_seconds = 0;
  on.devices_per_node = one_of<std::int64_t>(random, {1, 2, 4, 8});
  return on;
}

std::string fault_of(omnibal::configuration_plan const& plan, every_configuration const& every,
                     omnibal::language_model const& model, omnibal::machine const& on,
                     omnibal::plan_configuration_options const& options) {
  if (!every.bounds_hold) return "a bound above the seconds of its configuration";
  if (!plan.proven) return "not proven";
  if (every.best == no_seconds) {
    if (plan.status != solve_status::infeasible) return "a plan that does not fit";
    return plan.min_bytes > every.min_bytes ? "more bytes than needed" : "";
  }
  if (plan.status != solve_status::solved) return "no plan although there is one";
  if (plan.best.prediction.total() != every.best) return "another step than the best";
  if (plan.lower_bound != every.best) return "another bound than the best";
  if (omnibal::predict_step(model, plan.best.step, on) != plan.best.prediction) {
    return "another prediction than predict_step";
  }
  std::vector<double> layouts;
  for (auto const& [degrees, seconds] : every.layouts) layouts.push_back(seconds);
  std::ranges::sort(layouts);
  if (plan.runners_up.size() != std::min(options.runners_up, layouts.size() - 1)) {
    return "another number of runners-up";
  }
  for (std::size_t i = 0; i != plan.runners_up.size(); ++i) {
    if (plan.runners_up[i].prediction.total() != layouts[i + 1]) return "another runner-up";
  }
  std::size_t others = 0;
  for (auto const& [choice, seconds] : every.families) others += seconds == no_seconds ? 0 : 1;
  for (auto const& family : plan.families) {
    auto const found = every.families.find({family.choice, family.value});
    if (found == every.families.end()) return "an unknown family";
    bool const is_infeasible = found->second == no_seconds;
    if (is_infeasible != (family.reason == loss_reason::memory)) return "a wrong reason";
    if (is_infeasible) {
      bool const has_host_limit =
          options.host_memory_bytes != std::numeric_limits<std::int64_t>::max();
      if (!has_host_limit && family.min_bytes <= options.memory_bytes - options.reserve_bytes) {
        return "an infeasible family that fits";
      }
      continue;
    }
    --others;
    if (family.best.prediction.total() != found->second) return "another best of a family";
  }
  // The families of the best configuration are not listed, one for each of the nine choices.
  return others == 9 ? "" : "a family is missing";
}

}  // namespace

// The search claims to be exact: bounds and pruning must never lose the best configuration, of all
// and of each family, and an infeasible space must be one.
TEST_CASE("plan_configuration proves what is true", "[certificate]") {
  std::uint64_t const count = test::number_from_environment("OMNIBAL_TEST_INSTANCES", 100'000) / 10;
  std::uint64_t const first = test::number_from_environment("OMNIBAL_TEST_SEED", 1);
  std::int64_t configurations = 0;
  std::int64_t simulated = 0;
  for (std::uint64_t i = 0; i != count; ++i) {
    omnibal::rng::engine random(first + i);
    auto const model = random_model(random);
    auto const on = random_machine(random);
    omnibal::step_data const data{.sequences = number_between(random, 1, 8),
                                  .tokens = one_of<std::int64_t>(random, {64, 68, 96, 1024})};
    omnibal::plan_configuration_options options{
        .devices = one_of<std::int64_t>(random, {1, 2, 3, 4, 6, 8}),
        .memory_bytes = std::int64_t{1} << number_between(random, 20, 34),
        .runners_up = static_cast<std::size_t>(number_between(random, 0, 4))};
    if (number_between(random, 0, 1) == 0) options.reserve_bytes = options.memory_bytes / 4;
    if (number_between(random, 0, 1) == 0) {
      options.layer_communication = omnibal::communication::overlapped;
      options.gradient_communication = omnibal::communication::blocking;
    }
    if (number_between(random, 0, 2) == 0) {
      options.offload_bytes_per_second =
          1e6 * static_cast<double>(number_between(random, 1, 1 << 16));
      if (number_between(random, 0, 1) == 0) options.offload_percent = {0, 30, 100};
      if (number_between(random, 0, 1) == 0) {
        options.host_memory_bytes = std::int64_t{1} << number_between(random, 10, 34);
      }
    }
    every_configuration const every(model, on, data, options);
    INFO("OMNIBAL_TEST_SEED=" << first + i);
    if (every.count == 0) {
      CHECK_THROWS_AS(omnibal::plan_configuration(model, on, data, options), std::invalid_argument);
      continue;
    }
    auto const plan = omnibal::plan_configuration(model, on, data, options);
    configurations += every.count;
    simulated += plan.predictions;
    auto const fault = fault_of(plan, every, model, on, options);
    if (!fault.empty()) FAIL(fault);
  }
  std::printf("plan_configuration: %llu spaces agree with brute force, %lld of %lld simulated\n",
              static_cast<unsigned long long>(count), static_cast<long long>(simulated),
              static_cast<long long>(configurations));
  SUCCEED();
}
