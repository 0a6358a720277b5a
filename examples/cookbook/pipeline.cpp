// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/plan/write_plan.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace cookbook {

// What each of twelve layers takes in milliseconds, and what it sends to the next in megabytes.
std::vector<std::int64_t> const milliseconds{9, 9, 9, 9, 2, 6, 6, 6, 6, 6, 6, 8};
std::vector<std::int64_t> const megabytes{40, 40, 40, 10, 10, 16, 16, 16, 16, 16, 16, 0};

void show(std::vector<std::uint32_t> const& boundaries) {
  for (auto const boundary : boundaries) std::cout << boundary << ' ';
}

void even_stages() {
  auto const cuts = omnibal::partition_minimax(milliseconds, 4);
  for (std::size_t stage = 0; stage != 4; ++stage) {
    std::cout << "stage " << stage << " has layers " << cuts.boundaries[stage] << " to "
              << cuts.boundaries[stage + 1] - 1 << '\n';
  }
  std::cout << "the slowest stage takes " << cuts.bottleneck << " ms, the least possible\n";
  // The last two devices are half as fast again.
  std::vector<std::int64_t> const speeds{2, 2, 3, 3};
  auto const mixed = omnibal::partition_minimax(milliseconds, speeds);
  show(mixed.boundaries);
  std::cout << "on devices of two kinds\n";
}

void any_cost_of_a_stage() {
  auto const compute = omnibal::stage_sum(milliseconds);
  // A stage waits a millisecond for each 4 MB that it receives.
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return compute(stage, first, last) + (first == 0 ? 0 : megabytes[first - 1] / 4);
  };
  auto const gigabytes = [&](std::size_t, std::size_t first, std::size_t last) {
    return static_cast<std::int64_t>(8 * (last - first));
  };
  auto const cuts = omnibal::partition_layers(
      milliseconds, 4, cost, omnibal::memory_rule{gigabytes, 40}, {.base = {milliseconds}});
  show(cuts.boundaries);
  std::cout << cuts.bottleneck << " ms\n";
  auto const none =
      omnibal::partition_layers(milliseconds, 4, cost, omnibal::memory_rule{gigabytes, 20});
  std::cout << "stage " << none.stage << " lacks " << none.missing_bytes << " GB of memory\n";
}

void the_shortest_step() {
  auto const compute = omnibal::stage_sum(milliseconds);
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return compute(stage, first, last) + (first == 0 ? 0 : megabytes[first - 1] / 4);
  };
  for (std::size_t const micro_batches : {1u, 16u}) {
    auto const cuts = omnibal::partition_throughput(
        milliseconds, 4, cost, omnibal::fits_always{},
        {.micro_batches = micro_batches, .constraints = {.tied = {{.first = 7, .last = 8}}}});
    show(cuts.boundaries);
    std::cout << micro_batches << " micro-batches take " << cuts.objective << " ms\n";
  }
}

void candidates_measured_for_real() {
  std::vector<double> const seconds(milliseconds.begin(), milliseconds.end());
  std::vector<double> const traffic(megabytes.begin(), megabytes.end());
  auto const anchor = omnibal::partition_minimax(milliseconds, 4).boundaries;
  omnibal::cut_score const score(seconds, traffic, 4, {.variance = 1, .traffic = 0.1});
  // Here a training run of some steps with these cuts is timed.
  auto const measure = [&](std::span<std::uint32_t const> boundaries) {
    double slowest = 0;
    for (std::size_t s = 0; s != 4; ++s) {
      double stage = s == 0 ? 0 : traffic[boundaries[s] - 1] / 4;
      for (auto layer = boundaries[s]; layer != boundaries[s + 1]; ++layer) stage += seconds[layer];
      slowest = std::max(slowest, stage);
    }
    return slowest;
  };
  auto const found = omnibal::search_cuts(omnibal::neighbors(anchor, 1), score, 5, measure);
  for (auto const& cuts : found.candidates) {
    show(cuts.boundaries);
    std::cout << "score " << cuts.score << ", measured " << cuts.measured << '\n';
  }
  std::cout << "candidate " << found.best << " is fastest\n";
}

void which_activations_to_keep() {
  // Each layer keeps everything, makes the cheap half again, or all of it: milliseconds, bytes.
  std::vector<omnibal::activation_option<>> const vision{{27, 600}, {28, 250}, {36, 40}};
  std::vector<omnibal::activation_option<>> const language{{18, 500}, {19, 260}, {24, 30}};
  std::vector<std::vector<omnibal::activation_option<>>> const layers{vision,   vision,   vision,
                                                                      language, language, language};
  auto const plan = omnibal::select_recompute(layers, 4500, {.in_flight = 2});
  for (auto const choice : plan.choices) std::cout << choice << ' ';
  std::cout << ": " << plan.time << " ms, none is below " << plan.lower_bound
            << (plan.proven ? ", proven\n" : "\n");
  auto const none = omnibal::select_recompute(layers, 400, {.in_flight = 2});
  if (none.status == omnibal::solve_status::infeasible) {
    std::cout << "400 bytes are " << none.missing_bytes << " too few\n";
  }
}

