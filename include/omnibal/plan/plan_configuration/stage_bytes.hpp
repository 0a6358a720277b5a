// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the bytes of the stages of a step.

#include <omnibal/plan/detail/timed_runs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The size of a 1F1B schedule, or of an interleaved schedule if `chunks` is above 1. The number of
/// stages must then divide the number of micro-batches, so that a group has one micro-batch for
/// each stage.
struct schedule_size {
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;

  /// Returns the maximum number of units that a stage has in flight at its first backward pass; it
  /// equals the number of `peak_in_flight`.
  [[nodiscard]] std::int64_t units_in_flight(std::int64_t stage) const {
    std::int64_t const after = stages - stage;
    return std::min(micro_batches * chunks,
                    chunks == 1 ? after : 2 * after - 1 + (chunks - 1) * stages);
  }
};

/// Returns a lower bound of the bytes of the fullest stage. It counts the state of the stage and
/// the micro-batches in flight before its first backward pass.
[[nodiscard]] inline std::int64_t min_stage_bytes(std::vector<timed_run> const& runs,
                                                  std::vector<std::int64_t> const& boundaries,
                                                  schedule_size const& size) {
  std::vector<std::int64_t> state(boundaries.size() - 1, 0);
  std::vector<std::int64_t> kept(boundaries.size() - 1, 0);
  std::int64_t first = 0;
  std::size_t part = 0;
  for (timed_run const& run : runs) {
    std::int64_t const last = first + run.count;
    while (first != last) {
      while (boundaries[part + 1] == first) ++part;
      std::int64_t const count = std::min(last, boundaries[part + 1]) - first;
      state[part] += count * run.unit.state_bytes;
      kept[part] += count * run.unit.kept_bytes;
      first += count;
    }
  }
  std::int64_t fullest = 0;
  for (std::int64_t s = 0; s != size.stages; ++s) {
    std::int64_t bytes = 0;
    for (std::int64_t c = 0; c != size.chunks; ++c) {
      bytes += state[static_cast<std::size_t>(c * size.stages + s)];
    }
    std::int64_t left = size.units_in_flight(s);
    for (std::int64_t turn = 0; left > 0; ++turn) {
      std::int64_t const units = size.chunks == 1 ? left : std::min(left, size.stages);
      bytes += units * kept[static_cast<std::size_t>(turn % size.chunks * size.stages + s)];
      left -= units;
    }
    fullest = std::max(fullest, bytes);
  }
  return fullest;
}

}  // namespace omnibal::inline v0::detail
