// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reads a schedule and the work of an encoder into tables. Input: the arguments of
/// `simulate_encoder` and `place_encoder`. Output: a checked `encoder_problem`.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/detail/pipeline_values.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The work of the encoder on a piece of a micro-batch.
template <class T>
struct encoder_piece {
  T forward{};
  T backward{};
  transfer_time<T> transfer{};
  std::int64_t activation_bytes = 0;
  std::int64_t output_bytes = 0;
};

/// An operation of the language model.
template <class T>
struct language_operation {
  operation_kind kind = operation_kind::forward;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  std::size_t virtual_stage = 0;
  T time{};
  /// The bytes that a stage keeps from the begin of the forward pass on.
  split_bytes bytes{};
  /// The begin of the operation in a step without the encoder.
  T begin{};
};

/// A language model in a pipeline and the work of an encoder, as tables.
template <class T>
struct encoder_problem {
  std::size_t stages = 1;
  /// The number of devices: the stages, and the additional devices of the encoder.
  std::size_t devices = 1;
  std::size_t virtual_stages = 1;
  std::size_t batches = 1;
  std::size_t pieces = 1;
  bool splits_backward = false;
  /// The operations of the language model on each stage, in order.
  std::vector<std::vector<language_operation<T>>> language{};
  /// The stage of each unit, by virtual stage and micro-batch.
  std::vector<std::uint32_t> stage_of{};
  /// The transfers over the cut after a virtual stage, by virtual stage and micro-batch.
  std::vector<transfer_time<T>> transfers{};
  /// The work of the encoder, by micro-batch and piece.
  std::vector<encoder_piece<T>> work{};
  std::vector<std::uint32_t> encoder_devices{};
  /// The virtual stages that read features, in ascending order.
  std::vector<std::uint32_t> readers{};
  /// The makespan of a step without the encoder, and the peak of the bytes of each stage.
  T language_makespan{};
  std::vector<std::int64_t> language_peaks{};

  [[nodiscard]] std::size_t unit(std::size_t virtual_stage, std::size_t micro_batch) const {
    return virtual_stage * batches + micro_batch;
  }
  /// Returns the index of piece j of a micro-batch in `work`.
  [[nodiscard]] std::size_t piece(std::size_t micro_batch, std::size_t j) const {
    return micro_batch * pieces + j;
  }
  [[nodiscard]] bool is_encoder_device(std::size_t device) const {
    return std::ranges::find(encoder_devices, device) != encoder_devices.end();
  }
  [[nodiscard]] std::uint32_t reader_stage(std::uint32_t reader, std::size_t micro_batch) const {
    return stage_of[unit(reader, micro_batch)];
  }
};

/// Returns the part of `value` that belongs to a piece. The parts of integers differ by at most
/// one.
template <class T>
[[nodiscard]] T part_of(T value, std::size_t piece, std::size_t pieces) {
  auto const count = static_cast<T>(pieces);
  if constexpr (std::integral<T>) {
    return value / count + (static_cast<T>(piece) < value % count ? 1 : 0);
  } else {
    return value / count;
  }
}

/// Reads the work of the encoder into a problem.
template <class T, class Given>
class encoder_reader {
 public:
  encoder_reader(std::string_view function, encoder_work<Given> const& encoder,
                 encoder_problem<T>& problem)
      : function_(function), encoder_(encoder), problem_(problem) {}

  /// Reads and checks all values, and adds all times to `sum`. Throws if the sum exceeds the range
  /// of its type.
  void read(T& sum) {
    check_sizes();
    read_devices();
    read_readers();
    problem_.pieces = encoder_.pieces;
    for (std::size_t m = 0; m != problem_.batches; ++m) read_batch(m, sum);
  }

 private:
  void check_sizes() const {
    std::size_t const batches = problem_.batches;
    check_size(function_, "encoder.times", encoder_.times.size(), batches, "micro-batches");
    auto const check_optional = [&](std::string_view name, std::size_t size) {
      if (size != 0) check_size(function_, name, size, batches, "micro-batches");
    };
    check_optional("encoder.transfers", encoder_.transfers.size());
    check_optional("encoder.activation_bytes", encoder_.activation_bytes.size());
    check_optional("encoder.output_bytes", encoder_.output_bytes.size());
    check_at_least_one(function_, "encoder.pieces", encoder_.pieces);
    check_number(
        function_, "micro_batches * encoder.pieces",
        checked_product(function_, "micro_batches * encoder.pieces", batches, encoder_.pieces));
  }