void how_long_a_step_takes() {
  using omnibal::stage_time;
  std::vector<stage_time<>> const times{{10, 20}, {10, 20}, {12, 24}, {10, 20}};
  auto const report = [&](char const* name, auto const& step) {
    std::cout << name << ": " << step.makespan << " ms, " << 100 * step.bubble_share
              << " % waiting, stage 0 keeps " << step.peak_bytes[0] << " MB\n";
  };
  report("1F1B", omnibal::simulate_pipeline(omnibal::one_f_one_b{4, 16}, times, 1, 500));
  std::vector<stage_time<>> const halves{{5, 10}, {5, 10}, {6, 12}, {5, 10},
                                         {5, 10}, {5, 10}, {6, 12}, {5, 10}};
  report("interleaved",
         omnibal::simulate_pipeline(omnibal::interleaved_1f1b{4, 16, 2}, halves, 1, 250));

  auto const step = omnibal::simulate_pipeline(omnibal::one_f_one_b{4, 2}, times, 1, 500,
                                               {.timeline = omnibal::timeline_policy::recorded});
  std::string trace;  // for Perfetto
  omnibal::write_trace(step.timeline, {.unit = omnibal::time_unit::milliseconds},
                       std::back_inserter(trace));
  std::cout << step.timeline.size() << " operations\n";
}

// Devices of 40 GB that reach 156 TFLOP/s and 1.5 TB/s; eight ranks share each layer.
omnibal::pipeline_machine const machine{
    .stages = 4,
    .memory_bytes = 40'000'000'000,
    .device = {.flops_per_second = 156'000'000'000'000, .bytes_per_second = 1'500'000'000'000}};
omnibal::parallel_degrees const degrees{.tensor = 8, .data = 8, .pipeline = 4};

void cuts_and_recomputation_together() {
  omnibal::micro_batch_work const batch{.documents =
                                            omnibal::equal_sequences({.count = 4, .length = 2048})};
  auto const layers = omnibal::layer_costs(omnibal::llama3_70b, batch, degrees);
  auto const plan = omnibal::plan_pipeline(layers, machine, {.micro_batches = 16});
  show(plan.boundaries);
  std::cout << '\n'
            << plan.step_time / 1'000'000 << " ms, none is below " << plan.lower_bound / 1'000'000
            << " ms\n";
  for (auto const& stage : plan.stages) std::cout << stage.bytes / 1'000'000'000 << " GB ";
  std::string layout;
  omnibal::write_megatron_layout(plan.boundaries, omnibal::language_model_letters{82},
                                 std::back_inserter(layout));
  std::cout << '\n' << layout << '\n';
  std::string json;
  omnibal::write_plan(plan, std::back_inserter(json));
  std::cout << json.substr(0, json.find("\"choices")) << "...\n";
  auto const again = omnibal::recompute_lists(plan, 1);  // 1: selective, 2: full
  std::cout << again[0].size() << " layers of stage 0 recompute selectively\n";
}

void data_model_and_memory() {
  using lengths_type = std::vector<std::int64_t>;
  lengths_type const samples{7000, 500, 6000, 800, 1500, 3000, 5200, 900, 4800, 600, 2100, 3100};
  // Six micro-batches of two samples in one step: as they come, or long with short ones.
  auto const pairs = [](lengths_type lengths, bool even) {
    if (even) std::sort(lengths.begin(), lengths.end());
    omnibal::training_data<lengths_type> data;
    for (std::size_t k = 0; k != lengths.size() / 2; ++k) {
      auto const other = even ? lengths.size() - 1 - k : k + lengths.size() / 2;
      data.batches.push_back({lengths[k], lengths[other]});
    }
    data.schedule =
        omnibal::make_steps(std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3, 4, 5}}, 1);
    return data;
  };
  auto const cost = [](lengths_type const& batch) {
    return omnibal::layer_costs(omnibal::llama3_70b, {.documents = omnibal::sequences_of(batch)},
                                degrees);
  };
  auto const plan = omnibal::plan_training(
      samples, machine, [&](auto const& given) { return pairs(given, false); },
      [&](auto const& given) { return pairs(given, true); }, cost, {.micro_batches = 6});
  for (auto const& lever : plan.levers) {
    std::cout << lever.estimate.nanoseconds / 1'000'000 << " ms, waiting "
              << lever.estimate.waiting_share << '\n';
  }
  auto const other = omnibal::simulate_training(plan.levers[3].plan, plan.balanced_data, machine,
                                                cost, omnibal::zb_h1{});
  std::cout << "the last with ZB-H1: " << other.nanoseconds / 1'000'000 << " ms\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"even_stages", even_stages},
       {"any_cost_of_a_stage", any_cost_of_a_stage},
       {"the_shortest_step", the_shortest_step},
       {"candidates_measured_for_real", candidates_measured_for_real},
       {"which_activations_to_keep", which_activations_to_keep},
       {"how_long_a_step_takes", how_long_a_step_takes},
       {"cuts_and_recomputation_together", cuts_and_recomputation_together},
       {"data_model_and_memory", data_model_and_memory}});
}
