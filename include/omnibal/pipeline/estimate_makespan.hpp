// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time of a step of a pipeline, without a simulation.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>

namespace omnibal::inline v0 {

struct estimate_makespan_fn {
  /// Estimates the time of a step: (batch_count - 1) * largest + sum of the times of the stages for
  /// one micro-batch, forward and backward together. The first micro-batch passes all stages, then
  /// the slowest stage sets the pace. The estimate is exact for `gpipe` and `one_f_one_b` if stages
  /// are equal and transfers take no time. It is close if the stages are nearly balanced and the
  /// micro-batches similar; `simulate_pipeline` is more exact. `time` returns the time of a stage.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` if there are no micro-batches or stages and if times are negative or
  /// not finite; `std::overflow_error` if the result leaves its type.
  template <sample_range Stages, class Time = std::identity>
    requires cost_function<Time, sample_reference<Stages>>
  [[nodiscard]] constexpr auto operator()(Stages const& stages, std::size_t batch_count,
                                          Time const& time = {}) const {
    using working = detail::measured_weight<Stages, Time>;
    detail::check_at_least_one(name, "batch_count", batch_count);
    detail::check_at_least_one(name, "stages", std::ranges::size(stages));
    working sum{};
    working largest{};
    std::size_t stage = 0;
    for (auto&& one : stages) {
      auto const value =
          detail::checked_cost<working>(name, "time", stage++, std::invoke(time, one));
      detail::checked_add(name, "the makespan", sum, value);
      largest = std::max(largest, value);
    }
    detail::checked_add(name, "the makespan", sum,
                        detail::checked_product(name, "the makespan", largest, batch_count - 1));
    return sum;
  }

 private:
  static constexpr std::string_view name = "estimate_makespan";
};

/// Estimates the time of a step as (batch_count - 1) * largest + sum; see `estimate_makespan_fn`.
inline constexpr estimate_makespan_fn estimate_makespan{};

}  // namespace omnibal::inline v0
