// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The placement of the virtual stages of a model on stages.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

/// The placement of the chunks of a model on the stages.
enum class chunk_placement : std::uint8_t {
  /// Chunk c of stage s is the virtual stage c * stages + s, as in interleaved 1F1B.
  looped,
  /// Chunks with odd numbers are placed in descending order of the stages, so that the model turns
  /// at the last stage. With more than two chunks, the model also turns at the first stage. Source:
  /// ZB-V, DualPipeV; waves (Hanayo) if there are more than two chunks.
  v_shape,
  /// Two copies of the model, one in each direction. Micro-batches with an even number pass the
  /// stages in ascending order, micro-batches with an odd number in descending order. A stage has
  /// the parameters of two virtual stages, but each micro-batch passes a stage once. Source:
  /// Chimera, DualPipe.
  bidirectional
};

/// The sizes of a pipeline and the placement of its chunks.
struct chunk_layout {
  std::size_t stages = 1;
  std::size_t micro_batches = 1;
  /// The number of chunks that a micro-batch runs through on each stage; 1 if the placement is
  /// bidirectional.
  std::size_t chunks = 1;
  chunk_placement placement = chunk_placement::looped;

  [[nodiscard]] constexpr std::size_t chunk_count() const { return chunks; }

  /// Returns the virtual stage in which a unit runs on a stage.
  [[nodiscard]] constexpr std::size_t virtual_stage(std::size_t stage,
                                                    pipeline_unit const& unit) const {
    return unit.chunk * stages + mirrored(stage, unit);
  }

  /// Returns the stage that runs a virtual stage for a micro-batch.
  [[nodiscard]] constexpr std::size_t stage_of(std::size_t virtual_stage,
                                               std::uint32_t micro_batch) const {
    auto const chunk = static_cast<std::uint32_t>(virtual_stage / stages);
    return mirrored(virtual_stage % stages, {.chunk = chunk, .micro_batch = micro_batch});
  }

  /// Throws unless the sizes are valid. Errors: `std::invalid_argument` if a size is zero and if a
  /// bidirectional placement has several chunks; `std::length_error` if there are more than 2^32 -
  /// 1 virtual stages or units of a stage. The messages name `function`.
  void check(std::string_view function) const {
    detail::check_at_least_one(function, "stages", stages);
    detail::check_at_least_one(function, "micro_batches", micro_batches);
    detail::check_at_least_one(function, "chunks", chunks);
    detail::check_number(function, "stages * chunks", stages * chunks);
    detail::check_number(function, "micro_batches * chunks", micro_batches * chunks);
    if (placement == chunk_placement::bidirectional && chunks != 1) {
      detail::throw_invalid(function, "chunks is ", chunks,
                            ", must be 1 if the placement is bidirectional");
    }
  }

  [[nodiscard]] friend bool operator==(chunk_layout const&, chunk_layout const&) = default;

 private:
  [[nodiscard]] constexpr std::size_t mirrored(std::size_t stage, pipeline_unit const& unit) const {
    bool const descends =
        placement == chunk_placement::v_shape ? unit.chunk % 2 == 1 : unit.micro_batch % 2 == 1;
    return placement != chunk_placement::looped && descends ? stages - 1 - stage : stage;
  }
};

}  // namespace omnibal::inline v0
