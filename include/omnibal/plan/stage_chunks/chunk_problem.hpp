// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The input of a search for the cuts of stages with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The maps between virtual stages and pairs of a stage and a chunk.
struct chunk_places {
  std::size_t chunks;
  std::vector<std::uint32_t> stage;
  std::vector<std::uint32_t> chunk;
  /// The virtual stage of chunk `chunk` on stage `stage`, at index stage * chunks + chunk.
  std::vector<std::uint32_t> virtual_stage;

  /// Precondition: the layout is not bidirectional.
  explicit chunk_places(chunk_layout const& layout)
      : chunks(layout.chunks), virtual_stage(layout.stages * layout.chunks) {
    for (std::size_t v = 0; v != virtual_stage.size(); ++v) {
      stage.push_back(static_cast<std::uint32_t>(layout.stage_of(v, 0)));
      chunk.push_back(static_cast<std::uint32_t>(v / layout.stages));
      virtual_stage[stage[v] * chunks + chunk[v]] = static_cast<std::uint32_t>(v);
    }
  }
};

/// The layers [first, last) of each chunk of a stage: two entries for each chunk.
using chunk_ranges = std::vector<std::uint32_t>;

/// The limits on the work of the parts of a search.
struct chunk_effort {
  /// The number of price vectors that the dual evaluates.
  std::size_t rounds;
  /// The number of moves of a local search.
  std::size_t moves;
  /// The number of operations of schedules that are simulated.
  std::size_t operations;
  /// The number of nodes of the search over all cuts.
  std::size_t nodes;

  [[nodiscard]] static chunk_effort of(plan_pipeline_options const& options) {
    constexpr by_effort<chunk_effort> levels{
        .fast = {.rounds = 8, .moves = 1u << 9, .operations = 0, .nodes = 1u << 10},
        .normal = {.rounds = 24, .moves = 1u << 11, .operations = 1u << 19, .nodes = 1u << 14},
        .thorough = {.rounds = 96, .moves = 1u << 16, .operations = 1u << 24, .nodes = 1u << 20}};
    chunk_effort result = levels[options.effort];
    result.rounds = options.rounds.value_or(result.rounds);
    return result;
  }
};

/// The layers, the stages and the rules of a search. Cuts are given as `boundaries`: virtual stage
/// v has the layers [boundaries[v], boundaries[v + 1]).
struct chunk_problem {
  integer_layers const& layers;
  stage_budgets const& budgets;
  plan_pipeline_options const& options;
  chunk_layout layout;
  chunk_step<int128> step;
  chunk_places places;
  chain_rules rules;
  chunk_effort effort;

  chunk_problem(std::string_view function, integer_layers const& all_layers,
                stage_budgets const& stage_limits, chunk_layout const& chunks,
                plan_pipeline_options const& plan_options)
      : layers(all_layers),
        budgets(stage_limits),
        options(plan_options),
        layout(chunks),
        step(function, chunks),
        places(chunks),
        rules(rules_for(function, all_layers.size(), chunks.stages * chunks.chunks,
                        plan_options.constraints)),
        effort(chunk_effort::of(plan_options)) {}

  [[nodiscard]] std::size_t stages() const { return layout.stages; }
  [[nodiscard]] std::size_t virtual_stages() const { return places.stage.size(); }
  /// Returns the virtual stage of a chunk of a stage.
  [[nodiscard]] std::size_t virtual_stage(std::size_t stage, std::size_t chunk) const {
    return places.virtual_stage[stage * places.chunks + chunk];
  }

  /// Writes the ranges of layers of the chunks of a stage to `result`.
  void find_ranges(std::span<std::uint32_t const> boundaries, std::size_t stage,
                   chunk_ranges& result) const {
    result.clear();
    for (std::size_t c = 0; c != places.chunks; ++c) {
      std::size_t const v = virtual_stage(stage, c);
      result.push_back(boundaries[v]);
      result.push_back(boundaries[v + 1]);
    }
  }
  [[nodiscard]] chunk_ranges ranges_of(std::span<std::uint32_t const> boundaries,
                                       std::size_t stage) const {
    chunk_ranges result;
    find_ranges(boundaries, stage, result);
    return result;
  }
  /// Returns the least time of a stage with enough memory.
  [[nodiscard]] std::int64_t min_load(chunk_ranges const& ranges) const {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      sum += layers.min_time(ranges[c], ranges[c + 1]);
    }
    return sum;
  }

  /// Returns true if the rules allow the number of layers of virtual stage `v`.
  [[nodiscard]] bool allows(std::span<std::uint32_t const> boundaries, std::size_t v) const {
    if (boundaries[v] > boundaries[v + 1]) return false;
    std::uint32_t const count = boundaries[v + 1] - boundaries[v];
    if (count == 0) return rules.may_be_empty;
    return rules.shortest[v] <= count && count <= rules.longest[v];
  }
  /// Returns true if the rules allow these cuts.
  [[nodiscard]] bool allows(std::span<std::uint32_t const> boundaries) const {
    if (boundaries.size() != virtual_stages() + 1) return false;
    for (std::size_t v = 0; v != boundaries.size(); ++v) {
      if (boundaries[v] < rules.first_cut[v] || boundaries[v] > rules.last_cut[v]) return false;
      if (rules.may_cut[boundaries[v]] == 0) return false;
    }
    for (std::size_t v = 0; v != virtual_stages(); ++v) {
      if (!allows(boundaries, v)) return false;
    }
    return true;
  }
};

}  // namespace omnibal::inline v0::detail
