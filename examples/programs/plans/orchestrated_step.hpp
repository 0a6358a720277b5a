// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a step of a multimodal model takes for any arrangement of its samples, by the costs of
/// modality_mix.hpp, and what it takes to bring them there.

#include "machine_file.hpp"
#include "modality_mix.hpp"

#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/grouping.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace examples {

/// The language model and the encoders.
inline constexpr std::size_t phase_count = 1 + modality_count;
inline constexpr std::array<std::string_view, phase_count> phase_names{
    "language model", encoder_names[0], encoder_names[1]};

/// What a rank runs of a phase.
enum class batching {
  unpadded,   ///< samples or pieces one after the other
  padded,     ///< one batch in which each takes as long as the longest
  convolved,  ///< of encoders: the convolutions as such a batch, then the pieces one by one
  padded_all  ///< of encoders: the convolutions and all else as such a batch
};
using step_batching = std::array<batching, phase_count>;

/// Which samples, and which pieces of each kind, are on each rank.
using step_arrangement = std::array<omnibal::grouping, phase_count>;

/// Pieces are where their samples are.
[[nodiscard]] step_arrangement with_their_pieces(batch_measures const& batch,
                                                 omnibal::grouping samples);
/// As drawn.
[[nodiscard]] step_arrangement at_home(batch_measures const& batch);
[[nodiscard]] step_arrangement arrangement_of(omnibal::orchestration const& plans);

/// A step in which each phase begins when all ranks have ended the one before it.
struct step_time {
  std::array<double, phase_count> seconds{};
  /// The share of each phase for which ranks wait.
  std::array<double, phase_count> waiting{};

  [[nodiscard]] double total() const;
};
[[nodiscard]] step_time time_of(batch_measures const& batch, step_arrangement const& where,
                                step_batching const& how);

/// Seconds that all items of all phases take without padding and waiting, of all ranks together.
[[nodiscard]] double work_seconds(batch_measures const& batch);

/// What makes the parts of unpadded phases; padded ones are even by `balance_set_cost`.
enum class orchestration_rule { lpt, rebalance };

/// A plan for each phase by itself. `ranks_per_node` is 1 where placement does not look at nodes.
[[nodiscard]] omnibal::orchestration orchestrate_step(batch_measures const& batch,
                                                      step_batching const& how,
                                                      orchestration_rule rule,
                                                      std::size_t ranks_per_node);

/// The same in memory that is kept, as in a training loop.
omnibal::orchestration const& orchestrate_step(batch_measures const& batch,
                                               step_batching const& how, orchestration_rule rule,
                                               std::size_t ranks_per_node,
                                               omnibal::make_orchestration_workspace& workspace);

/// What moves: the inputs of all phases, and the outputs of the encoders with their gradients.
struct wire_time {
  double input_bytes = 0;
  double output_bytes = 0;
  double across_nodes = 0;
  /// Of the exchanges one after the other, each as long as its slowest rank sends or receives, with
  /// the time to gather all measures.
  double seconds = 0;
};
[[nodiscard]] wire_time wire_time_of(batch_measures const& batch,
                                     omnibal::orchestration const& plans,
                                     machine_description const& machine);

}  // namespace examples