  void read_devices() {
    problem_.encoder_devices = encoder_.devices;
    auto& devices = problem_.encoder_devices;
    if (devices.empty()) {
      devices.resize(problem_.stages);
      std::iota(devices.begin(), devices.end(), std::uint32_t{0});
    }
    // The encoder names every device above the stages, so there are at most this many devices.
    std::size_t const limit = problem_.stages + devices.size();
    problem_.devices = problem_.stages;
    std::vector<bool> named(limit, false);
    for (std::size_t i = 0; i != devices.size(); ++i) {
      if (devices[i] >= limit) {
        throw_invalid(function_, "encoder.devices[", i, "] is ", devices[i],
                      ", devices behind the ", problem_.stages,
                      " stages must have the next numbers");
      }
      if (named[devices[i]]) {
        throw_invalid(function_, "encoder.devices[", i, "] is ", devices[i],
                      ", which is named twice");
      }
      named[devices[i]] = true;
      problem_.devices = std::max(problem_.devices, std::size_t{devices[i]} + 1);
    }
  }

  void read_readers() {
    if (encoder_.readers.empty()) {
      throw_invalid(function_, "encoder.readers is empty, no virtual stage reads the features");
    }
    for (std::size_t i = 0; i != encoder_.readers.size(); ++i) {
      if (encoder_.readers[i] < problem_.virtual_stages) continue;
      throw_invalid(function_, "encoder.readers[", i, "] is ", encoder_.readers[i], ", there are ",
                    problem_.virtual_stages, " virtual stages");
    }
    problem_.readers = encoder_.readers;
    std::ranges::sort(problem_.readers);
    auto const twice = std::ranges::adjacent_find(problem_.readers);
    if (twice == problem_.readers.end()) return;
    throw_invalid(function_, "encoder.readers has virtual stage ", *twice, " twice");
  }

  void read_batch(std::size_t m, T& sum) {
    auto const time = [&](std::string_view name, auto value) {
      check_weight(function_, joined_text("encoder.times[", m, "].", name), value);
      return checked_time(m, value);
    };
    auto const& given = encoder_.times[m];
    T const forward = time("forward", given.forward);
    T backward = time("backward", given.backward);
    checked_add(function_, "a backward time of the encoder", backward,
                time("weight", given.weight));
    transfer_time<T> transfer{};
    if (!encoder_.transfers.empty()) {
      auto const& [there, back] = encoder_.transfers[m];
      check_weight(function_, joined_text("encoder.transfers[", m, "].forward"), there);
      check_weight(function_, joined_text("encoder.transfers[", m, "].backward"), back);
      transfer = {checked_time(m, there), checked_time(m, back)};
    }
    for (T const one : std::array{forward, backward, transfer.forward, transfer.backward}) {
      checked_add(function_, "the sum of all times", sum, one);
    }
    std::int64_t const kept = bytes_of("encoder.activation_bytes", encoder_.activation_bytes, m);
    std::int64_t const output = bytes_of("encoder.output_bytes", encoder_.output_bytes, m);
    for (std::size_t j = 0; j != encoder_.pieces; ++j) {
      auto const part = [&](auto value) { return part_of(value, j, encoder_.pieces); };
      problem_.work.push_back({.forward = part(forward),
                               .backward = part(backward),
                               .transfer = {part(transfer.forward), part(transfer.backward)},
                               .activation_bytes = part(kept),
                               .output_bytes = part(output)});
    }
  }

  template <class Value>
  [[nodiscard]] T checked_time(std::size_t m, Value value) const {
    return checked_value<T>(function_, "encoder time", 0, m, value);
  }

  [[nodiscard]] std::int64_t bytes_of(std::string_view name, std::vector<std::int64_t> const& bytes,
                                      std::size_t m) {
    if (bytes.empty()) return 0;
    check_weight(function_, name, m, bytes[m]);
    // Features may be kept on the stage of every reader, and their gradients on the device of the
    // encoder.
    std::size_t const copies = encoder_.readers.size() + 1;
    std::int64_t const all = checked_product(function_, "the sum of bytes", bytes[m], copies);
    checked_add(function_, "the sum of bytes", byte_sum_, all);
    return bytes[m];
  }

