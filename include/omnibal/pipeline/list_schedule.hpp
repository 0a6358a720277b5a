// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A schedule for any times of stages and micro-batches, within the memory of the stages.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/list_search.hpp>
#include <omnibal/pipeline/detail/make_list_problem.hpp>
#include <omnibal/pipeline/detail/pipeline_values.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/list_schedule/list_replay.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/pipeline/zb_v.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace omnibal::inline v0 {

/// The order in which the stages run the micro-batches of a chunk. It is the same on all stages.
enum class list_order : std::uint8_t {
  /// `list_schedule` selects the order.
  searched,
  /// Micro-batches run in the order of their numbers.
  given
};

struct list_schedule_options {
  list_objective objective = list_objective::makespan;
  list_order micro_batches = list_order::searched;
};

/// A schedule and its times.
template <scalar_measure T, bool SplitsBackward>
struct list_schedule_result {
  listed_schedule<SplitsBackward> schedule;
  /// The end of the last operation, by `simulate_pipeline`.
  T makespan{};
  /// The longest time from the begin of the first operation of a stage to the end of its last
  /// operation.
  T longest_stage{};
  /// A lower bound of the objective for all orders of the operations within the memory.
  T lower_bound{};

  [[nodiscard]] friend bool operator==(list_schedule_result const&,
                                       list_schedule_result const&) = default;
};

struct list_schedule_fn {
  /// Returns a schedule for the given times of each virtual stage and micro-batch, with a lower
  /// bound on the objective. Times, transfers and bytes are given as for `simulate_pipeline`;
  /// `layout` defines the virtual stages. If the times have a `weight`, the schedule splits the
  /// backward pass. `memory` has the largest number of activation bytes that each stage may keep;
  /// if it is empty, the memory is unlimited. All stages run the micro-batches of a chunk in the
  /// same order.
  ///
  /// The schedule never exceeds the memory. It is never longer than 1F1B and ZB-H1 (one chunk),
  /// interleaved 1F1B (looped chunks) and ZB-V (two chunks in a V) at the same times, if these fit
  /// into the memory. Candidates are orders of passes that repeat a pattern, and orders by four
  /// rules at several times: equal times, the average times of the virtual stages, and the given
  /// times. The gradients of the weights then fill the gaps at the given times. A local search
  /// exchanges micro-batches in the best candidates, unless the options keep the given order.
  ///
  /// Complexity: for n operations n log n, plus n times the sum of the stages, the chunks of a
  /// stage and the micro-batches in flight. The numbers of tried orders and exchanges are limited.
  /// Memory: about 600 bytes for each virtual stage and micro-batch. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` if the layout is invalid, or if ranges do not have
  /// the number of virtual stages, cuts, micro-batches or stages. It is also thrown if times, bytes
  /// or memory are negative or not finite, and if a single micro-batch exceeds the memory of a
  /// stage. Further errors: `std::overflow_error` if the sum of all times or of the bytes of a
  /// stage exceeds its type, and if 32 bits do not hold five times the number of virtual stages and
  /// micro-batches.
  template <stage_times Times, transfer_times Transfers = std::int64_t,
            activation_bytes Bytes = std::int64_t>
  [[nodiscard]] auto operator()(chunk_layout const& layout, Times const& times,
                                Transfers const& transfers = {}, Bytes const& bytes = {},
                                std::span<std::int64_t const> memory = {},
                                list_schedule_options const& options = {}) const {
    using time_type = simulated_time<Times, Transfers>;
    constexpr bool splits = detail::has_weight_time<detail::value_of<Times>>;
    auto const problem =
        detail::make_list_problem<time_type>(name, layout, times, transfers, bytes, memory);
    detail::list_search<time_type> search(problem, options.objective);
    search.try_orders();
    try_known_schedules<splits>(problem, search);
    if (options.micro_batches == list_order::searched) search.exchange_micro_batches(name);

    list_schedule_result<time_type, splits> result{
        .schedule = listed_schedule<splits>(layout, search.lists())};
    auto const measured = detail::replay(problem, result.schedule);
    result.makespan = measured.makespan;
    result.longest_stage = measured.longest_stage;
    // Sums of floating-point times are rounded, so the bound may exceed the time of the schedule.
    result.lower_bound = std::min(search.bound(), measured.of(options.objective));
    return result;
  }

 private:
  static constexpr std::string_view name = "list_schedule";

  /// Proposes the lists of the known schedules for a layout.
  template <bool Splits, class T>
  static void try_known_schedules(detail::list_problem<T> const& problem,
                                  detail::list_search<T>& search) {
    chunk_layout const& layout = problem.layout;
    auto const attempt = [&](auto const& schedule) {
      operation_lists const lists = detail::lists_of<Splits>(schedule);
      listed_schedule<Splits> const listed(layout, lists);
      if (!detail::fits(problem, listed)) return;
      search.propose(detail::replay(problem, listed), lists);
    };
    if (layout.placement == chunk_placement::looped) {
      attempt(interleaved_1f1b{layout.stages, layout.micro_batches, layout.chunks});
      if (Splits && layout.chunks == 1) attempt(zb_h1{layout.stages, layout.micro_batches});
    }
    if (Splits && layout.placement == chunk_placement::v_shape && layout.chunks == 2) {
      attempt(zb_v(layout.stages, layout.micro_batches));
    }
  }
};

/// Returns a schedule as lists of operations for any times; see `list_schedule_fn`.
inline constexpr list_schedule_fn list_schedule{};

}  // namespace omnibal::inline v0
