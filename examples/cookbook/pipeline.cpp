// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cookbook {

// The time of each of twelve layers, and the output that it sends to the next layer.
std::vector<std::int64_t> const milliseconds{9, 9, 9, 9, 2, 6, 6, 6, 6, 6, 6, 8};
std::vector<std::int64_t> const megabytes{40, 40, 40, 10, 10, 16, 16, 16, 16, 16, 16, 0};

auto const compute = omnibal::stage_sum(milliseconds);
// A stage waits a millisecond for each 4 MB that it receives.
auto const cost = [](std::size_t stage, std::size_t first, std::size_t last) {
  return compute(stage, first, last) + (first == 0 ? 0 : megabytes[first - 1] / 4);
};

void show(std::span<std::uint32_t const> boundaries) {
  for (auto const boundary : boundaries) std::cout << boundary << ' ';
}

void even_stages() {
  auto const cuts = omnibal::partition_minimax(milliseconds, 4);
  show(cuts.boundaries);
  std::cout << "the slowest stage takes " << cuts.bottleneck << " ms\n";
  std::vector<std::int64_t> const speeds{2, 2, 3, 3};
  show(omnibal::partition_minimax(milliseconds, speeds).boundaries);
  std::cout << "on devices of two kinds\n";
}

void any_cost_of_a_stage() {
  auto const gigabytes = [](std::size_t, std::size_t first, std::size_t last) {
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
  // A trainer times some steps with these cuts here.
  auto const measure = [](std::span<std::uint32_t const> cuts) {
    std::int64_t slowest = 0;
    for (std::size_t s = 0; s != 4; ++s) slowest = std::max(slowest, cost(s, cuts[s], cuts[s + 1]));
    return static_cast<double>(slowest);
  };
  auto const found = omnibal::search_cuts(omnibal::neighbors(anchor, 1), score, 5, measure);
  auto const& best = found.candidates[found.best];
  show(best.boundaries);
  std::cout << "score " << best.score << ", measured " << best.measured << " ms\n";
}

void which_activations_to_keep() {
  // Milliseconds and bytes of a layer that keeps all, recomputes the cheap half, recomputes all.
  std::vector<omnibal::activation_option<>> const vision{{27, 600}, {28, 250}, {36, 40}};
  std::vector<omnibal::activation_option<>> const language{{18, 500}, {19, 260}, {24, 30}};
  std::vector const layers{vision, vision, vision, language, language, language};
  auto const plan = omnibal::select_recompute(layers, 4500, {.in_flight = 2});
  for (auto const choice : plan.choices) std::cout << choice << ' ';
  std::cout << ": " << plan.time << " ms, none is below " << plan.lower_bound
            << (plan.proven ? ", proven\n" : "\n");
}

void keep_recompute_or_offload() {
  // Megabytes and microseconds of the modules of a layer, and the times of its two passes.
  omnibal::activation_layer<> const layer{
      .modules = {{59, 60}, {470, 1130}, {134, 1720}, {59, 2400}, {302, 5410}, {151, 210}},
      .forward_time = 12'000,
      .backward_time = 24'000};
  std::vector const layers(8, layer);
  omnibal::offload_link const link{0.012};  // megabytes in a microsecond
  std::vector<std::int64_t> const budgets{2000, 4000, 8000};
  auto const plans = omnibal::activation_frontier(layers, budgets, link);
  for (auto const& plan : plans) {
    std::cout << plan.added_time << " us, none is below " << plan.lower_bound << ", peak "
              << plan.peak_bytes << " MB, " << plan.offloaded_bytes << " MB offloaded\n";
  }
  // A pipeline stage that runs all layers with the choices for 4000 MB, for other programs.
  omnibal::offload_plan const stage{.boundaries = {0, 8}, .choices = plans[1].choices};
  std::vector<std::string_view> const names{"attn_norm", "qkv_linear", "core_attn",
                                            "attn_proj", "expert_fc1", "moe_act"};
  std::string json, policies;
  omnibal::write_offload_plan(stage, std::back_inserter(json));
  omnibal::write_checkpoint_policies(stage, names, std::back_inserter(policies));
  auto const lists = omnibal::activation_lists(stage, 5, omnibal::activation_choice::recompute);
  show(lists[0]);
  std::vector const with_state(8, omnibal::offload_layer{.activations = layer});
  std::cout << "recompute moe_act\n"
            << omnibal::megatron_offload_flags(stage, with_state, names).arguments() << '\n';
}

void how_long_a_step_takes() {
  auto const report = [](char const* name, auto const& step) {
    std::cout << name << ": " << step.makespan << " ms, " << 100 * step.bubble_share
              << " % idle, stage 0 keeps " << step.peak_bytes[0] << " MB\n";
  };
  auto const step =
      omnibal::simulate_pipeline(omnibal::one_f_one_b{4, 16}, omnibal::stage_time{10, 20}, 1, 500,
                                 {.timeline = omnibal::timeline_policy::recorded});
  report("1F1B", step);
  report("interleaved", omnibal::simulate_pipeline(omnibal::interleaved_1f1b{4, 16, 2},
                                                   omnibal::stage_time{5, 10}, 1, 250));
  std::string trace;  // for Perfetto
  omnibal::write_trace(step.timeline, {.unit = omnibal::time_unit::milliseconds},
                       std::back_inserter(trace));
}

void the_order_of_micro_batches() {
  // Milliseconds of each micro-batch on each of four stages; the backward pass takes twice as long.
  std::vector<std::int64_t> const milliseconds_of_batch{9, 8, 12, 7, 10, 6, 11, 9};
  auto const times = [&](std::size_t, std::size_t m) {
    std::int64_t const forward = milliseconds_of_batch[m];
    return omnibal::stage_time<>{forward, 2 * forward};
  };
  auto const found = omnibal::order_micro_batches(omnibal::one_f_one_b{4, 8}, times);
  show(found.order);
  std::cout << ": " << found.makespan << " ms instead of " << found.given_makespan
            << ", no order needs less than " << found.lower_bound << '\n';
}

void a_schedule_for_your_own_times() {
  std::vector<std::int64_t> const sizes{9, 8, 12, 7, 10, 6, 11, 9};
  auto const times = [&](std::size_t, std::size_t m) {
    return omnibal::stage_time<>{sizes[m], sizes[m], sizes[m]};
  };
  std::vector<std::int64_t> const memory(4, 2000);  // MB of a stage; a micro-batch keeps 500
  auto const list = omnibal::list_schedule({4, 8}, times, 1, 500, memory);
  std::string csv;  // for PyTorch
  omnibal::write_schedule(list.schedule, std::back_inserter(csv));
  auto const plain = omnibal::simulate_pipeline(omnibal::one_f_one_b{4, 8}, times, 1);
  std::cout << list.makespan << " ms instead of " << plain.makespan << ", no list needs less than "
            << list.lower_bound << '\n';
}

void chunks_in_a_v() {
  for (auto const& schedule : {omnibal::zb_v(4, 8), omnibal::v_half(4, 8), omnibal::v_min(4, 8)}) {
    std::cout << omnibal::simulate_pipeline(schedule, omnibal::stage_time{10, 10, 10}).makespan
              << " ms, " << omnibal::peak_in_flight(schedule)[0] << " units on stage 0\n";
  }
}

void an_encoder_in_the_idle_times() {
  // A micro-batch takes 30 ms on each of four stages, and 24 ms in the tower, whose four images may
  // be encoded on different stages.
  omnibal::encoder_work<> tower{.times = {}, .pieces = 4};
  tower.times.assign(8, {8, 16});
  tower.transfers.assign(8, {1, 1});
  auto const placed = omnibal::place_encoder(omnibal::one_f_one_b{4, 8},
                                             omnibal::stage_time{10, 20}, 1, 500, tower);
  std::cout << placed.step.makespan << " ms, " << placed.before_makespan
            << " ms with the tower before the pipeline, " << placed.language_makespan
            << " ms without it, at least " << placed.lower_bound << '\n';
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
  std::cout << plan.step_time / 1'000'000 << " ms, none is below " << plan.lower_bound / 1'000'000
            << " ms\n";
  std::string layout, json;
  omnibal::write_megatron_layout(plan.boundaries, omnibal::language_model_letters{82},
                                 std::back_inserter(layout));
  omnibal::write_plan(plan, std::back_inserter(json));
  std::cout << layout << '\n';
  auto const recomputed = omnibal::recompute_lists(plan, 1);  // 1: selective, 2: full
  std::cout << recomputed[0].size() << " layers of stage 0 recompute selectively\n";
}

void chunks_on_each_stage() {
  omnibal::micro_batch_work const batch{.documents =
                                            omnibal::equal_sequences({.count = 4, .length = 2048})};
  auto const layers = omnibal::layer_costs(omnibal::llama3_70b, batch, degrees);
  omnibal::interleaved_1f1b const schedule{.stages = 4, .micro_batches = 16, .chunks = 4};
  auto const plan = omnibal::plan_pipeline(
      layers, machine, {.count = 4, .in_flight = omnibal::chunks_in_flight(schedule)},
      {.micro_batches = 16});
  std::string layout;
  omnibal::write_megatron_layout(plan.boundaries, omnibal::language_model_letters{82},
                                 std::back_inserter(layout));
  std::cout << layout << '\n'
            << plan.step_time / 1'000'000 << " ms, " << plan.stages[0].in_flight
            << " units on stage 0\n";
}

void data_model_and_memory() {
  using lengths_type = std::vector<std::int64_t>;
  lengths_type const samples{7000, 500, 6000, 800, 1500, 3000, 5200, 900, 4800, 600, 2100, 3100};
  // Six micro-batches of two samples in one step: as they come, or long with short ones.
  auto const pairs = [](lengths_type lengths, bool even) {
    if (even) std::sort(lengths.begin(), lengths.end());
    omnibal::training_data<lengths_type> data;
    for (std::size_t k = 0; k != 6; ++k)
      data.batches.push_back({lengths[k], lengths[even ? 11 - k : k + 6]});
    std::vector<std::vector<std::uint32_t>> const order{{0, 1, 2, 3, 4, 5}};
    data.schedule = omnibal::make_steps(order, 1);
    return data;
  };
  auto const costs_of = [](lengths_type const& batch) {
    return omnibal::layer_costs(omnibal::llama3_70b, {.documents = omnibal::sequences_of(batch)},
                                degrees);
  };
  auto const plan = omnibal::plan_training(
      samples, machine, [&](auto const& given) { return pairs(given, false); },
      [&](auto const& given) { return pairs(given, true); }, costs_of, {.micro_batches = 6});
  for (auto const& lever : plan.levers) {
    std::cout << lever.estimate.nanoseconds / 1'000'000 << " ms, "
              << 100 * lever.estimate.waiting_share << " % idle\n";
  }
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"even_stages", even_stages},
       {"any_cost_of_a_stage", any_cost_of_a_stage},
       {"the_shortest_step", the_shortest_step},
       {"candidates_measured_for_real", candidates_measured_for_real},
       {"which_activations_to_keep", which_activations_to_keep},
       {"keep_recompute_or_offload", keep_recompute_or_offload},
       {"how_long_a_step_takes", how_long_a_step_takes},
       {"the_order_of_micro_batches", the_order_of_micro_batches},
       {"a_schedule_for_your_own_times", a_schedule_for_your_own_times},
       {"chunks_in_a_v", chunks_in_a_v},
       {"an_encoder_in_the_idle_times", an_encoder_in_the_idle_times},
       {"cuts_and_recomputation_together", cuts_and_recomputation_together},
       {"chunks_on_each_stage", chunks_on_each_stage},
       {"data_model_and_memory", data_model_and_memory}});
}
