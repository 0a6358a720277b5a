// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Plans of stages that have several chunks of a model each.

#include <omnibal/check.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/stage_chunks/chunk_search.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The chunks of a model on each stage, an argument of `plan_pipeline` and `plan_training`. Calls
/// without this argument have one chunk and do not compile the search for several chunks.
struct stage_chunks {
  /// The number of chunks on each stage. The model is cut into stages * count virtual stages.
  std::size_t count = 1;
  /// The order in which the chunks lie on the stages; not bidirectional.
  chunk_placement placement = chunk_placement::looped;
  /// The maximum number of units of each chunk that each stage keeps at the same time, as
  /// `chunks_in_flight` returns it for any schedule. If the list is empty, the numbers are the
  /// numbers of `interleaved_1f1b`; other placements require a list. With one chunk, set
  /// `plan_pipeline_options::in_flight` instead.
  std::vector<chunk_counts> in_flight{};
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

inline void check_chunks(std::string_view name, stage_chunks const& chunks,
                         plan_pipeline_options const& options) {
  check_at_least_one(name, "chunks.count", chunks.count);
  if (chunks.count == 1) {
    if (chunks.in_flight.empty()) return;
    throw_invalid(name, "chunks.in_flight has values for ", chunks.in_flight.size(),
                  " stages, must be empty if chunks.count is 1: use options.in_flight");
  }
  if (!options.in_flight.empty()) {
    throw_invalid(name, "options.in_flight has ", options.in_flight.values().size(),
                  " values, must be empty if chunks.count is ", chunks.count,
                  ": use chunks.in_flight");
  }
  if (chunks.placement == chunk_placement::bidirectional) {
    throw_invalid(name, "chunks.placement is bidirectional, must be looped or v_shape");
  }
  if (chunks.placement != chunk_placement::looped && chunks.in_flight.empty()) {
    throw_invalid(name,
                  "chunks.in_flight is empty, must have the units of the schedule if "
                  "chunks.placement is v_shape");
  }
}

/// Returns the plan that a search for stages with several chunks has found.
template <class Time, class Search>
[[nodiscard]] pipeline_plan<Time> planned_chunks(std::string_view name, Search const& search,
                                                 choice_table<Time> const& table,
                                                 integer_layers const& whole,
                                                 stage_budgets const& rooms,
                                                 chunk_layout const& layout) {
  pipeline_plan<Time> result;
  result.chunks = layout.chunks;
  result.placement = layout.placement;
  if (!search.has_plan()) {
    bool const is_impossible = search.min_missing() > 0;
    result.status = is_impossible ? solve_status::infeasible : solve_status::not_found;
    result.proven = search.min_missing() == search.missing();
    result.stage = search.missing_stage();
    result.missing_bytes = checked_cast<std::int64_t>(name, "the missing memory", search.missing());
    return result;
  }
  result.boundaries = search.boundaries();
  result.choices.resize(whole.size());
  std::vector<Time> times(result.boundaries.size() - 1);
  for (std::size_t s = 0; s != layout.stages; ++s) {
    auto& one = result.stages.emplace_back();
    one.in_flight = rooms.in_flight[s];
    one.bytes = static_cast<std::int64_t>(search.bytes_of(s));
    std::size_t next = 0;
    for (std::size_t c = 0; c != layout.chunks; ++c) {
      std::size_t const v = search.problem().virtual_stage(s, c);
      for (std::size_t l = result.boundaries[v]; l != result.boundaries[v + 1]; ++l) {
        result.choices[l] = search.solutions()[s].choices[next++];
        times[v] += table.choice(l, result.choices[l]).time;
      }
      one.time += times[v];
    }
  }
  result.step_time = estimate_makespan(times, layout);
  auto const& step = search.problem().step;
  if constexpr (std::floating_point<Time>) {
    auto const gap = static_cast<std::int64_t>(step.original(search.value() - search.bound()));
    result.proven = gap == 0;
    result.lower_bound = std::max(Time{}, result.step_time - whole.original(table, gap));
  } else {
    result.lower_bound = static_cast<Time>(step.original(search.bound()));
    result.proven = result.lower_bound == result.step_time;
  }
  return result;
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// @cond The declaration in plan_pipeline.hpp has the documentation.
template <plannable_range Layers>
auto plan_pipeline_fn::operator()(Layers const& layers, pipeline_machine const& machine,
                                  stage_chunks const& chunks,
                                  plan_pipeline_options const& options) const {
  detail::check_plan_options(name, machine, options);
  detail::check_chunks(name, chunks, options);
  if (chunks.count == 1) return (*this)(layers, machine, options);
  chunk_layout const layout{machine.stages, options.micro_batches, chunks.count, chunks.placement};
  layout.check(name);
  check_layers(layers, machine.stages * chunks.count, options);
  using search = detail::chunk_search;
  detail::stage_budgets const rooms(
      name, machine, chunks.count,
      chunks.in_flight.empty() ? search::units_of(layout) : chunks.in_flight);
  return with_integers(layers, rooms, options, [&](auto const& table, auto const& whole) {
    search found(name, whole, rooms, layout, options);
    found.run();
    return detail::planned_chunks<time_of_layers<Layers>>(name, found, table, whole, rooms, layout);
  });
}
/// @endcond

}  // namespace omnibal::inline v0
