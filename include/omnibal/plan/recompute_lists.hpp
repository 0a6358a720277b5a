#pragma once

/// \file
/// The layers of each stage that run with one choice.

#include <omnibal/check.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/plan/detail/check_boundaries.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

struct recompute_lists_fn {
  /// For each stage of a plan the layers that run with the choice number `choice`, in order. Layers
  /// have the numbers that they have in the model; less `plan.boundaries[stage]` they are those in
  /// the stage. No stages where the plan is infeasible.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: `std::invalid_argument`
  /// for boundaries that do not begin with zero, that descend, or that do not end with the number
  /// of choices.
  template <weight Time>
  [[nodiscard]] grouping operator()(pipeline_plan<Time> const& plan, std::uint32_t choice) const {
    grouping result;
    if (plan.boundaries.empty()) return result;
    detail::check_boundaries(name, plan.boundaries);
    if (plan.boundaries.back() != plan.choices.size()) {
      detail::throw_invalid(name, "the plan has " + detail::to_text(plan.choices.size()) +
                                      " choices, its boundaries end with " +
                                      detail::to_text(plan.boundaries.back()));
    }
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      for (std::uint32_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
        if (plan.choices[l] == choice) result.push(l);
      }
      result.close();
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "recompute_lists";
};

/// The layers of stages by choice; see `recompute_lists_fn`.
inline constexpr recompute_lists_fn recompute_lists{};

}  // namespace omnibal::inline v0