  std::string_view function_;
  encoder_work<Given> const& encoder_;
  encoder_problem<T>& problem_;
  std::int64_t byte_sum_ = 0;
};

/// Returns the time of an operation of the language model. If the backward pass is not split, the
/// gradients of the weights are a part of it.
template <class T, bool SplitsBackward, class Time>
[[nodiscard]] T language_time(Time const& work, operation_kind kind) {
  if (kind == operation_kind::forward) return static_cast<T>(work.forward);
  if constexpr (has_weight_time<Time>) {
    auto const weight = static_cast<T>(work.weight);
    if (kind == operation_kind::weight) return weight;
    return SplitsBackward ? static_cast<T>(work.backward) : static_cast<T>(work.backward) + weight;
  } else {
    return kind == operation_kind::backward ? static_cast<T>(work.backward) : T{};
  }
}

/// Reads the transfers between different stages, and adds their times to `sum`. Precondition:
/// `problem` has the stage of each unit.
template <class T, class Transfers>
void read_transfers(std::string_view function, Transfers const& transfers,
                    encoder_problem<T>& problem, T& sum) {
  problem.transfers.resize(problem.stage_of.size());
  for (std::size_t cut = 0; cut + 1 != problem.virtual_stages; ++cut) {
    for (std::size_t m = 0; m != problem.batches; ++m) {
      if (problem.stage_of[problem.unit(cut, m)] == problem.stage_of[problem.unit(cut + 1, m)]) {
        continue;
      }
      auto& transfer = problem.transfers[problem.unit(cut, m)];
      auto const& given = value_at(transfers, cut, m);
      if constexpr (has_both_ways<value_of<Transfers>>) {
        transfer = {static_cast<T>(given.forward), static_cast<T>(given.backward)};
      } else {
        transfer = {static_cast<T>(given), static_cast<T>(given)};
      }
      checked_add(function, "the sum of all times", sum, transfer.forward);
      checked_add(function, "the sum of all times", sum, transfer.backward);
    }
  }
}

/// Reads a schedule and the work of an encoder into tables. Errors: the errors of
/// `simulate_encoder`.
template <class T, pipeline_schedule Schedule, class Times, class Transfers, class Bytes,
          class Given>
[[nodiscard]] encoder_problem<T> make_encoder_problem(std::string_view function,
                                                      Schedule const& schedule, Times const& times,
                                                      Transfers const& transfers,
                                                      Bytes const& bytes,
                                                      encoder_work<Given> const& encoder) {
  auto const alone =
      simulate_pipeline(schedule, times, transfers, bytes, {.timeline = timeline_policy::recorded});
  encoder_problem<T> problem{.stages = schedule.stages,
                             .virtual_stages = schedule.stages * schedule.chunk_count(),
                             .batches = schedule.micro_batches,
                             .splits_backward = Schedule::splits_backward};
  problem.language_makespan = static_cast<T>(alone.makespan);
  problem.language_peaks = alone.peak_bytes;
  T sum{};
  std::int64_t byte_sum = 0;
  problem.language.resize(problem.stages);
  problem.stage_of.resize(problem.virtual_stages * problem.batches);
  for (auto const& one : alone.timeline) {
    pipeline_unit const unit{one.chunk, one.micro_batch};
    std::size_t const place = virtual_stage_of(schedule, one.stage, unit);
    problem.stage_of[problem.unit(place, one.micro_batch)] = one.stage;
    split_bytes const kept =
        checked_bytes(function, place, one.micro_batch, value_at(bytes, place, one.micro_batch));
    auto const& work = value_at(times, place, one.micro_batch);
    T const time = language_time<T, Schedule::splits_backward>(work, one.kind);
    checked_add(function, "the sum of all times", sum, time);
    if (one.kind == operation_kind::forward) {
      checked_add(function, "the sum of bytes", byte_sum, kept.all);
    }
    problem.language[one.stage].push_back({.kind = one.kind,
                                           .chunk = one.chunk,
                                           .micro_batch = one.micro_batch,
                                           .virtual_stage = place,
                                           .time = time,
                                           .bytes = kept,
                                           .begin = static_cast<T>(one.begin)});
  }
  read_transfers(function, transfers, problem, sum);
  encoder_reader<T, Given>(function, encoder, problem).read(sum);
  return problem;
}

}  // namespace omnibal::inline v0::detail
