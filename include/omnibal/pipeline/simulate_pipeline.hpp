// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Time and memory of a step of a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

template <class Source>
concept indexed_range =
    std::ranges::random_access_range<Source const> && std::ranges::sized_range<Source const>;

template <class Source>
concept operation_functor = std::regular_invocable<Source const&, std::size_t, std::size_t>;

/// Returns the value of `source` for a stage and a micro-batch.
template <class Source>
[[nodiscard]] constexpr auto value_at(Source const& source, std::size_t stage,
                                      std::size_t micro_batch) {
  if constexpr (operation_functor<Source>) {
    return std::invoke(source, stage, micro_batch);
  } else if constexpr (indexed_range<Source>) {
    auto const& of_stage = element_at(source, stage);
    if constexpr (indexed_range<std::remove_cvref_t<decltype(of_stage)>>) {
      return element_at(of_stage, micro_batch);
    } else {
      return of_stage;
    }
  } else {
    return source;
  }
}

template <class Source>
using value_of = std::remove_cvref_t<decltype(value_at(std::declval<Source const&>(), 0, 0))>;

template <class Value>
concept has_both_ways = requires(Value const& value) {
  requires scalar_measure<std::remove_cvref_t<decltype(value.forward)>>;
  requires scalar_measure<std::remove_cvref_t<decltype(value.backward)>>;
};

template <class Value>
concept has_weight_time = requires(Value const& value) {
  requires scalar_measure<std::remove_cvref_t<decltype(value.weight)>>;
};

template <class Value>
concept has_split_bytes = requires(Value const& value) {
  requires std::integral<std::remove_cvref_t<decltype(value.all)>>;
  requires std::integral<std::remove_cvref_t<decltype(value.weight)>>;
};

/// Returns the bytes that a unit keeps until the end of the gradients of the inputs.
template <class Value>
[[nodiscard]] constexpr auto all_bytes(Value const& value) {
  if constexpr (has_split_bytes<Value>) {
    return value.all;
  } else {
    return value;
  }
}
/// Returns the bytes that a unit keeps until the end of the gradients of the weights.
template <class Value>
[[nodiscard]] constexpr auto weight_bytes(Value const& value) {
  if constexpr (has_split_bytes<Value>) {
    return value.weight;
  } else {
    return value;
  }
}

/// The type of the times of a stage or of a transfer.
template <class Value>
struct time_type_of {
  using type = Value;
};
template <has_both_ways Value>
struct time_type_of<Value> {
  using type = working_weight<decltype(Value::forward), decltype(Value::backward)>;
};
template <has_both_ways Value>
  requires has_weight_time<Value>
struct time_type_of<Value> {
  using type =
      working_weight<decltype(Value::forward), decltype(Value::backward), decltype(Value::weight)>;
};

/// Throws unless a range has `count` values and each range inside it has `micro_batches` values.
/// Functors and single values are not checked.
template <class Source>
void check_value_count(std::string_view function, std::string_view argument, Source const& source,
                       std::size_t count, std::string_view places, std::size_t micro_batches) {
  if constexpr (!operation_functor<Source> && indexed_range<Source>) {
    check_size(function, argument, std::ranges::size(source), count, places);
    if constexpr (indexed_range<std::ranges::range_value_t<Source const>>) {
      for (std::size_t i = 0; i != count; ++i) {
        std::size_t const size = std::ranges::size(element_at(source, i));
        if (size == micro_batches) continue;
        check_size(function, joined_text(argument, "[", i, "]"), size, micro_batches,
                   "micro-batches");
      }
    }
  }
}

/// Throws for an invalid value. Not inlined, because otherwise the compiler does not compile the
/// loop over the operations into one function.
template <scalar_measure T>
[[noreturn, gnu::noinline]] void throw_value(std::string_view function, std::string_view name,
                                             std::size_t stage, std::size_t micro_batch, T value) {
  throw_invalid(function, name, " of stage ", stage, ", micro-batch ", micro_batch, " is ", value,
                ", must be finite, not negative and below 2^63");
}

/// Returns `value` converted to `Working`. Throws if the value is negative, not finite or too
/// large.
template <class Working, scalar_measure T>
[[nodiscard]] constexpr Working checked_value(std::string_view function, std::string_view name,
                                              std::size_t stage, std::size_t micro_batch, T value) {
  auto const result = static_cast<Working>(value);
  if (!is_valid_weight(value) || !is_valid_weight(result)) [[unlikely]] {
    throw_value(function, name, stage, micro_batch, value);
  }
  return result;
}

