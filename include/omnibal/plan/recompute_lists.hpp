#pragma once

/// \file
/// The layers of each stage that run with one choice.

#include <omnibal/grouping.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

struct recompute_lists_fn {
  /// For each stage of a plan the layers that run with the choice number `choice`, in order. Layers
  /// have the numbers that they have in the model; less `plan.boundaries[stage]` they are those in
  /// the stage. No stages where the plan is infeasible.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: none.
  template <weight Time>
  [[nodiscard]] grouping operator()(pipeline_plan<Time> const& plan, std::uint32_t choice) const {
    grouping result;
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      for (std::uint32_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
        if (plan.choices[l] == choice) result.push(l);
      }
      result.close();
    }
    return result;
  }
};

/// The layers of stages by choice; see `recompute_lists_fn`.
inline constexpr recompute_lists_fn recompute_lists{};

}  // namespace omnibal::inline v0
