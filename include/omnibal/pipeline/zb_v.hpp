// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules with two chunks in a V: ZB-V, V-Half and V-Min.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/list_search.hpp>
#include <omnibal/pipeline/detail/make_list_problem.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Returns the best lists found for two chunks in a V if all passes take the same time and a stage
/// keeps at most `units` units. The lists come from the search of `list_schedule`, which compares
/// them with its own lists if times differ.
[[nodiscard]] inline listed_schedule<> v_schedule(std::string_view function, std::size_t stages,
                                                  std::size_t batches, std::size_t units) {
  chunk_layout const layout{stages, batches, 2, chunk_placement::v_shape};
  layout.check(function);
  std::vector<std::int64_t> const memory(stages, static_cast<std::int64_t>(units));
  auto const problem = make_list_problem<std::int64_t>(function, layout, stage_time<>{1, 1, 1},
                                                       std::int64_t{0}, std::int64_t{1}, memory);
  list_search<std::int64_t> search(problem, list_objective::makespan);
  search.try_orders();
  return listed_schedule<>(layout, search.lists());
}

}  // namespace detail

struct zb_v_fn {
  /// Returns a schedule for `batches` micro-batches with two chunks in a V and a split backward
  /// pass. Each stage keeps at most the activations of the first stage of 1F1B, that is, 2 * stages
  /// units of half the size. If forward, backward and weight take the same time in all chunks and
  /// there are no fewer micro-batches than stages, no stage is idle between its operations. For
  /// other times, `list_schedule` finds a shorter schedule. Source: Qi et al., "Pipeline
  /// parallelism with controllable memory", 2024.
  ///
  /// Complexity: for n operations n log n, plus n times the sum of the stages and the micro-batches
  /// in flight. Memory: about 200 bytes for each virtual stage and micro-batch. Determinism:
  /// portable. Errors: `std::invalid_argument` if a size is zero.
  [[nodiscard]] listed_schedule<> operator()(std::size_t stages, std::size_t batches) const {
    return detail::v_schedule("zb_v", stages, batches, 2 * stages);
  }
};

/// Returns the schedule ZB-V; see `zb_v_fn`.
inline constexpr zb_v_fn zb_v{};

struct v_half_fn {
  /// Returns a schedule like `zb_v` that keeps about half of its activations: at most stages + 2
  /// units on a stage. Complexity, memory, determinism and errors: as `zb_v`.
  [[nodiscard]] listed_schedule<> operator()(std::size_t stages, std::size_t batches) const {
    return detail::v_schedule("v_half", stages, batches, stages + 2);
  }
};

/// Returns the schedule V-Half; see `v_half_fn`.
inline constexpr v_half_fn v_half{};

struct v_min_fn {
  /// Returns a schedule like `zb_v` that keeps about a third of its activations: at most (2 *
  /// stages + 2) / 3 + 2 units on a stage. Complexity, memory, determinism and errors: as `zb_v`.
  [[nodiscard]] listed_schedule<> operator()(std::size_t stages, std::size_t batches) const {
    return detail::v_schedule("v_min", stages, batches, (2 * stages + 2) / 3 + 2);
  }
};

/// Returns the schedule V-Min; see `v_min_fn`.
inline constexpr v_min_fn v_min{};

}  // namespace omnibal::inline v0
