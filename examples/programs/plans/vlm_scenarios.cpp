// SPDX-License-Identifier: Apache-2.0
#include "vlm_scenarios.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/plan/stage_chunks.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace examples {

namespace {

constexpr std::int64_t tokens_of_tile = 256;

dataset with_tiles(dataset data, tile_mix tiles) {
  if (tiles == tile_mix::no_text_alone) {
    std::erase_if(data.samples, [](sample const& one) { return one.images == 0; });
    return data;
  }
  for (sample& one : data.samples) {
    std::int64_t const before = one.images;
    if (tiles == tile_mix::at_most_one) one.images = std::min<std::int64_t>(before, 1);
    if (tiles == tile_mix::halved) one.images = (before + 1) / 2;
    if (tiles == tile_mix::doubled) one.images = 2 * before;
    one.tokens = std::max<std::int64_t>(1, one.tokens + tokens_of_tile * (one.images - before));
  }
  return data;
}

/// Also makes random micro-batches as large as the groups where the capacity is given.
vlm_samples samples_of(dataset const& data, vlm_scenario const& scenario, vlm_assumptions& assumed,
                       std::uint64_t seed) {
  if (scenario.capacity == omnibal::resources<2>{}) return choose_samples(data, assumed, seed);
  vlm_samples result = fitting_samples(data, scenario.capacity);
  auto const packed = omnibal::best_packing(
      result.samples, omnibal::demand_of(&sample::images, &sample::tokens), scenario.capacity);
  std::size_t const groups = std::max<std::size_t>(packed.groups.size(), 1);
  assumed.batch_samples = std::max<std::size_t>((result.samples.size() + groups / 2) / groups, 1);
  return result;
}

/// The last lever with the choices that are allowed.
void limit_choices(planned_scenario& planned) {
  auto const& allowed = planned.assumed.recomputed;
  if (std::ranges::all_of(allowed, std::identity{})) return;
  auto const& data = planned.plan.balanced_data;
  auto& last = planned.plan.levers[static_cast<std::size_t>(omnibal::training_lever::memory)];
  last = {planned.best_plan(data, allowed), {}};
  if (last.plan.status != omnibal::solve_status::solved) return;
  last.estimate = planned.simulate(last.plan, data);
}

}  // namespace

omnibal::offload_links vlm_scenario::offload_links() const {
  constexpr double nanoseconds = 1e9;
  return {.bytes_per_time = static_cast<double>(offload_bytes_per_second) / nanoseconds,
          .stages_per_link = offload_stages};
}

vlm_scenario scenario_on(std::string name, machine_description const& machine) {
  vlm_scenario result{std::move(name)};
  result.assumed.peak_flops = static_cast<double>(machine.peak_flops);
  result.assumed.device = machine.device();
  result.assumed.memory_bytes = machine.memory_bytes;
  result.assumed.reserve_bytes = machine.reserve_bytes;
  result.link_bytes_per_second = machine.link_bytes;
  return result;
}

