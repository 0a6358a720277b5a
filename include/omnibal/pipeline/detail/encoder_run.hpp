// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times and the memory of lists of operations of a pipeline with an encoder.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/detail/encoder_arrivals.hpp>
#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Intervals in which a device keeps bytes. Bytes that are freed at a time make room for bytes that
/// are kept from the same time on.
template <class T>
class byte_intervals {
 public:
  void keep(T begin, T end, std::int64_t bytes) {
    if (begin == end || bytes == 0) return;
    changes_.push_back({begin, bytes});
    changes_.push_back({end, -bytes});
  }

  /// Returns the largest number of bytes at any time. Errors: `std::overflow_error` if a sum
  /// exceeds its type.
  [[nodiscard]] std::int64_t peak(std::string_view function) {
    // Negative changes come first at equal times.
    std::ranges::sort(changes_);
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (auto const& [time, change] : changes_) {
      checked_add(function, "the sum of bytes", now, change);
      most = std::max(most, now);
    }
    return most;
  }

 private:
  std::vector<std::pair<T, std::int64_t>> changes_;
};

/// Runs lists of operations. Each device runs its list in order and begins each operation as soon
/// as its inputs have arrived.
template <class T>
class encoder_run {
 public:
  encoder_run(std::string_view function, encoder_problem<T> const& problem,
              placed_lists const& lists)
      : function_(function), problem_(problem), lists_(lists), arrivals_(problem) {}

  [[nodiscard]] encoder_simulation<T> run() {
    run_devices();
    for (std::size_t d = 0; d != problem_.devices; ++d) check_end(d);
    check_returned();
    return result();
  }

  /// Runs the lists without an error if they do not end. Returns true if all operations have run;
  /// `makespan()` is valid only then. Precondition: the lists have all operations.
  [[nodiscard]] bool try_run() {
    run_devices();
    for (std::size_t d = 0; d != problem_.devices; ++d) {
      if (devices_[d].next != lists_[d].size()) return false;
    }
    return true;
  }
  [[nodiscard]] T makespan() const {
    T latest{};
    for (device_state const& state : devices_) latest = std::max(latest, state.now);
    return latest;
  }

  [[nodiscard]] encoder_simulation<T> result() {
    encoder_simulation<T> result;
    result.makespan = makespan();
    double idle = 0;
    for (std::size_t d = 0; d != problem_.devices; ++d) {
      result.busy.push_back(devices_[d].busy);
      idle += static_cast<double>(result.makespan - devices_[d].busy);
      append(result.language, language_[d]);
      append(result.encoder, encoder_[d]);
    }
    double const all = static_cast<double>(result.makespan) * static_cast<double>(problem_.devices);
    result.bubble_share = all > 0 ? idle / all : 0.0;
    measure_bytes(result);
    return result;
  }

