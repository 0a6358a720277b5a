// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule ZB-H1.

#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// The schedule ZB-H1: 1F1B with a split backward pass. The gradients of the inputs come first,
/// because other stages wait for them. Stage s postpones the gradients of the weights of s
/// micro-batches to its idle time at the end of the step. No stage keeps more micro-batches in
/// flight than the first stage of 1F1B. The idle time of every stage is (stages - 1) * (forward +
/// backward - weight) under three conditions. Stages are equal, the micro-batches are no fewer than
/// the stages, and weight is no larger than forward and no larger than backward. Source: Qi et al.,
/// "Zero bubble pipeline parallelism", 2023.
struct zb_h1 {
  std::size_t stages = 1;
  std::size_t micro_batches = 1;

  static constexpr bool splits_backward = true;

  [[nodiscard]] static constexpr std::size_t chunk_count() { return 1; }
  [[nodiscard]] constexpr operation_kind next(std::size_t stage, stage_progress const& done) const {
    if (done.backward - done.weight > stage) return operation_kind::weight;
    bool const has_room = done.forward - done.backward < stages - stage;
    if (has_room && done.forward < micro_batches) return operation_kind::forward;
    return done.backward < micro_batches ? operation_kind::backward : operation_kind::weight;
  }
  [[nodiscard]] static constexpr pipeline_unit unit(operation_kind /*kind*/, std::uint32_t index) {
    return {.micro_batch = index};
  }
  void check() const {
    detail::check_at_least_one("zb_h1", "stages", stages);
    detail::check_at_least_one("zb_h1", "micro_batches", micro_batches);
  }

  [[nodiscard]] friend bool operator==(zb_h1 const&, zb_h1 const&) = default;
};

}  // namespace omnibal::inline v0
