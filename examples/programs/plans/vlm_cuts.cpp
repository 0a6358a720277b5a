// SPDX-License-Identifier: Apache-2.0
#include "vlm_cuts.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

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

stage_comparison compare_cuts(std::span<vlm_layer const> layers, std::size_t stages,
                              pipeline_machine const& machine) {
  stage_figures const figures(layers, stages, machine);
  stage_comparison result{.stages = stages, .lower_bound = figures.lower_bound(), .plans = {}};
  for (named_rule const& one : cut_rules) {
    stage_plan& plan = result.plans[static_cast<std::size_t>(one.rule)];
    auto const found = cut(layers, stages, one.rule, figures, machine.memory_bytes);
    plan.boundaries = found.boundaries;
    if (!plan.is_feasible()) {
      plan.over_bound = std::numeric_limits<double>::infinity();
      plan.largest_bytes = machine.memory_bytes + found.missing_bytes;
      continue;
    }
    std::int64_t slowest = 0;
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const first = plan.boundaries[s];
      std::size_t const last = plan.boundaries[s + 1];
      slowest = std::max(slowest, figures.nanoseconds(s, first, last));
      plan.largest_bytes = std::max(plan.largest_bytes, figures.bytes(s, first, last));
      if (last != layers.size()) plan.sent_bytes += layers[last - 1].cut_bytes;
    }
    plan.over_bound = static_cast<double>(slowest) / static_cast<double>(result.lower_bound);
  }
  return result;
}

}  // namespace examples
