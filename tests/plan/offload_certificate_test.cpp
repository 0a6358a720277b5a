// SPDX-License-Identifier: Apache-2.0
// What plan_pipeline with links proves, compared with all cuts and all choices of small models.

#include "certificate.hpp"
#include "every_activation.hpp"

#include <omnibal/plan/offload_links.hpp>
#include <omnibal/plan/plan_pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_choice;
using omnibal::detail::int128;
using test::number_between;

struct linked_case {
  std::vector<omnibal::offload_layer> layers;
  omnibal::pipeline_machine machine;
  omnibal::offload_links links;
  omnibal::plan_pipeline_options options;
};

/// The micro-batches in flight of 1F1B.
std::int64_t in_flight_of(linked_case const& given, std::size_t stage) {
  auto const values = given.options.in_flight.values();
  if (!values.empty()) return values[values.size() == 1 ? 0 : stage];
  return static_cast<std::int64_t>(
      std::min(given.options.micro_batches, given.machine.stages - stage));
}

/// Layers as a stage, for the sums of the oracle.
test::activation_case<std::int64_t> stage_case(linked_case const& given, std::size_t stage,
                                               std::size_t first, std::size_t last) {
  test::activation_case<std::int64_t> result;
  std::int64_t fixed = given.machine.reserve_bytes.values()[0];
  for (std::size_t l = first; l != last; ++l) {
    result.layers.push_back(given.layers[l].activations);
    fixed += given.layers[l].state_bytes;
  }
  auto const memory = given.machine.memory_bytes.values();
  result.budget = memory[memory.size() == 1 ? 0 : stage] - fixed;
  // The rate of a link is shared in the order of the stages.
  auto const& links = given.links;
  auto const rates = links.bytes_per_time.values();
  auto const parts = links.shares.values();
  std::size_t const link = stage / links.stages_per_link;
  double sum = 0;
  double own = 0;
  for (std::size_t s = 0; s != given.machine.stages; ++s) {
    if (s / links.stages_per_link != link) continue;
    double const share = parts.empty() ? 1 : parts[parts.size() == 1 ? 0 : s];
    sum += share;
    if (s == stage) own = share;
  }
  if (sum > 0) result.link.bytes_per_time = rates[rates.size() == 1 ? 0 : link] * (own / sum);
  result.in_flight = in_flight_of(given, stage);
  return result;
}

struct best_linked {
  std::optional<std::int64_t> step_time;
  /// The least that is missing on the worst stage.
  int128 missing = int128{1} << 120;
};

/// Tries all cuts from this stage on.
void every_cut(linked_case const& given, std::size_t stage, std::size_t first, std::int64_t largest,
               std::int64_t sum, int128 missing, best_linked& best) {
  if (stage == given.machine.stages) {
    if (first != given.layers.size()) return;
    best.missing = std::min(best.missing, missing);
    if (missing > 0) return;
    auto const others = static_cast<std::int64_t>(given.options.micro_batches - 1);
    std::int64_t const step = others * largest + sum;
    best.step_time = std::min(best.step_time.value_or(step), step);
    return;
  }
  for (std::size_t last = first + 1; last <= given.layers.size(); ++last) {
    auto const one = stage_case(given, stage, first, last);
    auto const choices = test::try_every_activation(one);
    std::int64_t time = 0;
    for (std::size_t l = first; l != last; ++l) time += given.layers[l].time;
    if (choices.is_feasible) time += static_cast<std::int64_t>(choices.min_time);
    int128 const lacks = std::max<int128>(0, choices.min_peak - one.budget);
    every_cut(given, stage + 1, last, std::max(largest, time), sum + time, std::max(missing, lacks),
              best);
  }
}

/// Memory near the bytes of some cuts and choices, so that they and their neighbors nearly fit.
void draw_memory(omnibal::rng::engine& random, linked_case& made) {
  std::size_t const stages = made.machine.stages;
  std::vector<std::int64_t> memory(stages, 0);
  made.machine.memory_bytes = memory;
  std::size_t first = 0;
  for (std::size_t s = 0; s != stages; ++s) {
    std::size_t const most = made.layers.size() - (stages - 1 - s);
    auto const last =
        s + 1 == stages
            ? most
            : static_cast<std::size_t>(number_between(random, static_cast<std::int64_t>(first) + 1,
                                                      static_cast<std::int64_t>(most)));
    auto const one = stage_case(made, s, first, last);
    test::activation_choices choices;
    for (auto const& layer : one.layers) {
      auto& row = choices.emplace_back();
      for (auto const& part : layer.modules) {
        auto const choice = static_cast<activation_choice>(number_between(random, 0, 2));
        bool const is_required = part.need == omnibal::module_need::required;
        row.push_back(is_required ? activation_choice::offload : choice);
      }
    }
    int128 const peak = test::naive_memory<std::int64_t>(one, choices).peak();
    memory[s] = static_cast<std::int64_t>(peak - one.budget) + number_between(random, -1, 1);
    memory[s] = std::max<std::int64_t>(memory[s], 0);
    first = last;
  }
  made.machine.memory_bytes = memory;
  if (number_between(random, 0, 2) == 0) made.machine.memory_bytes = memory[0];
}

