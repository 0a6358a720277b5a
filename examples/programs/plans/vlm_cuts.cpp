// SPDX-License-Identifier: Apache-2.0
#include "vlm_cuts.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/zb_v.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/stage_chunks.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace examples {

namespace {

std::vector<std::uint32_t> even_counts(std::size_t layers, std::size_t stages) {
  std::vector<std::uint32_t> result(stages + 1);
  for (std::size_t s = 0; s <= stages; ++s) {
    result[s] = static_cast<std::uint32_t>(s * layers / stages);
  }
  return result;
}

std::vector<std::uint32_t> greedy_cuts(std::span<vlm_layer const> layers, std::size_t stages,
                                       std::int64_t vlm_layer::*cost) {
  std::vector<std::int64_t> costs;
  costs.reserve(layers.size());
  for (vlm_layer const& layer : layers) costs.push_back(layer.*cost);
  return examples::greedy_cuts(costs, stages);
}

/// The stages of a rule.
omnibal::partition_result<std::int64_t> cut(std::span<vlm_layer const> layers, std::size_t stages,
                                            cut_rule rule, stage_figures const& figures,
                                            std::int64_t memory_bytes) {
  auto const time = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return figures.nanoseconds(stage, first, last);
  };
  auto const bytes = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return figures.bytes(stage, first, last);
  };
  omnibal::partition_layers_options<std::int64_t> const options{
      .base = {layers, &vlm_layer::nanoseconds}};
  switch (rule) {
    case cut_rule::parameters:
      return {.boundaries = greedy_cuts(layers, stages, &vlm_layer::parameters)};
    case cut_rule::count: return {.boundaries = even_counts(layers.size(), stages)};
    case cut_rule::walk:
      return {.boundaries = greedy_cuts(layers, stages, &vlm_layer::nanoseconds)};
    case cut_rule::time: return omnibal::partition_minimax(layers, stages, &vlm_layer::nanoseconds);
    case cut_rule::traffic:
      return omnibal::partition_layers(layers, stages, time, omnibal::fits_always{}, options);
    case cut_rule::memory:
      return omnibal::partition_layers(layers, stages, time,
                                       omnibal::memory_rule{bytes, memory_bytes}, options);
  }
  return {};
}

}  // namespace

std::vector<std::uint32_t> greedy_cuts(std::span<std::int64_t const> costs, std::size_t stages) {
  if (stages == 0 || stages > costs.size()) {
    throw std::invalid_argument("there are " + std::to_string(costs.size()) + " layers for " +
                                std::to_string(stages) +
                                " stages, must be at least one stage and a layer for each");
  }
  auto const cost_of = omnibal::stage_sum(costs);
  auto const count = static_cast<std::int64_t>(stages);
  std::vector<std::uint32_t> result{0};
  for (std::size_t s = 0; s != stages; ++s) {
    std::size_t const first = result.back();
    std::size_t const most = costs.size() - (stages - 1 - s);
    auto const is_nearer = [&](std::size_t last) {
      std::int64_t const both = cost_of(s, first, last) + cost_of(s, first, last + 1);
      return both * count < 2 * cost_of(s, 0, costs.size());
    };
    std::size_t last = s + 1 == stages ? most : first + 1;
    while (last < most && is_nearer(last)) ++last;
    result.push_back(static_cast<std::uint32_t>(last));
  }
  return result;
}

stage_figures::stage_figures(std::span<vlm_layer const> layers, std::size_t stages,
                             pipeline_machine const& machine)
    : layers_(layers),
      stages_(stages),
      micro_batches_(machine.micro_batches),
      compute_(omnibal::stage_sum(layers, &vlm_layer::nanoseconds)),
      state_(omnibal::stage_sum(layers, &vlm_layer::state_bytes)),
      kept_(omnibal::stage_sum(layers, &vlm_layer::kept_bytes)) {
  omnibal::device_model const link{.flops_per_second = 1,
                                   .bytes_per_second = machine.link_bytes_per_second};
  transfers_.reserve(layers.size());
  for (vlm_layer const& layer : layers) {
    transfers_.push_back(link({.flops = 0, .moved_bytes = layer.cut_bytes}));
  }
}