 private:
  void run_devices() {
    check_size(function_, "lists", lists_.size(), problem_.devices, "devices");
    devices_.resize(problem_.devices);
    language_.resize(problem_.devices);
    encoder_.resize(problem_.devices);
    has_returned_.assign(problem_.work.size(), false);
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (std::size_t d = 0; d != problem_.devices; ++d) is_moving |= advance(d);
      for (std::size_t d = problem_.devices; d-- != 0;) is_moving |= advance(d);
    }
  }

  struct device_state {
    std::size_t next = 0;
    /// The number of operations of the language model that have run.
    std::size_t language = 0;
    T now{};
    T busy{};
  };

  /// Runs the operations that can run on a device, in order. Returns true if at least one ran.
  bool advance(std::size_t d) {
    device_state& state = devices_[d];
    std::size_t const before = state.next;
    while (state.next != lists_[d].size() && run_next(d, lists_[d][state.next])) ++state.next;
    return state.next != before;
  }

  /// Runs the next operation of a device. Returns false if one of its inputs has not been sent.
  bool run_next(std::size_t d, placed_operation const& one) {
    if (one.part == model_part::language) return run_language(d, one);
    if (one.kind == operation_kind::forward) return run_forward(d, one);
    return run_backward(d, one);
  }

  bool run_language(std::size_t d, placed_operation const& one) {
    std::size_t const index = devices_[d].language;
    std::size_t const count = d < problem_.stages ? problem_.language[d].size() : 0;
    if (index == count) throw_operation(d, one, "is not in the schedule");
    language_operation<T> const& operation = problem_.language[d][index];
    bool const is_next = one.kind == operation.kind && one.chunk == operation.chunk &&
                         one.micro_batch == operation.micro_batch;
    if (!is_next) throw_operation(d, one, "is not the next one of the schedule");
    T const arrival = arrivals_.of(operation);
    if (arrival == encoder_arrivals<T>::missing) return false;
    T const end = work(d, one, arrival, operation.time, language_[d]);
    arrivals_.end(operation, end);
    ++devices_[d].language;
    return true;
  }

  [[nodiscard]] std::size_t piece_of(std::size_t d, placed_operation const& one) const {
    if (one.micro_batch >= problem_.batches || one.chunk >= problem_.pieces) {
      throw_operation(d, one, "does not exist");
    }
    return problem_.piece(one.micro_batch, one.chunk);
  }

  bool run_forward(std::size_t d, placed_operation const& one) {
    std::size_t const piece = piece_of(d, one);
    if (!problem_.is_encoder_device(d))
      throw_operation(d, one, "is on a device without the encoder");
    if (arrivals_.device_of(piece)) throw_operation(d, one, "is listed twice");
    T const end = work(d, one, T{}, problem_.work[piece].forward, encoder_[d]);
    arrivals_.end_forward(piece, static_cast<std::uint32_t>(d), end);
    return true;
  }

  bool run_backward(std::size_t d, placed_operation const& one) {
    std::size_t const piece = piece_of(d, one);
    if (one.kind != operation_kind::backward) throw_operation(d, one, "does not exist");
    if (arrivals_.device_of(piece) != d) {
      throw_operation(d, one, "has no forward pass before it on its device");
    }
    if (has_returned_[piece]) throw_operation(d, one, "is listed twice");
    T const arrival = arrivals_.of_gradients(piece);
    if (arrival == encoder_arrivals<T>::missing) return false;
    work(d, one, arrival, problem_.work[piece].backward, encoder_[d]);
    has_returned_[piece] = true;
    return true;
  }

  T work(std::size_t d, placed_operation const& one, T arrival, T time,
         std::vector<timed_operation<T>>& timeline) {
    device_state& state = devices_[d];
    T const begin = std::max(state.now, arrival);
    state.now = begin + time;
    state.busy += time;
    timeline.push_back({.kind = one.kind,
                        .stage = static_cast<std::uint32_t>(d),
                        .chunk = one.chunk,
                        .micro_batch = one.micro_batch,
                        .begin = begin,
                        .end = state.now});
    return state.now;
  }

  [[nodiscard]] static std::string_view part_name(model_part part) {
    return part == model_part::language ? " of the language model" : " of the encoder";
  }
  [[noreturn]] void throw_operation(std::size_t d, placed_operation const& one,
                                    std::string_view why) const {
    throw_invalid(function_, "lists[", d, "][", devices_[d].next, "], ", name_of(one.kind),
                  part_name(one.part), " for micro-batch ", one.micro_batch, ", ",
                  one.part == model_part::language ? "chunk " : "piece ", one.chunk, ", ", why);
  }

  /// Throws unless a device has run its whole list, and the list had all operations of the language
  /// model.
  void check_end(std::size_t d) const {
    device_state const& state = devices_[d];
    if (state.next != lists_[d].size()) {
      throw_operation(d, lists_[d][state.next], "waits forever for its input");
    }
    if (d < problem_.stages) {
      check_size(function_, joined_text("lists[", d, "]"), state.language,
                 problem_.language[d].size(), "operations of the language model");
    }
  }
  void check_returned() const {
    for (std::size_t piece = 0; piece != problem_.work.size(); ++piece) {
      if (has_returned_[piece]) continue;
      throw_invalid(function_, "the lists have no backward pass of the encoder for micro-batch ",
                    piece / problem_.pieces, ", piece ", piece % problem_.pieces);
    }
  }

  static void append(std::vector<timed_operation<T>>& to,
                     std::vector<timed_operation<T>> const& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  void measure_bytes(encoder_simulation<T>& result) const {
    std::vector<byte_intervals<T>> kept(problem_.devices);
    auto const unit_of_language = [&](std::size_t d, std::size_t i) {
      language_operation<T> const& one = problem_.language[d][i];
      return problem_.unit(one.virtual_stage, one.micro_batch);
    };
    std::vector<T> begins(problem_.stage_of.size());
    // The end of the backward pass of each unit; with a split backward pass, the end of the
    // gradients of the inputs.
    std::vector<T> ends(problem_.stage_of.size());
    for (std::size_t s = 0; s != problem_.stages; ++s) {
      for (std::size_t i = 0; i != language_[s].size(); ++i) {
        auto const& one = language_[s][i];
        std::size_t const unit = unit_of_language(s, i);
        if (one.kind == operation_kind::forward) begins[unit] = one.begin;
        if (one.kind == operation_kind::backward) ends[unit] = one.end;
        split_bytes const& bytes = problem_.language[s][i].bytes;
        std::int64_t const weight = problem_.splits_backward ? bytes.weight : 0;
        if (one.kind == operation_kind::backward) {
          kept[s].keep(begins[unit], one.end, bytes.all - weight);
        } else if (one.kind == operation_kind::weight) {
          kept[s].keep(begins[unit], one.end, weight);
        }
      }
    }
    std::vector<T> starts(problem_.work.size());
    for (std::size_t d = 0; d != problem_.devices; ++d) {
      for (auto const& one : encoder_[d]) {
        std::size_t const m = one.micro_batch;
        std::size_t const piece = problem_.piece(m, one.chunk);
        auto const& work = problem_.work[piece];
        if (one.kind == operation_kind::forward) {
          starts[piece] = one.begin;
          for (std::uint32_t const reader : problem_.readers) {
            kept[problem_.reader_stage(reader, m)].keep(one.end, begins[problem_.unit(reader, m)],
                                                        work.output_bytes);
          }
          continue;
        }
        kept[d].keep(starts[piece], one.end, work.activation_bytes);
        // The last reader runs its backward pass first.
        kept[d].keep(ends[problem_.unit(problem_.readers.back(), m)], one.end, work.output_bytes);
      }
    }
    for (auto& of_device : kept) result.peak_bytes.push_back(of_device.peak(function_));
  }
  std::string_view function_;
  encoder_problem<T> const& problem_;
  placed_lists const& lists_;
  encoder_arrivals<T> arrivals_;
  std::vector<device_state> devices_;
  /// The timed operations of each device, for the language model and for the encoder.
  std::vector<std::vector<timed_operation<T>>> language_;
  std::vector<std::vector<timed_operation<T>>> encoder_;
  std::vector<bool> has_returned_;
};

}  // namespace omnibal::inline v0::detail
