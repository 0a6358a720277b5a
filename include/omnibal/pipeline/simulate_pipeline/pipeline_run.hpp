// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The loop over the operations of a simulated pipeline, and the state of its stages.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/pipeline/detail/pipeline_values.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The arrival times of the inputs of one direction, for each virtual stage and micro-batch.
template <class T>
class arrival_table {
 public:
  /// Sets all arrivals to `missing`.
  void reset(std::size_t stages, std::size_t micro_batches) {
    // The stride is an odd number of cache lines: rows whose distance is a power of two would share
    // few cache sets.
    constexpr std::size_t line = 64 / sizeof(T);
    stride_ = ((micro_batches + line - 1) / line | 1) * line;
    times_.assign(stages * stride_, missing);
  }

  [[nodiscard]] T& operator()(std::size_t stage, std::size_t micro_batch) {
    return times_[stage * stride_ + micro_batch];
  }

  static constexpr T missing = -1;
  /// The operation that needs the input has run.
  static constexpr T used = -2;
  /// Both the backward operation and the operation for the gradients of the weights have run.
  static constexpr T used_twice = -3;

 private:
  std::size_t stride_ = 0;
  std::vector<T> times_;
};

/// The state of a stage: the operations that it has begun, and the time at which the last one ends.
template <class T>
struct stage_state {
  stage_progress done{};
  T now{};
  T busy{};
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
};

template <class... Why>
[[noreturn, gnu::noinline]] void throw_unit(std::string_view function, operation_kind kind,
                                            std::uint32_t index, pipeline_unit unit, Why... why) {
  throw_invalid(function, "schedule.unit(", name_of(kind), ", ", index, ") is chunk ", unit.chunk,
                ", micro-batch ", unit.micro_batch, why...);
}

/// The sizes of a schedule, read once. The size of the memory of a run depends on them.
struct pipeline_shape {
  std::size_t stages;
  std::size_t chunks;
  std::size_t micro_batches;
};

template <class T>
struct run_memory {
  arrival_table<T> forward;
  arrival_table<T> backward;
  std::vector<stage_state<T>> stages;
};

template <class T, class Schedule, class Times, class Transfers, class Bytes>
class pipeline_run {
 public:
  pipeline_run(std::string_view function, Schedule const& schedule, pipeline_shape const& shape,
               Times const& times, Transfers const& transfers, Bytes const& bytes,
               run_memory<T>& memory)
      : function_(function),
        schedule_(schedule),
        shape_(shape),
        times_(times),
        transfers_(transfers),
        bytes_(bytes),
        memory_(memory),
        units_(shape.micro_batches * shape.chunks),
        last_stage_(shape.stages * shape.chunks - 1) {
    memory_.forward.reset(last_stage_ + 1, shape.micro_batches);
    memory_.backward.reset(last_stage_ + 1, shape.micro_batches);
    memory_.stages.assign(shape.stages, {});
    for (std::size_t m = 0; m != shape.micro_batches; ++m) memory_.forward(0, m) = T{};
  }

  /// Runs all operations. Writes them to `timeline` unless it is null.
  void run(timed_operation<T>* timeline) {
    timeline_ = timeline;
    std::size_t left = shape_.stages * operations_of_stage();
    while (left != 0) {
      std::size_t const before = left;
      // Forward operations advance from the first stage to the last, backward operations from the
      // last stage to the first.
      for (std::size_t stage = 0; stage != shape_.stages; ++stage) left -= advance(stage);
      for (std::size_t stage = shape_.stages; stage-- != 0;) left -= advance(stage);
      if (left == before) throw_deadlock();
    }
    check_counts();
  }

  [[nodiscard]] std::size_t operations_of_stage() const {
    return units_ * (Schedule::splits_backward ? 3 : 2);
  }

 private:
  /// Runs the operations that can run on a stage, in order. Returns their number.
  [[nodiscard]] std::size_t advance(std::size_t stage) {
    stage_state<T>& state = memory_.stages[stage];
    std::size_t const before = begun(state.done);
    for (std::size_t i = before; i != operations_of_stage(); ++i) {
      operation_kind const kind = schedule_.next(stage, state.done);
      if (kind == operation_kind::forward) {
        if (!run_forward(stage, state)) break;
      } else if (kind == operation_kind::backward) {
        if (!run_backward(stage, state)) break;
      } else {
        run_weight(stage, state);
      }
    }
    return begun(state.done) - before;
  }