std::int64_t stage_figures::nanoseconds(std::size_t stage, std::size_t first,
                                        std::size_t last) const {
  std::int64_t result = compute_(stage, first, last);
  if (first != 0) result += transfers_[first - 1];
  if (last != transfers_.size()) result += transfers_[last - 1];
  return result;
}

std::int64_t stage_figures::bytes(std::size_t stage, std::size_t first, std::size_t last) const {
  std::int64_t transient = 0;
  for (vlm_layer const& layer : layers_.subspan(first, last - first)) {
    transient = std::max(transient, layer.transient_bytes);
  }
  auto const in_flight = std::min(micro_batches_, static_cast<std::int64_t>(stages_ - stage));
  return state_(stage, first, last) + in_flight * kept_(stage, first, last) + transient;
}

std::int64_t stage_figures::lower_bound() const {
  auto const stages = static_cast<std::int64_t>(stages_);
  std::int64_t const mean = (compute_(0, 0, layers_.size()) + stages - 1) / stages;
  auto const slowest = std::ranges::max_element(layers_, {}, &vlm_layer::nanoseconds);
  return std::max(mean, slowest->nanoseconds);
}

namespace {

/// Stages with several chunks of a model each.
class chunked_stages {
 public:
  chunked_stages(std::span<vlm_layer const> layers, std::size_t stages,
                 pipeline_machine const& machine)
      : layers_(layers),
        machine_(machine),
        layout_{stages, static_cast<std::size_t>(machine.micro_batches), machine.chunks,
                machine.placement},
        in_flight_(units_of(layout_)) {}

  /// The cuts of `plan_pipeline`.
  [[nodiscard]] omnibal::partition_result<std::int64_t> plan() const {
    std::vector<omnibal::plan_layer<>> given;
    for (vlm_layer const& one : layers_) {
      given.push_back({{{one.nanoseconds, one.kept_bytes, one.transient_bytes}}, one.state_bytes});
    }
    auto plan = omnibal::plan_pipeline(
        given, {.stages = layout_.stages, .memory_bytes = {machine_.memory_bytes}},
        {.count = layout_.chunks, .placement = layout_.placement, .in_flight = in_flight_},
        {.micro_batches = layout_.micro_batches});
    return {.status = plan.status,
            .boundaries = std::move(plan.boundaries),
            .missing_bytes = plan.missing_bytes};
  }

  /// Judges cuts. Returns the time of the slowest stage.
  [[nodiscard]] std::int64_t judge(stage_plan& plan) const {
    std::size_t const stages = layout_.stages;
    std::size_t const virtual_stages = plan.boundaries.size() - 1;
    std::vector<std::int64_t> loads(stages, 0);
    std::vector<std::int64_t> fixed(stages, 0);
    std::vector<std::int64_t> transient(stages, 0);
    std::vector<std::int64_t> times;
    std::vector<std::int64_t> kept;
    for (std::size_t v = 0; v != virtual_stages; ++v) {
      std::size_t const stage = layout_.stage_of(v, 0);
      std::int64_t time = v == 0 ? 0 : received(plan, v);
      if (v + 1 != virtual_stages) {
        time += received(plan, v + 1);
        plan.sent_bytes += sent(plan, v + 1);
      }
      std::int64_t bytes = 0;
      for (std::size_t l = plan.boundaries[v]; l != plan.boundaries[v + 1]; ++l) {
        time += layers_[l].nanoseconds;
        bytes += layers_[l].kept_bytes;
        fixed[stage] += layers_[l].state_bytes;
        transient[stage] = std::max(transient[stage], layers_[l].transient_bytes);
      }
      loads[stage] += time;
      times.push_back(time);
      kept.push_back(bytes);
    }
    for (std::size_t s = 0; s != stages; ++s) {
      std::int64_t const all = fixed[s] + most_kept(s, kept) + transient[s];
      plan.largest_bytes = std::max(plan.largest_bytes, all);
    }
    plan.step_nanoseconds = omnibal::estimate_makespan(times, layout_);
    return *std::ranges::max_element(loads);
  }

