// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times at which the inputs of operations arrive, in a pipeline with an encoder.

#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace omnibal::inline v0::detail {

/// The times at which the inputs of operations arrive while a step runs. `end` and `end_forward`
/// record the end of an operation, and `of` returns the arrival time of the inputs of an operation.
template <class T>
class encoder_arrivals {
 public:
  /// The arrival time of an input that has not been sent yet.
  static constexpr T missing = -1;

  explicit encoder_arrivals(encoder_problem<T> const& problem)
      : problem_(problem),
        forward_(problem.stage_of.size(), missing),
        backward_(problem.stage_of.size(), missing),
        features_(problem.readers.size() * problem.batches),
        missing_pieces_(features_.size(), problem.pieces),
        gradients_(features_.size(), missing),
        device_of_(problem.work.size()) {
    for (std::size_t m = 0; m != problem.batches; ++m) forward_[m] = T{};
  }

  /// Returns the time at which all inputs of an operation have arrived, or `missing`. The gradients
  /// of the weights need no input from another stage, and the order of operations of a stage
  /// ensures that the backward pass ran before.
  [[nodiscard]] T of(language_operation<T> const& operation) const {
    std::size_t const unit = problem_.unit(operation.virtual_stage, operation.micro_batch);
    if (operation.kind == operation_kind::weight) return T{};
    if (operation.kind == operation_kind::backward) return backward_[unit];
    T const chain = forward_[unit];
    auto const reader = reader_index(operation.virtual_stage);
    if (chain == missing || !reader) return chain;
    std::size_t const place = *reader * problem_.batches + operation.micro_batch;
    return missing_pieces_[place] != 0 ? missing : std::max(chain, features_[place]);
  }

  /// Returns the time at which the gradients of the features of a piece arrive on the device of the
  /// piece, or `missing`.
  [[nodiscard]] T of_gradients(std::size_t piece) const {
    std::size_t const m = piece / problem_.pieces;
    T arrival{};
    for (std::size_t r = 0; r != problem_.readers.size(); ++r) {
      T const end = gradients_[r * problem_.batches + m];
      if (end == missing) return missing;
      bool const is_here = problem_.reader_stage(problem_.readers[r], m) == device_of_[piece];
      arrival = std::max(arrival, is_here ? end : end + problem_.work[piece].transfer.backward);
    }
    return arrival;
  }

  /// Returns the device that has run the forward pass of a piece, or no value if none has.
  [[nodiscard]] std::optional<std::uint32_t> device_of(std::size_t piece) const {
    return device_of_[piece];
  }

  /// Records the end of an operation of the language model: its results are sent to the operations
  /// that need them.
  void end(language_operation<T> const& operation, T end) {
    std::size_t const v = operation.virtual_stage;
    std::size_t const m = operation.micro_batch;
    if (operation.kind == operation_kind::forward) {
      if (v + 1 == problem_.virtual_stages) {
        backward_[problem_.unit(v, m)] = end;
      } else {
        forward_[problem_.unit(v + 1, m)] = end + problem_.transfers[problem_.unit(v, m)].forward;
      }
    } else if (operation.kind == operation_kind::backward) {
      auto const reader = reader_index(v);
      if (reader) gradients_[*reader * problem_.batches + m] = end;
      if (v == 0) return;
      backward_[problem_.unit(v - 1, m)] =
          end + problem_.transfers[problem_.unit(v - 1, m)].backward;
    }
  }

  /// Records the end of the forward pass of a piece on a device: its features are sent to all
  /// readers.
  void end_forward(std::size_t piece, std::uint32_t device, T end) {
    std::size_t const m = piece / problem_.pieces;
    device_of_[piece] = device;
    for (std::size_t r = 0; r != problem_.readers.size(); ++r) {
      bool const is_here = problem_.reader_stage(problem_.readers[r], m) == device;
      T const arrival = is_here ? end : end + problem_.work[piece].transfer.forward;
      std::size_t const place = r * problem_.batches + m;
      features_[place] = std::max(features_[place], arrival);
      --missing_pieces_[place];
    }
  }

  /// Returns the index of a virtual stage in `readers`, or no value if the virtual stage reads no
  /// features.
  [[nodiscard]] std::optional<std::size_t> reader_index(std::size_t virtual_stage) const {
    auto const found = std::ranges::find(problem_.readers, virtual_stage);
    if (found == problem_.readers.end()) return {};
    return static_cast<std::size_t>(found - problem_.readers.begin());
  }

 private:
  encoder_problem<T> const& problem_;
  /// The arrival times of the inputs of forward and backward passes, by virtual stage and
  /// micro-batch.
  std::vector<T> forward_;
  std::vector<T> backward_;
  /// The latest arrival of features, and the number of pieces that have not been sent, by reader
  /// and micro-batch.
  std::vector<T> features_;
  std::vector<std::size_t> missing_pieces_;
  /// The end of the backward pass of a reader, by reader and micro-batch.
  std::vector<T> gradients_;
  /// The device that has run the forward pass of a piece, by micro-batch and piece.
  std::vector<std::optional<std::uint32_t>> device_of_;
};

}  // namespace omnibal::inline v0::detail