linked_case draw_case(omnibal::rng::engine& random) {
  linked_case made;
  auto const count = static_cast<std::size_t>(number_between(random, 1, 4));
  made.machine.stages = static_cast<std::size_t>(
      number_between(random, 1, std::min<std::int64_t>(3, static_cast<std::int64_t>(count))));
  std::int64_t const most = number_between(random, 0, 3) == 0 ? std::int64_t{1} << 40 : 20;
  std::int64_t left = 6;
  std::int64_t sum = 0;
  std::int64_t passes = 1;
  for (std::size_t l = 0; l != count; ++l) {
    auto& layer = made.layers.emplace_back();
    auto& one = layer.activations;
    std::int64_t const modules = number_between(random, 0, std::min<std::int64_t>(2, left));
    left -= modules;
    for (std::int64_t j = 0; j != modules; ++j) {
      one.modules.push_back({number_between(random, 0, most), number_between(random, 0, most)});
      sum += one.modules.back().bytes;
      if (number_between(random, 0, 3) == 0) {
        one.modules.back().need = omnibal::module_need::required;
      }
    }
    one.forward_time = number_between(random, 0, 10);
    one.backward_time = number_between(random, 0, 10);
    passes += one.forward_time;
    if (number_between(random, 0, 1) == 0) {
      one.forward_transient_bytes = number_between(random, 0, most / 4);
      one.backward_transient_bytes = number_between(random, 0, most / 4);
    }
    if (number_between(random, 0, 3) == 0) {
      one.forward_traffic_bytes = number_between(random, 0, most / 4);
      one.backward_traffic_bytes = number_between(random, 0, most / 4);
    }
    layer.time = number_between(random, 0, 3 * most);
    layer.state_bytes = number_between(random, 0, most / 4);
  }
  double const rate = static_cast<double>(sum) / static_cast<double>(passes);
  constexpr double factors[]{0, 0.5, 1};
  auto const stages = made.machine.stages;
  auto const draw_rate = [&] { return rate * factors[number_between(random, 0, 2)]; };
  made.links.bytes_per_time = draw_rate();
  made.links.stages_per_link = static_cast<std::size_t>(number_between(random, 1, 3));
  if (number_between(random, 0, 1) == 0) {
    std::vector<double> rates;
    for (std::size_t s = 0; s < stages; s += made.links.stages_per_link) {
      rates.push_back(draw_rate());
    }
    made.links.bytes_per_time = rates;
  }
  if (number_between(random, 0, 1) == 0) {
    std::vector<double> shares;
    for (std::size_t s = 0; s != stages; ++s) {
      shares.push_back(static_cast<double>(number_between(random, 0, 3)));
    }
    made.links.shares = shares;
  }
  made.options.micro_batches = static_cast<std::size_t>(number_between(random, 1, 4));
  if (number_between(random, 0, 2) == 0) {
    std::vector<std::int64_t> numbers;
    for (std::size_t s = 0; s != stages; ++s) numbers.push_back(number_between(random, 1, 3));
    made.options.in_flight = numbers;
  }
  constexpr omnibal::effort efforts[]{omnibal::effort::fast, omnibal::effort::normal,
                                      omnibal::effort::thorough};
  made.options.effort = efforts[number_between(random, 0, 2)];
  made.machine.reserve_bytes = number_between(random, 0, 3);
  draw_memory(random, made);
  return made;
}

/// What is wrong with the stages of a plan.
std::string wrong_stages(linked_case const& given, omnibal::offload_plan const& plan) {
  if (plan.stages.size() != given.machine.stages) return "another number of stages";
  if (plan.choices.size() != given.layers.size()) return "a layer has no choices";
  std::int64_t largest = 0;
  std::int64_t sum = 0;
  for (std::size_t s = 0; s != plan.stages.size(); ++s) {
    std::size_t const first = plan.boundaries[s];
    std::size_t const last = plan.boundaries[s + 1];
    auto const one = stage_case(given, s, first, last);
    test::activation_choices const choices(
        plan.choices.begin() + static_cast<std::ptrdiff_t>(first),
        plan.choices.begin() + static_cast<std::ptrdiff_t>(last));
    if (!test::keeps_required(one, choices)) return "a required module is recomputed";
    int128 const peak = test::naive_memory<std::int64_t>(one, choices).peak();
    if (peak > one.budget) return "a stage above its memory";
    auto const memory = given.machine.memory_bytes.values();
    if (plan.stages[s].bytes != memory[memory.size() == 1 ? 0 : s] - one.budget + peak) {
      return "other bytes of a stage";
    }
    auto time = static_cast<std::int64_t>(test::added_time(one, choices));
    for (std::size_t l = first; l != last; ++l) time += given.layers[l].time;
    if (plan.stages[s].time != time) return "another time of a stage";
    if (plan.stages[s].in_flight != one.in_flight) return "other micro-batches in flight";
    largest = std::max(largest, time);
    sum += time;
  }
  auto const others = static_cast<std::int64_t>(given.options.micro_batches - 1);
  return plan.step_time == others * largest + sum ? "" : "another time of the step";
}

std::string fault_of(linked_case const& given) {
  best_linked best;
  every_cut(given, 0, 0, 0, 0, 0, best);
  auto const plan = omnibal::plan_pipeline(given.layers, given.machine, given.links, given.options);
  if (plan.status != omnibal::solve_status::solved) {
    if (best.step_time) return "infeasible, but a plan fits";
    if (!plan.proven || !plan.choices.empty()) return "infeasible without a proof";
    return plan.missing_bytes == best.missing ? "" : "other missing bytes";
  }
  if (!best.step_time) return "a plan where none fits";
  auto wrong = wrong_stages(given, plan);
  if (!wrong.empty()) return wrong;
  if (plan.lower_bound > *best.step_time) return "a bound above a plan";
  if (plan.step_time < *best.step_time) return "a step below all plans";
  return plan.proven == (plan.lower_bound == plan.step_time) ? "" : "proven without the bound";
}

}  // namespace

// Shows that value, bound, proof, memory and missing bytes hold for all plans of small models.
TEST_CASE("What plan_pipeline proves of links is true of all plans", "[certificate]") {
  test::certify<std::int64_t>("plan_pipeline with links", [](omnibal::rng::engine& random) {
    return fault_of(draw_case(random));
  });
}
