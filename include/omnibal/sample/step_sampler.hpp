// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The groups of each rank in each step of an epoch, scheduled so that the ranks of a step have
/// similar loads.

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/sample/detail/epoch_walker.hpp>
#include <omnibal/sample/detail/scheduled_plan.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A functor like `schedule_steps`. In its result every group is in one cell of a complete step,
/// and otherwise only in cells for which `steps::is_repeat` is true. The functor must return equal
/// steps for equal arguments. A sampler never passes `remainder_policy::carry` to the functor. It
/// leaves out the groups that are carried instead.
template <class Scheduler, class Load>
concept step_scheduler = requires(Scheduler const& schedule, std::span<Load const> loads,
                                  std::size_t ranks, schedule_steps_options const& options) {
  { std::invoke(schedule, loads, ranks, options) } -> std::same_as<steps>;
};

namespace detail {

/// The steps of one epoch, with one schedule of all groups.
template <class Load, class Scheduler>
class step_plan : public scheduled_plan<Load, Scheduler> {
 public:
  using step_type = std::span<std::uint32_t const>;
  static constexpr std::string_view name = "step_sampler";

  template <class GroupLoads>
  step_plan(GroupLoads const& loads, shard const& place, schedule_steps_options const& options,
            Scheduler scheduler)
      : scheduled_plan<Load, Scheduler>(name, copy_of(loads), place, options,
                                        std::move(scheduler)) {}

  [[nodiscard]] std::uint64_t digest() const {
    data_digest result;
    this->add_to(result);
    return result.value();
  }

  void check(sampler_state const& state) const {
    check_digest(name, state.digest, digest(),
                 "loads, options.max_dist_ratio, options.remainder, options.groups_per_rank, "
                 "options.even_positions and options.rounds");
    bool const is_carried = this->options().remainder == remainder_policy::carry;
    check_carried(name, state, is_carried ? this->loads().size() : 0);
    this->check_batches(name, state);
  }

  void plan(epoch_progress const& progress) {
    scheduled_part const all{0, static_cast<std::uint32_t>(this->loads().size()), progress.seed(),
                             progress.carried()};
    this->plan_parts(
        name, progress, std::span(&all, 1), [](std::size_t, std::size_t ranks) { return ranks; },
        [](std::uint64_t) { return std::uint64_t{0}; });
  }

  [[nodiscard]] step_type at(std::uint64_t step) const { return this->groups_at(step); }
  [[nodiscard]] std::uint64_t carried() const { return this->left_over(); }

 private:
  template <class GroupLoads>
  [[nodiscard]] static std::vector<Load> copy_of(GroupLoads const& loads) {
    check_index_count(name, "loads", std::ranges::size(loads));
    std::vector<Load> result(std::ranges::size(loads));
    std::copy_n(std::ranges::begin(loads), result.size(), result.begin());
    return result;
  }
};

}  // namespace detail

/// Iterates over the steps that a scheduler makes of the groups of each epoch. In each epoch every
/// group runs once, in the cells that `schedule_steps(loads, ranks, options)` returns for that
/// epoch.
///
/// A sampler resumes from its state after any step, also with another number of ranks. Groups that
/// have run do not run again, and the rest is scheduled for the present ranks. The state holds no
/// schedule; the constructor recomputes the schedules of the epoch up to its step. In an epoch the
/// ranks may change `max_rank_changes` times, which is eight times; `rank_changes_left()` returns
/// the number of remaining changes. All ranks must have the same arguments, except for their rank.
///
/// With `remainder_policy::carry` the groups that do not fill a step of the epoch are left over: in
/// the next epoch they run once more than the other groups. These groups are the last ones of a
/// random order of the epoch. A last step is short only if there are fewer groups than ranks or if
/// the ranks changed within the epoch. The groups must be the same in every epoch.
///
/// Complexity: the constructor and the first step of an epoch compute a schedule. The constructor
/// computes one more for each change of the ranks since the epoch began. All other calls are
/// constant time. Memory: the loads and the groups of this rank. During the computation of a
/// schedule also the memory of the scheduler, 10 bytes and a load for each group. Only the
/// constructor and the first step of an epoch allocate. Determinism: as the scheduler;
/// `schedule_steps` is portable for integers.
template <measure Load, step_scheduler<Load> Scheduler = schedule_steps_fn>
class step_sampler : public detail::epoch_walker<detail::step_plan<Load, Scheduler>> {
 public:
  /// Constructs a sampler at the beginning of epoch `options.epoch`. `loads` is a range of weights
  /// or resources, which the sampler copies. Errors: `std::invalid_argument` if there are no ranks
  /// or more than `max_ranks`, if a rank is not below their number, if `options.carried` has
  /// groups, and if the scheduler omits or repeats groups. Further errors: `std::length_error` if
  /// there are more than 2^32 - 1 groups; the errors of the scheduler.
  template <load_range<Load> GroupLoads>
  step_sampler(GroupLoads const& loads, shard const& place,
               schedule_steps_options const& options = {}, Scheduler schedule = {})
      : walker(plan_type(loads, place, options, std::move(schedule)), options.seed, options.epoch) {
  }

  /// Constructs a sampler that continues from `state`, with the seed and epoch count of `state`
  /// instead of `options`. Errors: the errors of the other constructor, and `std::invalid_argument`
  /// if `state` belongs to other loads or options, if no sampler could have `state`, and if the
  /// ranks changed more than `max_rank_changes` times within the epoch.
  template <load_range<Load> GroupLoads>
  step_sampler(GroupLoads const& loads, shard const& place, schedule_steps_options const& options,
               sampler_state const& state, Scheduler schedule = {})
      : walker(plan_type(loads, place, options, std::move(schedule)), state) {}

  /// Deleted because two numbers could be swapped: write `{.ranks = 8, .rank = 0}`.
  template <load_range<Load> GroupLoads, std::integral Number, class... Others>
  step_sampler(GroupLoads const&, Number /* a shard: {.ranks = ..., .rank = ...} */,
               Others const&...) = delete;

 private:
  using plan_type = detail::step_plan<Load, Scheduler>;
  using walker = detail::epoch_walker<plan_type>;
};

template <sample_range GroupLoads, std::integral Number, class... Others>
step_sampler(GroupLoads const&, Number, Others const&...)
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads,
          step_scheduler<std::ranges::range_value_t<GroupLoads const>> Scheduler>
step_sampler(GroupLoads const&, shard const&, schedule_steps_options const&, Scheduler)
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>, Scheduler>;
template <sample_range GroupLoads, step_scheduler<std::ranges::range_value_t<GroupLoads const>>
                                       Scheduler = schedule_steps_fn>
step_sampler(GroupLoads const&, shard const&, schedule_steps_options const& = {},
             sampler_state const& = {}, Scheduler = {})
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>, Scheduler>;

}  // namespace omnibal::inline v0
