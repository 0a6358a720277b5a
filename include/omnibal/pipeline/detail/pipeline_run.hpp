#pragma once

/// \file
/// Runs the operations of a schedule, each as soon as what it needs has arrived.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/detail/operation_values.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulation.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Out of line, as it would keep the loop over the operations from being compiled into one.
template <weight T>
[[noreturn, gnu::noinline]] void throw_value(std::string_view function, std::string_view name,
                                             std::size_t stage, std::size_t micro_batch, T value) {
  throw_invalid(function, std::string(name) + " of stage " + to_text(stage) + ", micro-batch " +
                              to_text(micro_batch) + " is " + to_text(value) +
                              ", must be finite, not negative and below 2^63");
}

/// `value` as a number to compute with; throws where it is negative, not finite or too large.
template <class Working, weight T>
[[nodiscard]] constexpr Working checked_value(std::string_view function, std::string_view name,
                                              std::size_t stage, std::size_t micro_batch, T value) {
  auto const result = static_cast<Working>(value);
  if (!is_valid_weight(value) || !is_valid_weight(result)) [[unlikely]] {
    throw_value(function, name, stage, micro_batch, value);
  }
  return result;
}

/// When the inputs of the operations of one direction arrive, for each virtual stage and
/// micro-batch.
template <class T>
class arrival_table {
 public:
  /// No arrivals yet.
  void reset(std::size_t stages, std::size_t micro_batches) {
    // An odd number of cache lines, as rows a power of two apart would share few of them.
    constexpr std::size_t line = 64 / sizeof(T);
    stride_ = ((micro_batches + line - 1) / line | 1) * line;
    times_.assign(stages * stride_, missing);
  }

  [[nodiscard]] T& operator()(std::size_t stage, std::size_t micro_batch) {
    return times_[stage * stride_ + micro_batch];
  }

  static constexpr T missing = -1;

 private:
  std::size_t stride_ = 0;
  std::vector<T> times_;
};

/// What a stage has done so far.
template <class T>
struct stage_state {
  stage_progress done{};
  T now{};
  T busy{};
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
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
  pipeline_run(std::string_view function, Schedule const& schedule, Times const& times,
               Transfers const& transfers, Bytes const& bytes, run_memory<T>& memory)
      : function_(function),
        schedule_(schedule),
        times_(times),
        transfers_(transfers),
        bytes_(bytes),
        memory_(memory),
        units_(schedule.micro_batches * schedule.chunk_count()),
        last_stage_(schedule.stages * schedule.chunk_count() - 1) {
    memory_.forward.reset(last_stage_ + 1, schedule.micro_batches);
    memory_.backward.reset(last_stage_ + 1, schedule.micro_batches);
    memory_.stages.assign(schedule.stages, {});
    for (std::size_t m = 0; m != schedule.micro_batches; ++m) memory_.forward(0, m) = T{};
  }

  /// Fills `timeline` unless it is null.
  void run(timed_operation<T>* timeline) {
    timeline_ = timeline;
    std::size_t left = schedule_.stages * operations_of_stage();
    while (left != 0) {
      std::size_t const before = left;
      // Up with what goes forward, down with what goes backward.
      for (std::size_t stage = 0; stage != schedule_.stages; ++stage) left -= advance(stage);
      for (std::size_t stage = schedule_.stages; stage-- != 0;) left -= advance(stage);
      if (left == before) {
        throw_invalid(function_, "the operations of the schedule wait for each other for ever");
      }
    }
  }

  [[nodiscard]] std::size_t operations_of_stage() const {
    return units_ * (Schedule::splits_backward ? 3 : 2);
  }

 private:
  /// Runs what can run on a stage; the number of operations.
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

  [[nodiscard]] static std::size_t begun(stage_progress const& done) {
    return std::size_t{done.forward} + done.backward + done.weight;
  }

