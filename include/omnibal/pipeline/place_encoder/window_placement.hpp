// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Inserts the operations of an encoder into the lists of a pipeline by a rule, within the memory
/// of the devices.

#include <omnibal/pipeline/detail/encoder_arrivals.hpp>
#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The rule by which a device chooses between the language model and the encoder.
struct window_rule {
  /// The number of micro-batches that the encoder may be ahead of the first reader.
  std::size_t window = 1;
  /// The number of micro-batches ahead of the first reader for which the encoder has priority over
  /// the language model; at most `window`.
  std::size_t urgent = 0;
  /// Backward passes of the encoder have priority over the language model.
  bool is_backward_urgent = false;
  /// The encoder fills any gap, even if the gap is shorter than its operation.
  bool fills_every_gap = false;
};

/// Simulates a step operation by operation. The next operation is the one with the earliest begin
/// of all devices.
template <class T>
class window_placement {
 public:
  /// `room` has the bytes of each device that the language model leaves free at its peak.
  window_placement(encoder_problem<T> const& problem, std::vector<std::uint32_t> const& order,
                   std::vector<std::int64_t> const& room, window_rule const& rule)
      : problem_(problem),
        order_(order),
        rule_(rule),
        arrivals_(problem),
        room_(room),
        devices_(problem.devices),
        lists_(problem.devices),
        opened_(order.size() + 1) {}

  /// Returns the lists; empty if the memory is too small for this rule.
  [[nodiscard]] placed_lists run() {
    std::size_t left = 2 * problem_.work.size();
    for (auto const& list : problem_.language) left += list.size();
    for (; left != 0; --left) {
      candidate best;
      for (std::uint32_t d = 0; d != problem_.devices; ++d) {
        candidate const one = choose(d);
        if (one.begin < best.begin) best = one;
      }
      if (best.begin == never) return {};
      run_candidate(best);
    }
    return std::move(lists_);
  }

 private:
  static constexpr T never = std::numeric_limits<T>::max();
  static constexpr T missing = encoder_arrivals<T>::missing;

  /// An operation that a device can run, and its begin; `never` if there is no such operation.
  struct candidate {
    T begin = never;
    std::uint32_t device = 0;
    model_part part = model_part::language;
    operation_kind kind = operation_kind::forward;
    std::size_t piece = 0;
  };
  struct device_state {
    T now{};
    std::size_t language = 0;
    /// The pieces whose backward pass has not run, in the order of their forward passes.
    std::vector<std::size_t> pending{};
  };

  /// Returns the operation that a device runs next: an operation of the encoder if the rule admits
  /// one, otherwise the next operation of the language model. If the rule admits two operations,
  /// the earlier one runs. If both are equally early, an urgent forward pass runs before a backward
  /// pass, and a backward pass runs before any other forward pass.
  [[nodiscard]] candidate choose(std::uint32_t d) const {
    candidate const language = next_of_language(d);
    candidate const forward = next_forward(d);
    candidate const backward = next_backward(d);
    bool const is_forward_urgent = next_ / problem_.pieces < started_ + rule_.urgent;
    if (!is_admitted(forward, language, is_forward_urgent)) {
      return is_admitted(backward, language, rule_.is_backward_urgent) ? backward : language;
    }
    if (!is_admitted(backward, language, rule_.is_backward_urgent)) return forward;
    bool const is_forward_first =
        is_forward_urgent ? forward.begin <= backward.begin : forward.begin < backward.begin;
    return is_forward_first ? forward : backward;
  }

  /// Returns true if an operation of the encoder may run before the next operation of the language
  /// model. It may run if it does not delay that operation, or if the rule lets it fill the gap or
  /// gives it priority.
  [[nodiscard]] bool is_admitted(candidate const& one, candidate const& language,
                                 bool is_urgent) const {
    if (one.begin == never) return false;
    auto const& work = problem_.work[one.piece];
    T const time = one.kind == operation_kind::forward ? work.forward : work.backward;
    if (language.begin == never || one.begin + time <= language.begin) return true;
    if (rule_.fills_every_gap && one.begin < language.begin) return true;
    return is_urgent && one.begin <= language.begin;
  }

  /// Returns the next operation of the language model on a device.
  [[nodiscard]] candidate next_of_language(std::uint32_t d) const {
    candidate result{.device = d};
    device_state const& state = devices_[d];
    if (d >= problem_.stages || state.language == problem_.language[d].size()) return result;
    T const arrival = arrivals_.of(problem_.language[d][state.language]);
    if (arrival == missing) return result;
    result.begin = std::max(state.now, arrival);
    return result;
  }

