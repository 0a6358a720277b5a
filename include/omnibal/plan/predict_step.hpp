// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time and memory of a training step from model, degrees, schedule and machine.

#include <omnibal/check.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/plan/detail/staged_step.hpp>
#include <omnibal/plan/detail/timed_runs.hpp>
#include <omnibal/plan/even_boundaries.hpp>
#include <omnibal/plan/training_step.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct predict_step_fn {
  /// Predicts the seconds and bytes of a training step. `pieces` returns the times of the parts of
  /// a pass on the machine: matrix products by their shapes, attention, memory-bound bytes of
  /// `layer_cost`, and collectives. A pass takes at least `launch_seconds`. `simulate_pipeline`
  /// runs the passes in a 1F1B or interleaved schedule. The reduction of gradients and the
  /// optimizer follow. Ranks have consecutive numbers in the order tensor, sequence, data,
  /// pipeline. Norms, activations and sums move the same number of bytes in both passes.
  ///
  /// `step.offload` sends a share of the kept bytes of each layer to the host during its forward
  /// pass and back during its backward pass; embedding and head keep theirs. The two ways take the
  /// part of their time that `pieces.overlap` returns. The device has room for the offloaded bytes
  /// of two layers: one in use and one on its way.
  ///
  /// A model visits an `embedding`, `transformer` layers, `prediction_layer`s, a `language_head`
  /// and the parts of a vision tower: `patch_embedding`, `vision_transformer`, `tower_norm` and
  /// `projector`. The function `even_boundaries` expects a model without a tower, so that a model
  /// with a tower needs `boundaries`. The prediction describes even work: equal ranks, no
  /// stragglers, no loading of data, no checkpoints. docs/evidence/step_model.md has its errors.
  ///
  /// Complexity: a few steps for each unit of the model and each operation of the schedule. Memory:
  /// as `simulate_pipeline`. Determinism: portable if the compiler does not contract operations.
  /// Errors: `std::invalid_argument` that names the number, for a machine without positive rates,
  /// for boundaries that do not fit, and for layers that have no time; the errors of the layers and
  /// of `simulate_pipeline`.
  template <layered_model Model, class Pieces = step_pieces<>>
  [[nodiscard]] step_prediction operator()(Model const& model, training_step const& step,
                                           machine const& on, Pieces const& pieces = {}) const {
    detail::check_machine(name, on);
    check(step);
    micro_batch_work const batch = work_of(step);
    auto const runs = detail::timed_runs(name, model, step, batch, on, pieces);
    detail::staged_step const staged(name, step, on, pieces, runs, boundaries_of(step, runs));
    return staged.prediction();
  }

 private:
  static constexpr std::string_view name = "predict_step";

  static void check(training_step const& step) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    parallel_degrees const& degrees = step.degrees;
    bool const is_given = step.work != micro_batch_work{};
    detail::check_between(name, "step.sequences", step.sequences, 1, is_given ? 1 : most);
    detail::check_between(name, "step.tokens", step.tokens, is_given ? 0 : 1, is_given ? 0 : most);
    detail::check_between(name, "step.document_tokens", step.document_tokens, 0, step.tokens);
    detail::check_between(name, "step.micro_batches", step.micro_batches, 1, most);
    detail::check_between(name, "step.chunks", step.chunks, 1, most);
    detail::check_between(name, "step.reduced_bytes", step.reduced_bytes, 1, 64);
    detail::check_between(name, "step.gathered_bytes", step.gathered_bytes, 1, 64);
    detail::check_between(name, "step.bucket_bytes", step.bucket_bytes, 1, std::int64_t{1} << 50);
    detail::check_between(name, "step.degrees.pipeline", degrees.pipeline, 1, most);
    detail::check_between(name, "step.degrees.tensor", degrees.tensor, 1, most);
    detail::check_between(name, "step.degrees.sequence", degrees.sequence, 1, most);
    detail::check_between(name, "step.degrees.data", degrees.data, 1, most);
    detail::check_between(name, "step.degrees.expert", degrees.expert, 1, most);
    detail::check_between(name, "step.state_ranks", step.state_ranks, 0,
                          degrees.data * degrees.sequence);
    detail::check_share(name, "step.offload.share", step.offload.share);
    if (step.offload.share > 0 && !(step.offload.bytes_per_second > 0)) {
      detail::throw_invalid(name, "step.offload.bytes_per_second is ",
                            step.offload.bytes_per_second,
                            ", must be positive if step.offload.share is");
    }
  }

  [[nodiscard]] static micro_batch_work work_of(training_step const& step) {
    if (step.work != micro_batch_work{}) return step.work;
    std::int64_t const length = step.document_tokens == 0 ? step.tokens : step.document_tokens;
    detail::check_multiple(name, "step.tokens", step.tokens, "step.document_tokens", length);
    return {.documents = equal_sequences(
                {.count = step.sequences * (step.tokens / length), .length = length})};
  }

  [[nodiscard]] static std::vector<std::int64_t> boundaries_of(
      training_step const& step, std::vector<detail::timed_run> const& runs) {
    std::int64_t const count = detail::unit_count(runs);
    detail::check_between(name, "the layers of the model", count, 3, std::int64_t{1} << 20);
    std::int64_t const stages = step.degrees.pipeline * step.chunks;
    auto result = step.boundaries.empty() ? even_boundaries({.layers = count - 2, .stages = stages})
                                          : step.boundaries;
    detail::check_size(name, "step.boundaries", result.size(), static_cast<std::size_t>(stages + 1),
                       "virtual stages and the end");
    if (result.front() != 0 || result.back() != count) {
      detail::throw_invalid(name, "step.boundaries is from ", result.front(), " to ", result.back(),
                            ", must be from 0 to ", count);
    }
    for (std::size_t s = 1; s != result.size(); ++s) {
      detail::check_between(name, "step.boundaries", result[s], result[s - 1], count);
    }
    return result;
  }
};

/// Predicts the seconds and bytes of a training step; see `predict_step_fn`.
inline constexpr predict_step_fn predict_step{};

}  // namespace omnibal::inline v0
