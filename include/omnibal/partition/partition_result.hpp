#pragma once

/// \file
/// Where a chain of layers is cut into stages, and how good that is.

#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// Stages of a chain: stage s runs the layers [boundaries[s], boundaries[s + 1]).
template <weight C>
struct partition_result {
  /// Infeasible where no stages satisfy the memory and the predicate, and not found where the
  /// labels of a search with `devices` were used up before any stages were; then there are no
  /// boundaries.
  solve_status status = solve_status::solved;
  /// One more than there are stages; from zero to the number of layers.
  std::vector<std::uint32_t> boundaries{};
  /// The largest cost of a stage.
  C bottleneck{};
  /// What was minimised: the bottleneck, or for `partition_throughput` the time of a step.
  C objective{};
  /// No stages have a smaller objective than this.
  C lower_bound{};
  /// True where the objective is the smallest possible, or, where infeasible, the missing bytes.
  bool proven = false;
  /// Where infeasible: the first stage that lacks most memory, or, where the memory would do, the
  /// first stage that the layers do not reach.
  std::uint32_t stage = 0;
  /// Where infeasible: the least that must be added to every capacity, of `partition_constraints`
  /// and of a `memory_rule`, so that some stages satisfy all; zero where no memory helps, as a
  /// predicate that is no `memory_rule` or the constraints allow no stages.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(partition_result const&, partition_result const&) = default;
};

}  // namespace omnibal::inline v0
