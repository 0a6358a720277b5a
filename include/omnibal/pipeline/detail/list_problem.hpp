// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times, transfers, bytes and memory of a pipeline in tables, for `list_schedule`.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/run_lists.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The units of a stage that belong to the same virtual stage: the micro-batches `first`, `first` +
/// `step` and so on in one chunk.
struct unit_lane {
  std::size_t virtual_stage = 0;
  std::uint32_t chunk = 0;
  std::uint32_t first = 0;
  std::uint32_t step = 1;
  std::uint32_t count = 0;

  [[nodiscard]] std::uint32_t micro_batch(std::uint32_t index) const {
    return first + step * index;
  }
};

/// Returns the lanes of a stage, ordered by chunk.
[[nodiscard]] inline std::vector<unit_lane> lanes_of(chunk_layout const& layout,
                                                     std::size_t stage) {
  auto const batches = static_cast<std::uint32_t>(layout.micro_batches);
  std::uint32_t const step = layout.placement == chunk_placement::bidirectional ? 2 : 1;
  std::vector<unit_lane> lanes;
  for (std::uint32_t chunk = 0; chunk != layout.chunks; ++chunk) {
    for (std::uint32_t first = 0; first != step; ++first) {
      lanes.push_back({.virtual_stage = layout.virtual_stage(stage, {chunk, first}),
                       .chunk = chunk,
                       .first = first,
                       .step = step,
                       .count = (batches - first + step - 1) / step});
    }
  }
  return lanes;
}

/// The times of all units, by virtual stage and micro-batch.
template <class T>
struct unit_times {
  std::vector<stage_time<T>> work;
  /// The transfers over the cut after the virtual stage.
  std::vector<transfer_time<T>> transfer;
};

/// The input of `list_schedule` as tables.
template <class T>
struct list_problem {
  chunk_layout layout;
  /// The lanes of each stage.
  std::vector<std::vector<unit_lane>> lanes{};
  unit_times<T> times{};
  /// The activation bytes of a unit, by virtual stage and micro-batch.
  std::vector<std::int64_t> bytes{};
  /// The part of `bytes` that a unit keeps until the end of the gradients of the weights; the other
  /// bytes are freed before. Without a split backward pass the part equals `bytes`.
  std::vector<std::int64_t> weight_bytes{};
  /// The largest number of activation bytes that each stage may keep, and the time that each stage
  /// works.
  std::vector<std::int64_t> memory{};
  std::vector<T> busy{};
  /// True if the gradients of the weights are separate operations.
  bool splits_backward = true;

  [[nodiscard]] std::size_t virtual_stages() const { return layout.stages * layout.chunks; }
  [[nodiscard]] std::size_t index(std::size_t virtual_stage, std::size_t micro_batch) const {
    return virtual_stage * layout.micro_batches + micro_batch;
  }

  /// Returns the time of a transfer over a cut; zero if both sides of the cut lie on the same
  /// stage.
  [[nodiscard]] transfer_time<T> transfer_over(unit_times<T> const& of, std::size_t cut,
                                               std::uint32_t micro_batch) const {
    if (layout.stage_of(cut, micro_batch) == layout.stage_of(cut + 1, micro_batch)) return {};
    return of.transfer[index(cut, micro_batch)];
  }
};

/// Returns the sum of the times of all operations of a stage.
template <class T>
[[nodiscard]] T busy_time(list_problem<T> const& problem, std::size_t stage) {
  T busy{};
  for (unit_lane const& lane : problem.lanes[stage]) {
    for (std::uint32_t i = 0; i != lane.count; ++i) {
      auto const& time = problem.times.work[problem.index(lane.virtual_stage, lane.micro_batch(i))];
      busy += time.forward + time.backward + time.weight;
    }
  }
  return busy;
}

/// The times at which the inputs of the units arrive, by virtual stage and micro-batch; `missing`
/// until the input is sent.
template <class T>
struct unit_arrivals {
  static constexpr T missing = -1;

  std::vector<T> forward;
  std::vector<T> backward;

  /// Resets the times to the begin of a step: only the inputs of the first virtual stage have
  /// arrived.
  void reset(list_problem<T> const& problem) {
    std::size_t const units = problem.virtual_stages() * problem.layout.micro_batches;
    forward.assign(units, missing);
    backward.assign(units, missing);
    for (std::size_t m = 0; m != problem.layout.micro_batches; ++m) forward[m] = T{};
  }

  [[nodiscard]] T of(operation_kind kind, std::size_t unit) const {
    return kind == operation_kind::forward ? forward[unit] : backward[unit];
  }

  /// Records the end of the forward or backward pass of a unit: its data is sent to the next
  /// virtual stage of the pass. Returns this virtual stage, or the number of virtual stages if
  /// there is none.
  std::size_t pass_on(list_problem<T> const& problem, unit_times<T> const& times,
                      operation_kind kind, std::size_t virtual_stage, std::uint32_t micro_batch,
                      T end) {
    pass_chain const passes{problem.virtual_stages()};
    auto const next = passes.after({kind, virtual_stage});
    if (!next) return problem.virtual_stages();
    T arrival = end;
    if (next->virtual_stage != virtual_stage) {
      std::size_t const cut = std::min(virtual_stage, next->virtual_stage);
      auto const transfer = problem.transfer_over(times, cut, micro_batch);
      arrival += kind == operation_kind::forward ? transfer.forward : transfer.backward;
    }
    auto& inputs = next->kind == operation_kind::forward ? forward : backward;
    inputs[problem.index(next->virtual_stage, micro_batch)] = arrival;
    return next->virtual_stage;
  }
};

}  // namespace omnibal::inline v0::detail