 private:
  /// The units that the schedule of a placement keeps.
  static std::vector<omnibal::chunk_counts> units_of(omnibal::chunk_layout const& layout) {
    if (layout.placement == omnibal::chunk_placement::v_shape) {
      return omnibal::chunks_in_flight(omnibal::zb_v(layout.stages, layout.micro_batches));
    }
    return omnibal::chunks_in_flight(
        omnibal::interleaved_1f1b{layout.stages, layout.micro_batches, layout.chunks});
  }

  /// What a micro-batch sends to a virtual stage from another stage.
  [[nodiscard]] std::int64_t sent(stage_plan const& plan, std::size_t virtual_stage) const {
    bool const stays = layout_.stage_of(virtual_stage - 1, 0) == layout_.stage_of(virtual_stage, 0);
    return stays ? 0 : layers_[plan.boundaries[virtual_stage] - 1].cut_bytes;
  }
  [[nodiscard]] std::int64_t received(stage_plan const& plan, std::size_t virtual_stage) const {
    omnibal::device_model const link{.flops_per_second = 1,
                                     .bytes_per_second = machine_.link_bytes_per_second};
    return link({.flops = 0, .moved_bytes = sent(plan, virtual_stage)});
  }

  /// The most bytes of micro-batches that a stage keeps at a moment.
  [[nodiscard]] std::int64_t most_kept(std::size_t stage,
                                       std::vector<std::int64_t> const& kept) const {
    std::int64_t most = 0;
    for (std::size_t moment = 0; moment != in_flight_[stage].size(); ++moment) {
      std::int64_t bytes = 0;
      for (std::uint32_t chunk = 0; chunk != layout_.chunks; ++chunk) {
        bytes += in_flight_[stage][moment][chunk] *
                 kept[layout_.virtual_stage(stage, {.chunk = chunk, .micro_batch = 0})];
      }
      most = std::max(most, bytes);
    }
    return most;
  }

  std::span<vlm_layer const> layers_;
  pipeline_machine machine_;
  omnibal::chunk_layout layout_;
  std::vector<omnibal::chunk_counts> in_flight_;
};

/// Judges cuts into stages with one chunk. Returns the time of the slowest stage.
std::int64_t judge(std::span<vlm_layer const> layers, stage_figures const& figures,
                   stage_plan& plan) {
  std::int64_t slowest = 0;
  for (std::size_t s = 0; s + 1 != plan.boundaries.size(); ++s) {
    std::size_t const first = plan.boundaries[s];
    std::size_t const last = plan.boundaries[s + 1];
    slowest = std::max(slowest, figures.nanoseconds(s, first, last));
    plan.largest_bytes = std::max(plan.largest_bytes, figures.bytes(s, first, last));
    if (last != layers.size()) plan.sent_bytes += layers[last - 1].cut_bytes;
  }
  return slowest;
}

}  // namespace

stage_comparison compare_cuts(std::span<vlm_layer const> layers, std::size_t stages,
                              pipeline_machine const& machine) {
  std::optional<chunked_stages> chunked;
  if (machine.chunks != 1) chunked.emplace(layers, stages, machine);
  std::size_t const virtual_stages = stages * machine.chunks;
  stage_figures const figures(layers, virtual_stages, machine);
  stage_comparison result{.stages = stages,
                          .lower_bound = stage_figures(layers, stages, machine).lower_bound(),
                          .plans = {}};
  for (named_rule const& one : cut_rules) {
    stage_plan& plan = result.plans[static_cast<std::size_t>(one.rule)];
    auto const found = chunked && one.rule == cut_rule::memory
                           ? chunked->plan()
                           : cut(layers, virtual_stages, one.rule, figures, machine.memory_bytes);
    plan.boundaries = found.boundaries;
    if (!plan.is_feasible()) {
      plan.over_bound = std::numeric_limits<double>::infinity();
      plan.largest_bytes = machine.memory_bytes + found.missing_bytes;
      continue;
    }
    std::int64_t const slowest = chunked ? chunked->judge(plan) : judge(layers, figures, plan);
    plan.over_bound = static_cast<double>(slowest) / static_cast<double>(result.lower_bound);
  }
  return result;
}

}  // namespace examples