  [[nodiscard]] bool run_forward(std::size_t stage, stage_state<T>& state) {
    pipeline_unit const unit = schedule_.unit(operation_kind::forward, state.done.forward);
    std::size_t const virtual_stage = unit.chunk * schedule_.stages + stage;
    std::size_t const micro_batch = unit.micro_batch;
    T const arrival = memory_.forward(virtual_stage, micro_batch);
    if (arrival == arrival_table<T>::missing) return false;
    auto const bytes =
        checked_value<std::int64_t>(function_, "activation bytes", virtual_stage, micro_batch,
                                    value_at(bytes_, virtual_stage, micro_batch));
    checked_add(function_, "the sum of activation bytes", state.bytes, bytes);
    state.peak_bytes = std::max(state.peak_bytes, state.bytes);

    T const time = checked_value<T>(function_, "forward time", virtual_stage, micro_batch,
                                    value_at(times_, virtual_stage, micro_batch).forward);
    T const end = work(stage, state, operation_kind::forward, unit, arrival, time);
    ++state.done.forward;
    if (virtual_stage == last_stage_) {
      memory_.backward(virtual_stage, micro_batch) = end;
    } else {
      memory_.forward(virtual_stage + 1, micro_batch) =
          sent(end, "forward transfer", virtual_stage, micro_batch,
               [](auto const& transfer) { return transfer.forward; });
    }
    return true;
  }

  [[nodiscard]] bool run_backward(std::size_t stage, stage_state<T>& state) {
    pipeline_unit const unit = schedule_.unit(operation_kind::backward, state.done.backward);
    std::size_t const virtual_stage = unit.chunk * schedule_.stages + stage;
    std::size_t const micro_batch = unit.micro_batch;
    T const arrival = memory_.backward(virtual_stage, micro_batch);
    if (arrival == arrival_table<T>::missing) return false;
    auto const& times = value_at(times_, virtual_stage, micro_batch);
    T time =
        checked_value<T>(function_, "backward time", virtual_stage, micro_batch, times.backward);
    if constexpr (!Schedule::splits_backward) {
      checked_add(function_, "a backward time", time,
                  weight_time(times, virtual_stage, micro_batch));
      free_bytes(state, virtual_stage, micro_batch);
    }
    T const end = work(stage, state, operation_kind::backward, unit, arrival, time);
    ++state.done.backward;
    if (virtual_stage != 0) {
      memory_.backward(virtual_stage - 1, micro_batch) =
          sent(end, "backward transfer", virtual_stage - 1, micro_batch,
               [](auto const& transfer) { return transfer.backward; });
    }
    return true;
  }

  void run_weight(std::size_t stage, stage_state<T>& state) {
    pipeline_unit const unit = schedule_.unit(operation_kind::weight, state.done.weight);
    std::size_t const virtual_stage = unit.chunk * schedule_.stages + stage;
    T const time = weight_time(value_at(times_, virtual_stage, unit.micro_batch), virtual_stage,
                               unit.micro_batch);
    free_bytes(state, virtual_stage, unit.micro_batch);
    work(stage, state, operation_kind::weight, unit, state.now, time);
    ++state.done.weight;
  }

  /// The end of an operation that lasts for `time` from its arrival on or from now on.
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

  /// When the next stage has what is sent at `end`.
  template <class Way>
  [[nodiscard]] T sent(T end, std::string_view name, std::size_t cut, std::size_t micro_batch,
                       Way const& way) const {
    auto const& transfer = value_at(transfers_, cut, micro_batch);
    T arrival = end;
    if constexpr (weight<std::remove_cvref_t<decltype(transfer)>>) {
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

  void free_bytes(stage_state<T>& state, std::size_t virtual_stage, std::size_t micro_batch) const {
    state.bytes -= static_cast<std::int64_t>(value_at(bytes_, virtual_stage, micro_batch));
  }

  std::string_view function_;
  Schedule const& schedule_;
  Times const& times_;
  Transfers const& transfers_;
  Bytes const& bytes_;
  run_memory<T>& memory_;
  std::size_t units_;
  std::size_t last_stage_;
  timed_operation<T>* timeline_ = nullptr;
};

}  // namespace omnibal::inline v0::detail
