// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output of schedules for trainers.

#include <omnibal/check.hpp>
#include <omnibal/detail/put_text.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>
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
  /// A row has the operations of a stage of the schedule, which PyTorch calls a rank. `2F7` is the
  /// forward pass of micro-batch 7 in the virtual stage 2, which PyTorch calls a stage; `B` is a
  /// whole backward pass, `I` the gradients of the inputs and `W` the gradients of the weights.
  ///
  /// Complexity: a call of `next` for each operation. Memory: the text of a row. Determinism:
  /// portable. Errors: the errors of the schedule; `std::invalid_argument` if the schedule is
  /// bidirectional, because PyTorch has one rank for each virtual stage.
  template <pipeline_schedule Schedule, std::output_iterator<char> Out>
  Out operator()(Schedule const& schedule, Out out) const {
    schedule.check();
    std::vector<std::size_t> ranks(schedule.stages * schedule.chunk_count(), unknown);
    std::size_t const units = schedule.micro_batches * schedule.chunk_count();
    std::size_t const operations = units * (Schedule::splits_backward ? 3 : 2);
    for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
      stage_progress done;
      std::string row;
      for (std::size_t i = 0; i != operations; ++i) {
        operation_kind const kind = schedule.next(stage, done);
        pipeline_unit const unit = detail::unit_of(schedule, stage, kind, count_of(done, kind)++);
        std::size_t const place = virtual_stage_of(schedule, stage, unit);
        check_rank(ranks[place], stage, place);
        row.append(i == 0 ? "" : ",").append(detail::to_text(place));
        row.append(letter<Schedule>(kind)).append(detail::to_text(unit.micro_batch));
      }
      detail::put_text(out, row.append("\n"));
    }
    return out;
  }

 private:
  static constexpr std::string_view name = "write_schedule";
  static constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] static std::uint32_t& count_of(stage_progress& done, operation_kind kind) {
    if (kind == operation_kind::forward) return done.forward;
    return kind == operation_kind::backward ? done.backward : done.weight;
  }
  template <class Schedule>
  [[nodiscard]] static std::string_view letter(operation_kind kind) {
    if (kind == operation_kind::forward) return "F";
    if (kind == operation_kind::weight) return "W";
    return Schedule::splits_backward ? "I" : "B";
  }
  static void check_rank(std::size_t& known, std::size_t stage, std::size_t place) {
    std::size_t const before = std::exchange(known, stage);
    if (before == unknown || before == stage) return;
    detail::throw_invalid(name, "virtual stage ", place, " lies on stage ", before,
                          " and on stage ", stage, ", must lie on one");
  }
};

/// Writes a schedule for PyTorch; see `write_schedule_fn`.
inline constexpr write_schedule_fn write_schedule{};

}  // namespace omnibal::inline v0
