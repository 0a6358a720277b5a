// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output of schedules for trainers.

#include <omnibal/check.hpp>
#include <omnibal/detail/put_text.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct write_schedule_fn {
  /// Writes a schedule as CSV to an output iterator of `char` and returns its end. PyTorch reads
  /// the text as a schedule of `torch.distributed.pipelining` (`_load_csv`, format `compute_only`).
  /// Each row has the operations of one stage of the schedule; PyTorch calls it a rank. For
  /// example, `2F7` is the forward pass of micro-batch 7 in virtual stage 2; PyTorch calls a
  /// virtual stage a stage. The letter `B` is a whole backward pass, `I` the gradients of the
  /// inputs and `W` the gradients of the weights.
  ///
  /// Complexity: a call of `next` for each operation. Memory: the text of a row. Determinism:
  /// portable. Errors: the errors of the schedule; `std::invalid_argument` if the schedule is
  /// bidirectional, because PyTorch has one rank for each virtual stage, or if it names a virtual
  /// stage that does not exist.
  template <pipeline_schedule Schedule, std::output_iterator<char> Out>
  Out operator()(Schedule const& schedule, Out out) const {
    schedule.check();
    std::vector<std::size_t> ranks(schedule.stages * schedule.chunk_count(), unknown);
    for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
      std::string row;
      detail::for_each_operation(schedule, stage, [&](operation_kind kind, pipeline_unit unit) {
        std::size_t const place = virtual_stage_of(schedule, stage, unit);
        check_place(ranks, stage, place);
        row.append(row.empty() ? "" : ",").append(detail::to_text(place));
        row.append(letter<Schedule>(kind)).append(detail::to_text(unit.micro_batch));
      });
      detail::put_text(out, row.append("\n"));
    }
    return out;
  }

 private:
  static constexpr std::string_view name = "write_schedule";
  static constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

  template <class Schedule>
  [[nodiscard]] static std::string_view letter(operation_kind kind) {
    if (kind == operation_kind::forward) return "F";
    if (kind == operation_kind::weight) return "W";
    return Schedule::splits_backward ? "I" : "B";
  }
  static void check_place(std::vector<std::size_t>& ranks, std::size_t stage, std::size_t place) {
    if (place >= ranks.size()) {
      detail::throw_invalid(name, "a unit of stage ", stage, " is virtual stage ", place,
                            ", there are ", ranks.size());
    }
    std::size_t const before = std::exchange(ranks[place], stage);
    if (before == unknown || before == stage) return;
    detail::throw_invalid(name, "virtual stage ", place, " lies on stage ", before,
                          " and on stage ", stage, ", must lie on one");
  }
};

/// Writes a schedule for PyTorch; see `write_schedule_fn`.
inline constexpr write_schedule_fn write_schedule{};

}  // namespace omnibal::inline v0
