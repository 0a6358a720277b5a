// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule 1F1B for sequences that are cut into dependent slices.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The schedule 1F1B whose micro-batches are slices of sequences. A slice attends to the keys and
/// values of the earlier slices of its sequence, so the forward passes of slices run in order and
/// the backward passes in reverse order. The first backward pass is the pass of the last slice of
/// the first sequence. A stage keeps at most the number of slices of the sequence in its backward
/// pass, plus one for each later stage. This includes the keys and values that later slices need.
///
/// If all slices take the same time, the time of the step is 1 + (stages - 1) / micro_batches times
/// the work of a stage; `micro_batches` is the number of all slices. The function `slice_sequences`
/// cuts slices of nearly equal time. Source: Sun et al., "Seq1F1B: efficient sequence-level
/// pipeline parallelism for large language model training", 2024.
struct sliced_1f1b {
  static constexpr bool splits_backward = false;

  std::size_t stages = 1;
  /// The number of slices of all sequences together.
  std::size_t micro_batches = 1;

  sliced_1f1b() : sliced_1f1b(1, std::vector<std::uint32_t>{1}) {}

  /// Creates a schedule from the number of slices of each sequence. Errors: `std::invalid_argument`
  /// if there are no stages or no sequences, or if a sequence has no slices; `std::length_error` if
  /// there are more than 2^32 - 1 slices.
  sliced_1f1b(std::size_t stage_count, std::span<std::uint32_t const> slices)
      : stages(stage_count), micro_batches(0) {
    for (std::size_t i = 0; i != slices.size(); ++i) {
      detail::check_positive("sliced_1f1b", "slices", i, slices[i]);
      detail::check_number("sliced_1f1b", "the sum of slices", micro_batches + slices[i]);
      auto const first = static_cast<std::uint32_t>(micro_batches);
      micro_batches += slices[i];
      for (std::uint32_t k = 0; k != slices[i]; ++k) {
        backward_.push_back(first + slices[i] - 1 - k);
        needed_.push_back(first + slices[i] + k);
      }
    }
    check();
  }

  [[nodiscard]] static constexpr std::size_t chunk_count() { return 1; }
  [[nodiscard]] operation_kind next(std::size_t stage, stage_progress const& done) const {
    if (done.forward == micro_batches) return operation_kind::backward;
    std::size_t const ahead = needed_[done.backward] + (stages - 1 - stage);
    return done.forward < ahead ? operation_kind::forward : operation_kind::backward;
  }
  [[nodiscard]] pipeline_unit unit(operation_kind kind, std::uint32_t index) const {
    return {.micro_batch = kind == operation_kind::forward ? index : backward_[index]};
  }
  void check() const {
    detail::check_at_least_one("sliced_1f1b", "stages", stages);
    detail::check_at_least_one("sliced_1f1b", "the number of slices", micro_batches);
    detail::check_size("sliced_1f1b", "the list of slices", backward_.size(), micro_batches,
                       "micro-batches");
  }

  [[nodiscard]] friend bool operator==(sliced_1f1b const&, sliced_1f1b const&) = default;

 private:
  /// The slice of each backward pass, in the order of the passes.
  std::vector<std::uint32_t> backward_;
  /// The number of forward passes that the last stage runs before each backward pass.
  std::vector<std::uint32_t> needed_;
};

}  // namespace omnibal::inline v0
