// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule 1F1B with several chunks of the model on each stage.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// The schedule 1F1B with `chunks` chunks of the model on each stage, `stages` virtual stages
/// apart. A stage runs micro-batches through its chunks in groups of `stages`. The idle time of
/// 1F1B shrinks by the factor `chunks`, at the cost of more transfers and more micro-batches in
/// flight. The number of micro-batches must be a multiple of the stages. With one chunk the
/// schedule is `one_f_one_b`. Source: Narayanan et al., "Efficient large-scale language model
/// training on GPU clusters using Megatron-LM", 2021.
struct interleaved_1f1b {
  std::size_t stages = 1;
  std::size_t micro_batches = 1;
  std::size_t chunks = 2;

  static constexpr bool splits_backward = false;

  [[nodiscard]] constexpr std::size_t chunk_count() const { return chunks; }
  [[nodiscard]] constexpr operation_kind next(std::size_t stage, stage_progress const& done) const {
    std::size_t const after = stages - stage;
    std::size_t const room = chunks == 1 ? after : 2 * after - 1 + (chunks - 1) * stages;
    bool const has_room = done.forward - done.backward < room;
    return has_room && done.forward < micro_batches * chunks ? operation_kind::forward
                                                             : operation_kind::backward;
  }
  [[nodiscard]] constexpr pipeline_unit unit(operation_kind kind, std::uint32_t index) const {
    auto const group_size = static_cast<std::uint32_t>(stages);
    auto const chunk_total = static_cast<std::uint32_t>(chunks);
    std::uint32_t const turn = index / group_size;
    std::uint32_t const chunk = turn % chunk_total;
    return {.chunk = kind == operation_kind::forward ? chunk : chunk_total - 1 - chunk,
            .micro_batch = turn / chunk_total * group_size + index % group_size};
  }
  void check() const {
    detail::check_at_least_one("interleaved_1f1b", "stages", stages);
    detail::check_at_least_one("interleaved_1f1b", "micro_batches", micro_batches);
    detail::check_at_least_one("interleaved_1f1b", "chunks", chunks);
    detail::check_multiple("interleaved_1f1b", "micro_batches",
                           static_cast<std::int64_t>(micro_batches), "stages",
                           static_cast<std::int64_t>(stages));
  }

  [[nodiscard]] friend bool operator==(interleaved_1f1b const&, interleaved_1f1b const&) = default;
};

}  // namespace omnibal::inline v0