/// Returns the bytes of a unit as integers. Throws if a number is negative or too large, or if the
/// gradients of the weights keep more bytes than the unit has.
template <class Value>
[[nodiscard]] constexpr split_bytes checked_bytes(std::string_view function, std::size_t stage,
                                                  std::size_t micro_batch, Value const& value) {
  auto const checked = [&](std::string_view name, auto bytes) {
    return checked_value<std::int64_t>(function, name, stage, micro_batch, bytes);
  };
  split_bytes result{.all = checked("activation bytes", all_bytes(value))};
  result.weight = result.all;
  if constexpr (has_split_bytes<Value>) {
    result.weight = checked("activation bytes for the weights", value.weight);
    if (result.weight > result.all) {
      throw_invalid(function, "activation bytes for the weights of stage ", stage, ", micro-batch ",
                    micro_batch, " is ", result.weight, ", must be at most all activation bytes, ",
                    result.all);
    }
  }
  return result;
}

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

[[nodiscard]] inline std::string_view name_of(operation_kind kind) {
  if (kind == operation_kind::forward) return "forward";
  return kind == operation_kind::backward ? "backward" : "weight";
}

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

}  // namespace detail

/// Whether a simulation records its operations.
enum class timeline_policy { none, recorded };

struct simulate_pipeline_options {
  timeline_policy timeline = timeline_policy::none;
};

/// The times of stages for micro-batches, in one of four forms. One value with `forward`,
/// `backward` and optionally `weight`, such as `stage_time`, applies to all stages and
/// micro-batches. A range has a value for each virtual stage. A range of ranges has a value for
/// each virtual stage and micro-batch. A functor of a virtual stage and a micro-batch returns the
/// value.
template <class Times>
concept stage_times = detail::has_both_ways<detail::value_of<Times>>;

/// The times of transfers over cuts, in the same forms as `stage_times`. A value is a weight, or it
/// has `forward` and `backward`, such as `transfer_time`. Cut c is between the virtual stages c and
/// c + 1.
template <class Times>
concept transfer_times =
    scalar_measure<detail::value_of<Times>> || detail::has_both_ways<detail::value_of<Times>>;

/// The bytes of a micro-batch on a stage: an integer or a value with `all` and `weight`, such as
/// `split_bytes`, or ranges or a functor as in `stage_times`.
template <class Bytes>
concept activation_bytes = (std::integral<detail::value_of<Bytes>> &&
                            scalar_measure<detail::value_of<Bytes>>) ||
                           detail::has_split_bytes<detail::value_of<Bytes>>;

/// The type of the times of a simulation: `std::int64_t`, or `double` if any time is a
/// floating-point number.
template <stage_times Times, transfer_times Transfers>
using simulated_time =
    detail::working_weight<typename detail::time_type_of<detail::value_of<Times>>::type,
                           typename detail::time_type_of<detail::value_of<Transfers>>::type>;

/// The reusable memory of `simulate_pipeline`, and its last result.
template <scalar_measure T = std::int64_t>
class simulate_pipeline_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] simulation<T> const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct simulate_pipeline_fn;

  simulation<T> result_;
  detail::run_memory<T> memory_;
};

struct simulate_pipeline_fn {
  /// Simulates a step of a pipeline. Each stage runs its operations in the order of the schedule.
  /// An operation begins as soon as the stage is free and the inputs have arrived. Transfers delay
  /// their receiver, but no stage is busy during a transfer. There is no transfer between two
  /// virtual stages on the same stage. A stage keeps the activation bytes of a micro-batch from the
  /// begin of its forward pass to the end of its backward pass. If the schedule splits the backward
  /// pass, the stage keeps the bytes to the end of the gradients of the weights. With `split_bytes`
  /// the stage frees a part of the bytes at the end of the gradients of the inputs.
  ///
  /// Complexity: a few steps for each operation, in addition to the calls of the functors. Memory:
  /// 16 bytes for each pair of a virtual stage and a micro-batch; 32 bytes for each operation of a
  /// timeline. A workspace that has been used for a step of at least the same size avoids
  /// allocations. Determinism: portable for integers. Errors: `std::invalid_argument` if the sizes
  /// of the schedule are invalid, if ranges do not have the number of virtual stages, cuts or
  /// micro-batches, and if times or bytes are negative or not finite. It is also thrown if the
  /// schedule runs a unit twice or a unit that does not exist, and if its order is impossible. It
  /// is thrown as well if the schedule waits forever; the message names the stage and its missing
  /// input. Further errors: `std::overflow_error` if a time or the bytes of a stage exceed their
  /// type; `std::length_error` if micro-batches times chunks exceed 2^32 - 1.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes>
  simulation<simulated_time<Times, Transfers>> const& operator()(
      Schedule const& schedule, Times const& times, Transfers const& transfers, Bytes const& bytes,
      simulate_pipeline_options const& options,
      simulate_pipeline_workspace<simulated_time<Times, Transfers>>& workspace) const {
    using time_type = simulated_time<Times, Transfers>;
    detail::pipeline_shape const shape = checked_shape(schedule);
    check(shape, times, transfers, bytes);
    detail::pipeline_run<time_type, Schedule, Times, Transfers, Bytes> run(
        name, schedule, shape, times, transfers, bytes, workspace.memory_);
    simulation<time_type>& result = workspace.result_;
    if (options.timeline == timeline_policy::recorded) {
      result.timeline.resize(shape.stages * run.operations_of_stage());
      run.run(result.timeline.data());
    } else {
      result.timeline.clear();
      run.run(nullptr);
    }
    summarize(workspace.memory_.stages, result);
    return result;
  }