  /// Returns the unit of an operation. Errors: `std::invalid_argument` if the schedule does not
  /// have the unit.
  [[nodiscard]] pipeline_unit unit_at(std::size_t stage, operation_kind kind,
                                      std::uint32_t index) const {
    pipeline_unit const unit = unit_of(schedule_, stage, kind, index);
    // The compiler removes the comparison with zero if the schedule has only one chunk.
    bool const is_chunk = unit.chunk == 0 || unit.chunk < shape_.chunks;
    if (!is_chunk || unit.micro_batch >= shape_.micro_batches) [[unlikely]] {
      throw_unknown_unit(stage, kind, index);
    }
    return unit;
  }
  /// Returns the virtual stage of a unit. Errors: `std::invalid_argument` if there is none.
  [[nodiscard]] std::size_t place_of(std::size_t stage, pipeline_unit const& unit) const {
    if constexpr (places_chunks<Schedule>) {
      std::size_t const place = schedule_.virtual_stage(stage, unit);
      if (place > last_stage_) [[unlikely]]
        throw_place(stage, unit, place);
      return place;
    } else {
      return unit.chunk * shape_.stages + stage;
    }
  }
  [[noreturn, gnu::noinline]] void throw_place(std::size_t stage, pipeline_unit const& unit,
                                               std::size_t place) const {
    throw_invalid(function_, "schedule.virtual_stage(", stage, ", chunk ", unit.chunk,
                  ", micro-batch ", unit.micro_batch, ") is ", place, ", there are ",
                  last_stage_ + 1, " virtual stages");
  }

  /// Returns true if a stage also runs this virtual stage for the micro-batch of `unit`.
  [[nodiscard]] bool lies_on(std::size_t stage, std::size_t virtual_stage,
                             pipeline_unit unit) const {
    if constexpr (places_chunks<Schedule>) {
      for (unit.chunk = 0; unit.chunk != shape_.chunks; ++unit.chunk) {
        if (schedule_.virtual_stage(stage, unit) == virtual_stage) return true;
      }
      return false;
    } else {
      return shape_.stages == 1;
    }
  }

  // The functions that throw compute the unit again, which costs less than keeping it in the loop.
  [[noreturn, gnu::noinline]] void throw_unknown_unit(std::size_t stage, operation_kind kind,
                                                      std::uint32_t index) const {
    throw_unit(function_, kind, index, unit_of(schedule_, stage, kind, index), ", there are ",
               shape_.chunks, " chunks and ", shape_.micro_batches, " micro-batches");
  }
  [[noreturn, gnu::noinline]] void throw_repeated_unit(std::size_t stage, operation_kind kind,
                                                       std::uint32_t index) const {
    throw_unit(function_, kind, index, unit_of(schedule_, stage, kind, index),
               ", which another index is too");
  }

  /// Returns false, because the input has not arrived. Errors: `std::invalid_argument` if the input
  /// has already been used.
  [[nodiscard, gnu::noinline]] bool wait(std::size_t stage, operation_kind kind,
                                         std::uint32_t index, T arrival) const {
    if (arrival == arrival_table<T>::missing) return false;
    throw_repeated_unit(stage, kind, index);
  }

  /// Throws unless each stage has run each unit the required number of times.
  void check_counts() const {
    for (std::size_t stage = 0; stage != shape_.stages; ++stage) {
      stage_progress const& done = memory_.stages[stage].done;
      if (done.forward == units_ && done.backward == units_) continue;
      throw_invalid(function_, "schedule.next(", stage, ") runs ", done.forward, " forward, ",
                    done.backward, " backward and ", done.weight, " weight of ", units_, " each");
    }
  }