  /// Returns the next forward pass of the encoder on a device, if the window and the memory allow
  /// it.
  [[nodiscard]] candidate next_forward(std::uint32_t d) const {
    candidate result{.device = d, .part = model_part::encoder};
    if (next_ == problem_.work.size() || !problem_.is_encoder_device(d)) return result;
    std::size_t const k = next_ / problem_.pieces;
    if (k >= started_ + rule_.window) return result;
    result.piece = problem_.piece(order_[k], next_ % problem_.pieces);
    if (!has_room(d, result.piece)) return result;
    T const opened = k < rule_.window ? T{} : opened_[k - rule_.window + 1];
    result.begin = std::max(devices_[d].now, opened);
    return result;
  }

  /// Returns true if the activations and the features of a piece fit into the memory of all devices
  /// that keep them.
  [[nodiscard]] bool has_room(std::uint32_t d, std::size_t piece) const {
    auto const& work = problem_.work[piece];
    // The gradients of the features later require the same number of bytes as the features.
    std::int64_t needed = work.activation_bytes + work.output_bytes;
    for (std::uint32_t const reader : problem_.readers) {
      std::uint32_t const stage = problem_.reader_stage(reader, piece / problem_.pieces);
      if (stage == d) {
        needed += work.output_bytes;
      } else if (room_[stage] < work.output_bytes) {
        return false;
      }
    }
    return room_[d] >= needed;
  }

  /// Returns the backward pass of the encoder that can begin first on a device.
  [[nodiscard]] candidate next_backward(std::uint32_t d) const {
    candidate result{.device = d, .part = model_part::encoder, .kind = operation_kind::backward};
    for (std::size_t const piece : devices_[d].pending) {
      T const arrival = arrivals_.of_gradients(piece);
      if (arrival == missing) continue;
      T const begin = std::max(devices_[d].now, arrival);
      if (begin >= result.begin) continue;
      result.begin = begin;
      result.piece = piece;
    }
    return result;
  }

  /// Runs an operation, appends it to its list, and updates the times and the free bytes.
  void run_candidate(candidate const& one) {
    device_state& state = devices_[one.device];
    if (one.part == model_part::language) {
      auto const& operation = problem_.language[one.device][state.language++];
      state.now = one.begin + operation.time;
      lists_[one.device].push_back(
          {one.part, operation.kind, operation.chunk, operation.micro_batch});
      arrivals_.end(operation, state.now);
      if (operation.kind == operation_kind::forward) begin_reader(operation, one.begin);
      return;
    }
    auto const m = static_cast<std::uint32_t>(one.piece / problem_.pieces);
    auto const& work = problem_.work[one.piece];
    lists_[one.device].push_back(
        {one.part, one.kind, static_cast<std::uint32_t>(one.piece % problem_.pieces), m});
    bool const is_forward = one.kind == operation_kind::forward;
    std::int64_t const kept = work.activation_bytes + work.output_bytes;
    if (is_forward) {
      ++next_;
      state.now = one.begin + work.forward;
      state.pending.push_back(one.piece);
      room_[one.device] -= kept;
      for (std::uint32_t const reader : problem_.readers) {
        room_[problem_.reader_stage(reader, m)] -= work.output_bytes;
      }
      arrivals_.end_forward(one.piece, one.device, state.now);
    } else {
      state.now = one.begin + work.backward;
      room_[one.device] += kept;
      std::erase(state.pending, one.piece);
    }
  }

  /// Frees the bytes of the features of a micro-batch if `operation` reads features.
  void begin_reader(language_operation<T> const& operation, T begin) {
    auto const reader = arrivals_.reader_index(operation.virtual_stage);
    if (!reader) return;
    std::uint32_t const stage =
        problem_.reader_stage(problem_.readers[*reader], operation.micro_batch);
    for (std::size_t j = 0; j != problem_.pieces; ++j) {
      room_[stage] += problem_.work[problem_.piece(operation.micro_batch, j)].output_bytes;
    }
    if (*reader != 0) return;
    ++started_;
    opened_[started_] = std::max(opened_[started_ - 1], begin);
  }

  encoder_problem<T> const& problem_;
  std::vector<std::uint32_t> const& order_;
  window_rule rule_;
  encoder_arrivals<T> arrivals_;
  std::vector<std::int64_t> room_;
  std::vector<device_state> devices_;
  placed_lists lists_;
  /// The index of the next piece to encode, in the order of the micro-batches.
  std::size_t next_ = 0;
  /// The number of micro-batches that the first reader has begun, and the begin of each of them.
  std::size_t started_ = 0;
  std::vector<T> opened_;
};

}  // namespace omnibal::inline v0::detail