std::vector<vlm_scenario> vlm_scenarios(vlm_scenario const& base) {
  using given = vlm_scenario;
  std::vector<vlm_scenario> result{base};
  auto const add = [&](std::string name, auto const& change) {
    result.push_back(base);
    result.back().name = std::move(name);
    change(result.back());
  };
  auto const reach = [](given& s, double share) {
    s.assumed.device.flops_per_second = std::llround(share * s.assumed.peak_flops);
  };
  add("tiles: at most one", [](given& s) { s.tiles = tile_mix::at_most_one; });
  add("tiles: halved", [](given& s) { s.tiles = tile_mix::halved; });
  add("tiles: doubled", [](given& s) { s.tiles = tile_mix::doubled; });
  add("tiles: no text alone", [](given& s) { s.tiles = tile_mix::no_text_alone; });
  add("capacity: 9 images, 4096 tokens", [](given& s) { s.capacity = {9, 4096}; });
  add("capacity: 12 images, 4096 tokens", [](given& s) { s.capacity = {12, 4096}; });
  add("capacity: 24 images, 8192 tokens", [](given& s) { s.capacity = {24, 8192}; });
  add("capacity: for 2 samples", [](given& s) { s.assumed.batch_samples = 2; });
  add("capacity: for 3 samples", [](given& s) { s.assumed.batch_samples = 3; });
  add("MFU: 40 % of the peak", [&](given& s) { reach(s, 0.4); });
  add("MFU: 60 % of the peak", [&](given& s) { reach(s, 0.6); });
  add("MFU: 1.5 TB/s for other work",
      [](given& s) { s.assumed.device.bytes_per_second = 1'500'000'000'000; });
  add("micro-batches: 4", [](given& s) { s.assumed.micro_batches = 4; });
  add("micro-batches: 8", [](given& s) { s.assumed.micro_batches = 8; });
  add("micro-batches: 32", [](given& s) { s.assumed.micro_batches = 32; });
  add("memory: 64 GB", [](given& s) { s.assumed.memory_bytes = 64'000'000'000; });
  add("memory: 96 GB", [](given& s) { s.assumed.memory_bytes = 96'000'000'000; });
  add("links: 25 GB/s between stages", [](given& s) { s.link_bytes_per_second = 25'000'000'000; });
  add("padding: none in random batches", [](given& s) { s.padding = text_padding::none; });
  std::size_t const stages = 2 * base.assumed.stages;
  add("stages: " + std::to_string(stages), [&](given& s) {
    s.assumed.stages = stages;
    s.assumed.data_ranks = std::max<std::size_t>(s.assumed.data_ranks / 2, 1);
  });
  return result;
}

double planned_scenario::samples_of_lever(std::size_t lever) const {
  return static_cast<double>(
      examples::samples_of(lever == 0 ? plan.first_data : plan.balanced_data));
}

double planned_scenario::gpu_seconds(std::size_t lever) const {
  auto const nanoseconds = static_cast<double>(plan.levers[lever].estimate.nanoseconds);
  return nanoseconds * 1e-9 * assumed.gpus() / samples_of_lever(lever);
}

omnibal::training_estimate planned_scenario::simulate(
    omnibal::pipeline_plan<std::int64_t> const& plan_to_run, vlm_data const& data) const {
  if (plan_to_run.chunks == 1) {
    return omnibal::simulate_training(plan_to_run, data, machine, cost);
  }
  return omnibal::simulate_training(plan_to_run, data, machine, cost,
                                    omnibal::interleaved_1f1b{.chunks = plan_to_run.chunks});
}

double planned_scenario::gpu_days(omnibal::pipeline_plan<std::int64_t> const& plan_to_run,
                                  vlm_data const& data) const {
  double const seconds = static_cast<double>(simulate(plan_to_run, data).nanoseconds) * 1e-9;
  return seconds * assumed.gpus() / static_cast<double>(examples::samples_of(data)) *
         assumed.training_samples / 86400;
}

std::vector<omnibal::plan_layer<>> planned_scenario::layers_for(vlm_data const& data) const {
  return omnibal::shape_costs(data.batches, machine.device, cost);
}

omnibal::pipeline_plan<std::int64_t> planned_scenario::best_plan(
    vlm_data const& data, std::array<bool, 3> const& allowed) const {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t choice = 0; choice != allowed.size(); ++choice) {
    if (allowed[choice]) numbers.push_back(choice);
  }
  auto layers = layers_for(data);
  for (auto& layer : layers) {
    std::vector<omnibal::activation_option<>> choices;
    for (std::uint32_t const number : numbers) choices.push_back(layer.choices[number]);
    layer.choices = std::move(choices);
  }
  auto result = omnibal::plan_pipeline(layers, machine, {.count = assumed.chunks},
                                       {.micro_batches = assumed.micro_batches});
  for (std::uint32_t& choice : result.choices) choice = numbers[choice];
  return result;
}

double planned_scenario::gpu_days(std::size_t lever) const {
  return gpu_seconds(lever) * assumed.training_samples / 86400;
}

planned_scenario unplanned(vlm_samples samples, vlm_scenario const& scenario,
                           model_description const& model, layer_profile profile) {
  planned_scenario result;
  vlm_assumptions const& assumed = scenario.assumed;
  result.assumed = assumed;
  result.samples = std::move(samples);
  result.samples.spans = omnibal::attention_spans(model);
  result.samples.clips = clips_for(model, scenario.clips);
  result.cost = {padded(model, assumed.tensor_ranks), assumed.degrees(), std::move(profile)};
  result.machine = {.stages = assumed.stages,
                    .memory_bytes = {assumed.memory_bytes},
                    .reserve_bytes = {assumed.reserve_bytes},
                    .device = assumed.device,
                    .link_bytes_per_second = scenario.link_bytes_per_second};
  return result;
}

planned_scenario plan_scenario(dataset const& data, vlm_scenario const& scenario,
                               model_description const& model, std::uint64_t seed,
                               layer_profile profile) {
  vlm_assumptions assumed = scenario.assumed;
  vlm_samples samples = samples_of(with_tiles(data, scenario.tiles), scenario, assumed, seed);
  planned_scenario result = unplanned(std::move(samples), scenario, model, std::move(profile));
  result.assumed = assumed;
  auto const first = [&](vlm_samples const& from) {
    return random_batches(from, assumed, scenario.padding, seed);
  };
  auto const balanced = [&](vlm_samples const& from) {
    return packed_batches(from, assumed, seed);
  };
  omnibal::plan_pipeline_options const options{.micro_batches = assumed.micro_batches};
  if (scenario.offload_bytes_per_second == 0) {
    result.plan = omnibal::plan_training(result.samples, result.machine, {.count = assumed.chunks},
                                         first, balanced, result.cost, options);
  } else {
    result.links = scenario.offload_links();
    auto made = omnibal::plan_training(result.samples, result.machine, result.links, first,
                                       balanced, result.cost, options);
    result.offloaded = std::move(made.extended);
    result.plan = std::move(made);
  }
  limit_choices(result);
  return result;
}

}  // namespace examples