  /// Throws with a message that names the inputs that the first stages wait for.
  [[noreturn, gnu::noinline]] void throw_deadlock() const {
    constexpr std::size_t max_named = 4;
    std::string text("the schedule does not end, its stages wait for each other: ");
    std::size_t named = 0;
    for (std::size_t stage = 0; stage != shape_.stages && named != max_named; ++stage) {
      stage_progress const& done = memory_.stages[stage].done;
      if (begun(done) == operations_of_stage()) continue;
      operation_kind const kind = schedule_.next(stage, done);
      std::uint32_t const index = kind == operation_kind::forward ? done.forward : done.backward;
      if (kind == operation_kind::weight || index >= units_) continue;
      auto const [chunk, micro_batch] = unit_at(stage, kind, index);
      text += joined_text(named++ == 0 ? "" : ", ", "stage ", stage, " waits for the input of ",
                          name_of(kind), " of micro-batch ", micro_batch);
      if (shape_.chunks != 1) text += joined_text(" in chunk ", chunk);
    }
    throw_invalid(function_, text);
  }

  [[nodiscard]] static std::size_t begun(stage_progress const& done) {
    return std::size_t{done.forward} + done.backward + done.weight;
  }

  [[nodiscard]] bool run_forward(std::size_t stage, stage_state<T>& state) {
    pipeline_unit const unit = unit_at(stage, operation_kind::forward, state.done.forward);
    std::size_t const virtual_stage = place_of(stage, unit);
    std::size_t const micro_batch = unit.micro_batch;
    T const arrival = memory_.forward(virtual_stage, micro_batch);
    if (arrival < T{}) return wait(stage, operation_kind::forward, state.done.forward, arrival);
    split_bytes const bytes = checked_bytes(function_, virtual_stage, micro_batch,
                                            value_at(bytes_, virtual_stage, micro_batch));
    checked_add(function_, "the sum of activation bytes", state.bytes, bytes.all);
    state.peak_bytes = std::max(state.peak_bytes, state.bytes);

    T const time = checked_value<T>(function_, "forward time", virtual_stage, micro_batch,
                                    value_at(times_, virtual_stage, micro_batch).forward);
    T const end = work(stage, state, operation_kind::forward, unit, arrival, time);
    ++state.done.forward;
    memory_.forward(virtual_stage, micro_batch) = arrival_table<T>::used;
    if (virtual_stage == last_stage_) {
      memory_.backward(virtual_stage, micro_batch) = end;
    } else {
      memory_.forward(virtual_stage + 1, micro_batch) =
          arrival_at(stage, virtual_stage + 1, unit, end, virtual_stage, "forward transfer",
                     [](auto const& transfer) { return transfer.forward; });
    }
    return true;
  }

  [[nodiscard]] bool run_backward(std::size_t stage, stage_state<T>& state) {
    pipeline_unit const unit = unit_at(stage, operation_kind::backward, state.done.backward);
    std::size_t const virtual_stage = place_of(stage, unit);
    std::size_t const micro_batch = unit.micro_batch;
    T const arrival = memory_.backward(virtual_stage, micro_batch);
    if (arrival < T{}) return wait(stage, operation_kind::backward, state.done.backward, arrival);
    auto const& times = value_at(times_, virtual_stage, micro_batch);
    T time =
        checked_value<T>(function_, "backward time", virtual_stage, micro_batch, times.backward);
    if constexpr (!Schedule::splits_backward) {
      checked_add(function_, "a backward time", time,
                  weight_time(times, virtual_stage, micro_batch));
      auto const bytes = value_at(bytes_, virtual_stage, micro_batch);
      free_bytes(state, all_bytes(bytes));
    } else if constexpr (has_split_bytes<value_of<Bytes>>) {
      auto const bytes = value_at(bytes_, virtual_stage, micro_batch);
      free_bytes(state, bytes.all);
      free_bytes(state, -static_cast<std::int64_t>(bytes.weight));
    }
    T const end = work(stage, state, operation_kind::backward, unit, arrival, time);
    ++state.done.backward;
    memory_.backward(virtual_stage, micro_batch) = arrival_table<T>::used;
    if (virtual_stage != 0) {
      memory_.backward(virtual_stage - 1, micro_batch) =
          arrival_at(stage, virtual_stage - 1, unit, end, virtual_stage - 1, "backward transfer",
                     [](auto const& transfer) { return transfer.backward; });
    }
    return true;
  }

