// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule of GPipe.

#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// The schedule of GPipe: every stage runs the forward passes of all micro-batches, then all
/// backward passes, both in ascending order. Each stage keeps all micro-batches in flight. With
/// equal stages the makespan is (micro_batches + stages - 1) * (forward + backward). Source: Huang
/// et al., "GPipe", 2019.
struct gpipe {
  std::size_t stages = 1;
  std::size_t micro_batches = 1;

  static constexpr bool splits_backward = false;

  [[nodiscard]] static constexpr std::size_t chunk_count() { return 1; }
  [[nodiscard]] constexpr operation_kind next(std::size_t /*stage*/,
                                              stage_progress const& done) const {
    return done.forward < micro_batches ? operation_kind::forward : operation_kind::backward;
  }
  [[nodiscard]] static constexpr pipeline_unit unit(operation_kind /*kind*/, std::uint32_t index) {
    return {.micro_batch = index};
  }
  void check() const {
    detail::check_at_least_one("gpipe", "stages", stages);
    detail::check_at_least_one("gpipe", "micro_batches", micro_batches);
  }

  [[nodiscard]] friend bool operator==(gpipe const&, gpipe const&) = default;
};

}  // namespace omnibal::inline v0
