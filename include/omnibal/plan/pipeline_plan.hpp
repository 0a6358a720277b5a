#pragma once

/// \file
/// Where a model is cut into stages and how each layer runs.

#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

template <weight Time>
struct planned_stage {
  /// What a micro-batch takes, forward, backward and recomputation together.
  Time time{};
  /// What the stage takes of its memory at most, the reserve included.
  std::int64_t bytes = 0;
  /// How many micro-batches keep their activations at once.
  std::int64_t in_flight = 0;

  [[nodiscard]] friend bool operator==(planned_stage const&, planned_stage const&) = default;
};

/// Stages of a model: stage s runs the layers [boundaries[s], boundaries[s + 1]).
template <weight Time>
struct pipeline_plan {
  /// Infeasible where a stage lacks memory whatever the cuts and choices.
  solve_status status = solve_status::solved;
  /// One more than there are stages, from zero to the number of layers; empty where infeasible.
  std::vector<std::uint32_t> boundaries{};
  /// The number of the choice of each layer; empty where infeasible.
  std::vector<std::uint32_t> choices{};
  std::vector<planned_stage<Time>> stages{};
  /// (micro-batches - 1) times the largest time of a stage plus the sum of the times.
  Time step_time{};
  /// No cuts and choices within the memory have a shorter step.
  Time lower_bound{};
  /// True where the step is the shortest possible.
  bool proven = false;
  /// Where infeasible: the first stage that lacks most memory with the best cuts.
  std::uint32_t stage = 0;
  /// Where infeasible: the least that must be added to the memory of every stage; zero where the
  /// memory would do, but no cuts satisfy the constraints.
  std::int64_t missing_bytes = 0;

  /// The choices of the layers of a stage.
  [[nodiscard]] std::span<std::uint32_t const> choices_of(std::size_t index) const& {
    return std::span(choices).subspan(boundaries[index], boundaries[index + 1] - boundaries[index]);
  }
  void choices_of(std::size_t index) const&& = delete;

  [[nodiscard]] friend bool operator==(pipeline_plan const&, pipeline_plan const&) = default;
};

}  // namespace omnibal::inline v0