  /// Simulates a step in a new workspace. If transfers or activation bytes are not given, they are
  /// zero.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers = std::int64_t,
            activation_bytes Bytes = std::int64_t>
  [[nodiscard]] auto operator()(Schedule const& schedule, Times const& times,
                                Transfers const& transfers = {}, Bytes const& bytes = {},
                                simulate_pipeline_options const& options = {}) const {
    simulate_pipeline_workspace<simulated_time<Times, Transfers>> workspace;
    (*this)(schedule, times, transfers, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// Simulates a step in a given workspace with default options.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes, scalar_measure T>
    requires std::same_as<T, simulated_time<Times, Transfers>>
  auto operator()(Schedule const& schedule, Times const& times, Transfers const& transfers,
                  Bytes const& bytes, simulate_pipeline_workspace<T>& workspace) const
      -> simulation<T> const& {
    return (*this)(schedule, times, transfers, bytes, {}, workspace);
  }

  /// Simulates a step with activations of zero bytes.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            scalar_measure T>
    requires std::same_as<T, simulated_time<Times, Transfers>>
  auto operator()(Schedule const& schedule, Times const& times, Transfers const& transfers,
                  simulate_pipeline_workspace<T>& workspace) const -> simulation<T> const& {
    return (*this)(schedule, times, transfers, std::int64_t{0}, {}, workspace);
  }

  /// Simulates a step with transfers that take no time.
  template <pipeline_schedule Schedule, stage_times Times, scalar_measure T>
    requires std::same_as<T, simulated_time<Times, std::int64_t>>
  auto operator()(Schedule const& schedule, Times const& times,
                  simulate_pipeline_workspace<T>& workspace) const -> simulation<T> const& {
    return (*this)(schedule, times, std::int64_t{0}, std::int64_t{0}, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "simulate_pipeline";

  template <class Schedule>
  [[nodiscard]] static detail::pipeline_shape checked_shape(Schedule const& schedule) {
    schedule.check();
    detail::pipeline_shape const shape{schedule.stages, schedule.chunk_count(),
                                       schedule.micro_batches};
    detail::check_at_least_one(name, "schedule.stages", shape.stages);
    detail::check_at_least_one(name, "schedule.micro_batches", shape.micro_batches);
    detail::check_at_least_one(name, "schedule.chunk_count()", shape.chunks);
    detail::check_number(name, "schedule.micro_batches * schedule.chunk_count()",
                         shape.micro_batches * shape.chunks);
    detail::check_number(name, "schedule.stages * schedule.chunk_count()",
                         shape.stages * shape.chunks);
    return shape;
  }

  template <class Times, class Transfers, class Bytes>
  static void check(detail::pipeline_shape const& shape, Times const& times,
                    Transfers const& transfers, Bytes const& bytes) {
    std::size_t const batches = shape.micro_batches;
    std::size_t const stages = shape.stages * shape.chunks;
    detail::check_value_count(name, "times", times, stages, "virtual stages", batches);
    detail::check_value_count(name, "transfers", transfers, stages - 1, "cuts", batches);
    detail::check_value_count(name, "bytes", bytes, stages, "virtual stages", batches);
  }

  template <class T>
  static void summarize(std::vector<detail::stage_state<T>> const& stages, simulation<T>& result) {
    result.makespan = T{};
    result.busy.clear();
    result.peak_bytes.clear();
    double idle_stages = 0;
    for (auto const& stage : stages) {
      result.makespan = std::max(result.makespan, stage.now);
      result.busy.push_back(stage.busy);
      result.peak_bytes.push_back(stage.peak_bytes);
    }
    for (auto const& stage : stages) {
      idle_stages += static_cast<double>(result.makespan - stage.busy);
    }
    double const all = static_cast<double>(result.makespan) * static_cast<double>(stages.size());
    result.bubble_share = all > 0 ? idle_stages / all : 0.0;
  }
};

/// Simulates a step of a pipeline; see `simulate_pipeline_fn`.
inline constexpr simulate_pipeline_fn simulate_pipeline{};

}  // namespace omnibal::inline v0