  void run_weight(std::size_t stage, stage_state<T>& state) {
    if constexpr (!Schedule::splits_backward) throw_weight(function_, stage);
    pipeline_unit const unit = unit_at(stage, operation_kind::weight, state.done.weight);
    std::size_t const virtual_stage = place_of(stage, unit);
    T& arrival = memory_.backward(virtual_stage, unit.micro_batch);
    if (arrival != arrival_table<T>::used) throw_weight_of(stage);
    arrival = arrival_table<T>::used_twice;
    T const time = weight_time(value_at(times_, virtual_stage, unit.micro_batch), virtual_stage,
                               unit.micro_batch);
    free_bytes(state, weight_bytes(value_at(bytes_, virtual_stage, unit.micro_batch)));
    work(stage, state, operation_kind::weight, unit, state.now, time);
    ++state.done.weight;
  }

  [[noreturn, gnu::noinline]] static void throw_weight(std::string_view function,
                                                       std::size_t stage) {
    throw_invalid(function, "schedule.next(", stage,
                  ") is weight, but the schedule does not split the backward pass");
  }
  [[noreturn, gnu::noinline]] void throw_weight_of(std::size_t stage) const {
    std::uint32_t const index = memory_.stages[stage].done.weight;
    pipeline_unit const unit = unit_at(stage, operation_kind::weight, index);
    T const arrival = memory_.backward(place_of(stage, unit), unit.micro_batch);
    if (arrival == arrival_table<T>::used_twice)
      throw_repeated_unit(stage, operation_kind::weight, index);
    throw_invalid(function_, "schedule.next(", stage, ") is weight of micro-batch ",
                  unit.micro_batch, " in chunk ", unit.chunk, " before its backward has run");
  }

  /// Runs an operation of duration `time` at `arrival` or at the current time of the stage,
  /// whichever is later. Returns the end of the operation.
  T work(std::size_t stage, stage_state<T>& state, operation_kind kind, pipeline_unit unit,
         T arrival, T time) {
    T const begin = std::max(state.now, arrival);
    T end = begin;
    checked_add(function_, "the makespan", end, time);
    state.now = end;
    state.busy += time;
    if (timeline_ != nullptr) {
      timeline_[stage * operations_of_stage() + begun(state.done)] = {
          kind, static_cast<std::uint32_t>(stage), unit.chunk, unit.micro_batch, begin, end};
    }
    return end;
  }

  /// Returns the time at which the data of a unit arrives at an adjacent virtual stage.
  template <class Way>
  [[nodiscard]] T arrival_at(std::size_t stage, std::size_t virtual_stage,
                             pipeline_unit const& unit, T end, std::size_t cut,
                             std::string_view name, Way const& way) const {
    if (lies_on(stage, virtual_stage, unit)) return end;
    return sent(end, name, cut, unit.micro_batch, way);
  }

  /// Returns the time at which the data that is sent over a cut at `end` arrives.
  template <class Way>
  [[nodiscard]] T sent(T end, std::string_view name, std::size_t cut, std::size_t micro_batch,
                       Way const& way) const {
    auto const& transfer = value_at(transfers_, cut, micro_batch);
    T arrival = end;
    if constexpr (scalar_measure<std::remove_cvref_t<decltype(transfer)>>) {
      checked_add(function_, "the makespan", arrival,
                  checked_value<T>(function_, name, cut, micro_batch, transfer));
    } else {
      checked_add(function_, "the makespan", arrival,
                  checked_value<T>(function_, name, cut, micro_batch, way(transfer)));
    }
    return arrival;
  }

  template <class Value>
  [[nodiscard]] T weight_time(Value const& times, std::size_t virtual_stage,
                              std::size_t micro_batch) const {
    if constexpr (has_weight_time<Value>) {
      return checked_value<T>(function_, "weight time", virtual_stage, micro_batch, times.weight);
    } else {
      return T{};
    }
  }

  /// Subtracts bytes. The subtraction wraps around if a functor returns other bytes than before,
  /// because an overflow of signed integers would be undefined behavior.
  template <class Number>
  static void free_bytes(stage_state<T>& state, Number bytes) {
    state.bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(state.bytes) -
                                            static_cast<std::uint64_t>(bytes));
  }

  std::string_view function_;
  Schedule const& schedule_;
  pipeline_shape shape_;
  Times const& times_;
  Transfers const& transfers_;
  Bytes const& bytes_;
  run_memory<T>& memory_;
  std::size_t units_;
  std::size_t last_stage_;
  timed_operation<T>* timeline_ = nullptr;
};

}  // namespace omnibal::inline v0::detail
