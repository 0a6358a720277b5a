// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule 1F1B.

#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// The schedule 1F1B. A stage runs forward passes until it has min(micro_batches, stages - stage)
/// micro-batches in flight. Then it alternates between backward and forward passes, and ends with
/// the remaining backward passes. With equal stages the makespan is the makespan of `gpipe`, with
/// less memory. Source: Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN
/// training", 2019 (its synchronous form: Narayanan et al., "Memory-efficient pipeline-parallel DNN
/// training", 2021).
struct one_f_one_b {
  std::size_t stages = 1;
  std::size_t micro_batches = 1;

  static constexpr bool splits_backward = false;

  [[nodiscard]] static constexpr std::size_t chunk_count() { return 1; }
  [[nodiscard]] constexpr operation_kind next(std::size_t stage, stage_progress const& done) const {
    bool const has_room = done.forward - done.backward < stages - stage;
    return has_room && done.forward < micro_batches ? operation_kind::forward
                                                    : operation_kind::backward;
  }
  [[nodiscard]] static constexpr pipeline_unit unit(operation_kind /*kind*/, std::uint32_t index) {
    return {.micro_batch = index};
  }
  void check() const {
    detail::check_at_least_one("one_f_one_b", "stages", stages);
    detail::check_at_least_one("one_f_one_b", "micro_batches", micro_batches);
  }

  [[nodiscard]] friend bool operator==(one_f_one_b const&, one_f_one_b const&) = default;
};

}  // namespace omnibal::inline v0
