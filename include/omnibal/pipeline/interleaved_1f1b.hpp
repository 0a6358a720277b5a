// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule 1F1B with several chunks of the model on each stage.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// The schedule 1F1B with `chunks` chunks of the model on each stage. Two consecutive chunks of a
/// stage are `stages` virtual stages apart. A stage runs micro-batches through its chunks in
/// groups. The idle time of 1F1B shrinks by the factor `chunks`, at the cost of more transfers and
/// more micro-batches in flight. Larger groups leave more time for transfers and keep more
/// micro-batches in flight.
///
/// Any number of micro-batches is allowed. The number of groups is micro_batches / group, rounded
/// down, and at least one. Their sizes differ by at most one, larger groups first. Megatron-LM
/// makes only the last group smaller; both rules agree if `group` divides the micro-batches. A
/// group must have at least one micro-batch for each stage, because the stages would otherwise wait
/// for each other. With one chunk the schedule is `one_f_one_b`. Source: Narayanan et al.,
/// "Efficient large-scale language model training on GPU clusters using Megatron-LM", 2021.
struct interleaved_1f1b {
  std::size_t stages = 1;
  std::size_t micro_batches = 1;
  std::size_t chunks = 2;
  /// The number of micro-batches of a group; 0 means the number of stages.
  std::size_t group = 0;

  static constexpr bool splits_backward = false;

  [[nodiscard]] constexpr std::size_t chunk_count() const { return chunks; }
  [[nodiscard]] constexpr operation_kind next(std::size_t stage, stage_progress const& done) const {
    std::size_t const after = stages - stage;
    std::size_t const room = chunks == 1 ? after : 2 * after - 1 + (chunks - 1) * largest_group();
    bool const has_room = done.forward - done.backward < room;
    return has_room && done.forward < micro_batches * chunks ? operation_kind::forward
                                                             : operation_kind::backward;
  }
  [[nodiscard]] constexpr pipeline_unit unit(operation_kind kind, std::uint32_t index) const {
    auto const chunk_total = static_cast<std::uint32_t>(chunks);
    auto const groups = static_cast<std::uint32_t>(group_count());
    auto const batches = static_cast<std::uint32_t>(micro_batches);
    std::uint32_t size = batches / groups;
    std::uint32_t first = 0;
    // If the number of groups does not divide the micro-batches, the first groups have one
    // micro-batch more.
    if (std::uint32_t const larger = batches - size * groups; larger != 0) {
      std::uint32_t const units = larger * (size + 1) * chunk_total;
      if (index < units) {
        ++size;
      } else {
        index -= units;
        first = larger * (size + 1);
      }
    }
    std::uint32_t const turn = index / size;
    std::uint32_t const chunk = turn % chunk_total;
    return {.chunk = kind == operation_kind::forward ? chunk : chunk_total - 1 - chunk,
            .micro_batch = first + turn / chunk_total * size + index % size};
  }
  void check() const {
    detail::check_at_least_one("interleaved_1f1b", "stages", stages);
    detail::check_at_least_one("interleaved_1f1b", "micro_batches", micro_batches);
    detail::check_at_least_one("interleaved_1f1b", "chunks", chunks);
    if (group == 0 || group >= stages) return;
    detail::throw_number("interleaved_1f1b", "group", static_cast<std::int64_t>(group),
                         "must be at least stages, which is ", static_cast<std::int64_t>(stages));
  }

  [[nodiscard]] friend bool operator==(interleaved_1f1b const&, interleaved_1f1b const&) = default;

 private:
  [[nodiscard]] constexpr std::size_t group_count() const {
    return std::max<std::size_t>(1, micro_batches / (group == 0 ? stages : group));
  }
  [[nodiscard]] constexpr std::size_t largest_group() const {
    return (micro_batches + group_count() - 1) / group_count();
  }
};

}  // namespace omnibal::inline v0
