// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Orders of passes that repeat the same pattern for each micro-batch.

#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A pattern of passes in slots; each pass fills one slot. The passes of a micro-batch run through
/// the virtual stages, and the next micro-batch runs the same passes one period later. Source:
/// building blocks of Qi et al., "Pipeline parallelism with controllable memory", 2024.
struct pass_pattern {
  /// The number of slots from a pass to the pass of the next virtual stage, for chunks with even
  /// numbers and with odd numbers.
  std::array<std::int64_t, 2> forward_steps{1, 1};
  std::array<std::int64_t, 2> backward_steps{1, 1};
  /// Additional slots between the chunks in the forward direction, between the last forward pass
  /// and the first backward pass, and between the chunks in the backward direction.
  std::int64_t forward_gap = 0;
  std::int64_t turn_gap = 0;
  std::int64_t backward_gap = 0;
};

/// The slots of the passes of micro-batch 0, by virtual stage.
struct pattern_slots {
  std::vector<std::int64_t> forward;
  std::vector<std::int64_t> backward;

  pattern_slots(chunk_layout const& layout, pass_pattern const& shape) {
    std::size_t const stages = layout.stages;
    std::size_t const count = stages * layout.chunks;
    forward.resize(count);
    backward.resize(count);
    std::int64_t slot = 0;
    for (std::size_t v = 0; v != count; ++v) {
      forward[v] = slot;
      bool const ends_chunk = (v + 1) % stages == 0;
      slot += ends_chunk ? 1 + shape.forward_gap : shape.forward_steps[v / stages % 2];
    }
    slot += shape.turn_gap - shape.forward_gap;
    for (std::size_t v = count; v-- != 0;) {
      backward[v] = slot;
      bool const ends_chunk = v % stages == 0;
      slot += ends_chunk ? 1 + shape.backward_gap : shape.backward_steps[v / stages % 2];
    }
  }
};

/// Returns the passes of each stage, sorted by their slots.
template <class T>
[[nodiscard]] operation_lists periodic_order(list_problem<T> const& problem,
                                             pattern_slots const& slots, std::int64_t period) {
  struct slotted_pass {
    std::int64_t slot;
    listed_operation pass;
  };
  operation_lists lists(problem.layout.stages);
  std::vector<slotted_pass> passes;
  for (std::size_t s = 0; s != lists.size(); ++s) {
    passes.clear();
    for (unit_lane const& lane : problem.lanes[s]) {
      for (std::uint32_t i = 0; i != lane.count; ++i) {
        std::uint32_t const m = lane.micro_batch(i);
        std::int64_t const begin = period * m;
        passes.push_back(
            {begin + slots.forward[lane.virtual_stage], {operation_kind::forward, lane.chunk, m}});
        passes.push_back({begin + slots.backward[lane.virtual_stage],
                          {operation_kind::backward, lane.chunk, m}});
      }
    }
    std::ranges::stable_sort(passes, {}, &slotted_pass::slot);
    for (slotted_pass const& one : passes) lists[s].push_back(one.pass);
  }
  return lists;
}

/// Returns true if a stage has two passes in the same slot of a period.
[[nodiscard]] inline bool collides(chunk_layout const& layout, pattern_slots const& slots,
                                   std::int64_t period) {
  for (std::size_t s = 0; s != layout.stages; ++s) {
    std::vector<bool> used(static_cast<std::size_t>(period), false);
    for (unit_lane const& lane : lanes_of(layout, s)) {
      for (std::int64_t const slot :
           {slots.forward[lane.virtual_stage], slots.backward[lane.virtual_stage]}) {
        auto const place = static_cast<std::size_t>((slot + period * lane.first) % period);
        if (used[place]) return true;
        used[place] = true;
      }
    }
  }
  return false;
}

/// Returns the patterns in which no stage has two passes in a slot. Patterns in which a micro-batch
/// needs the fewest slots come first.
[[nodiscard]] inline std::vector<pass_pattern> patterns_without_collisions(
    chunk_layout const& layout, std::int64_t period) {
  using steps = std::array<std::int64_t, 2>;
  // With one chunk there are no odd chunks and no gaps between chunks.
  bool const has_odd = layout.chunks != 1;
  std::vector<steps> choices{{1, 1}, {2, 1}};
  if (has_odd) choices.insert(choices.end(), {{1, 2}, {2, 2}});
  std::int64_t const gaps = has_odd ? 2 : 1;

  std::vector<std::pair<std::int64_t, pass_pattern>> found;
  auto const consider = [&](pass_pattern const& shape) {
    pattern_slots const slots(layout, shape);
    if (!collides(layout, slots, period)) found.emplace_back(slots.backward[0], shape);
  };
  for (steps const& forward : choices) {
    for (steps const& backward : choices) {
      for (std::int64_t turn = 0; turn != period; ++turn) {
        for (std::int64_t gap = 0; gap != gaps * gaps; ++gap) {
          consider({.forward_steps = forward,
                    .backward_steps = backward,
                    .forward_gap = gap % gaps,
                    .turn_gap = turn,
                    .backward_gap = gap / gaps});
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, [](auto const& one) { return one.first; });
  std::vector<pass_pattern> result;
  for (auto const& [length, shape] : found) result.push_back(shape);
  return result;
}

}  // namespace omnibal::inline v0::detail
