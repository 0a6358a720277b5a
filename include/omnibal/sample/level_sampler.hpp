// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The packs of each rank in each step of an epoch, with steps of the levels of a hierarchy in
/// turn.

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/sample/detail/epoch_walker.hpp>
#include <omnibal/sample/detail/scheduled_plan.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct level_sampler_options {
  /// The options for the schedules of the groups of each level; `carried` must be empty.
  schedule_steps_options schedule{};
  /// The number of steps at the beginning of epoch 0 that take only packs of the first level. If
  /// the first level has fewer steps in the epoch, all of its steps come first.
  std::uint64_t short_first_steps = 0;
};

/// The work of a rank in a step. All ranks are at the same level.
struct level_step {
  std::size_t level = 0;
  packing_level setting{};
  /// The groups of this rank, each shared by `setting.sequence` ranks; empty if the rank is idle.
  std::span<std::uint32_t const> groups{};
};

namespace detail {

/// Converts the numbers of packs that the levels leave over to one number, with a digit of a mixed
/// radix for each level, and back. A level leaves over fewer packs than it has. It also leaves over
/// fewer packs than a step of the largest possible number of ranks has.
class level_carry {
 public:
  level_carry(std::span<packed_level const> levels, std::uint64_t groups_per_rank) {
    for (packed_level const& level : levels) {
      auto const at_once = static_cast<std::uint64_t>(max_ranks) /
                           static_cast<std::uint64_t>(level.setting.sequence) * groups_per_rank;
      radices_.push_back(
          std::max<std::uint64_t>(1, std::min<std::uint64_t>(level.group_count, at_once)));
    }
  }

  /// Throws if the numbers of all levels do not fit into one number of 64 bits.
  void check_room(std::string_view function) const {
    uint128 product = 1;
    for (std::uint64_t const radix : radices_) {
      product *= radix;
      if (product <= std::numeric_limits<std::uint64_t>::max()) continue;
      throw_invalid(function, "options.schedule.remainder is carry, but what ", radices_.size(),
                    " levels with so many groups leave over fits no state");
    }
  }

  [[nodiscard]] std::uint64_t joined(std::span<std::uint64_t const> numbers) const {
    std::uint64_t result = 0;
    for (std::size_t level = radices_.size(); level-- != 0;) {
      result = result * radices_[level] + numbers[level];
    }
    return result;
  }

  /// Returns the number of packs that each level left over, from the joined number `carried`.
  /// Throws if no sampler of these levels could have this number in its state.
  [[nodiscard]] std::vector<std::uint64_t> split(std::string_view function, std::uint64_t carried,
                                                 std::uint64_t epoch) const {
    std::vector<std::uint64_t> result;
    result.reserve(radices_.size());
    std::uint64_t rest = carried;
    for (std::uint64_t const radix : radices_) {
      result.push_back(rest % radix);
      rest /= radix;
    }
    if (rest != 0 || (epoch == 0 && carried != 0)) {
      throw_invalid(function, "state.carried is ", carried, " in epoch ", epoch,
                    ", which these levels cannot have left over");
    }
    return result;
  }

 private:
  std::vector<std::uint64_t> radices_;
};

/// The steps of one epoch. Each level of the hierarchy is a part with its own schedules.
template <class Load, class Scheduler>
class level_plan : public scheduled_plan<Load, Scheduler> {
 public:
  using step_type = level_step;
  static constexpr std::string_view name = "level_sampler";

  template <class GroupLoads>
  level_plan(level_packing const& packed, GroupLoads const& loads, shard const& place,
             level_sampler_options const& options, Scheduler scheduler)
      : scheduled_plan<Load, Scheduler>(name, checked_loads<Load>(name, packed, loads), place,
                                        options.schedule, std::move(scheduler)),
        levels_(packed.levels),
        carry_(levels_, options.schedule.groups_per_rank),
        short_first_steps_(options.short_first_steps) {
    if (options.schedule.remainder == remainder_policy::carry) carry_.check_room(name);
  }

  [[nodiscard]] std::uint64_t digest() const {
    data_digest result;
    result.add(short_first_steps_);
    result.add(std::uint64_t{levels_.size()});
    for (packed_level const& level : levels_) {
      result.add(static_cast<std::uint64_t>(level.setting.length));
      result.add(static_cast<std::uint64_t>(level.setting.sequence));
      result.add(static_cast<std::uint64_t>(level.setting.checkpointed_layers));
      result.add(std::uint64_t{level.group_count});
    }
    this->add_to(result);
    return result.value();
  }

  void check(sampler_state const& state) const {
    check_digest(name, state.digest, digest(),
                 "packed, loads, options.schedule.max_dist_ratio, options.schedule.remainder, "
                 "options.schedule.groups_per_rank, options.schedule.even_positions, "
                 "options.schedule.rounds and options.short_first_steps");
    if (state.carried != 0 && this->options().remainder != remainder_policy::carry) {
      throw_invalid(name, "state.carried is ", state.carried, ", must be 0");
    }
    this->check_batches(name, state);
  }

  void plan(epoch_progress const& progress) {
    auto const carried = carry_.split(name, progress.carried(), progress.epoch());
    std::vector<scheduled_part> parts;
    parts.reserve(levels_.size());
    for (std::size_t level = 0; level != levels_.size(); ++level) {
      packed_level const& at = levels_[level];
      parts.push_back(
          {at.first_group, at.group_count, level_seed(progress.seed(), level), carried[level]});
    }
    std::uint64_t const short_first_steps = progress.epoch() == 0 ? short_first_steps_ : 0;
    this->plan_parts(
        name, progress, parts,
        [&](std::size_t level, std::size_t ranks) {
          return packs_per_step(name, level, levels_[level].setting, ranks);
        },
        [&](std::uint64_t first_step) {
          return short_first_steps - std::min(short_first_steps, first_step);
        });
  }

  [[nodiscard]] level_step at(std::uint64_t step) const {
    std::size_t const level = this->part_at(step);
    return {level, levels_[level].setting, this->groups_at(step)};
  }
  [[nodiscard]] std::uint64_t carried() const { return carry_.joined(this->left_over_parts()); }

 private:
  std::vector<packed_level> levels_;
  level_carry carry_;
  std::uint64_t short_first_steps_;
};

}  // namespace detail

/// Iterates over the packs of a hierarchy. Every step is of one level and therefore of one parallel
/// setting. The levels take turns evenly, and each group runs once in every epoch. In a step of a
/// level ranks [k * sequence, (k + 1) * sequence) share pack k. The packs of a step have similar
/// loads, as in `level_steps`. In the next epoch most packs share steps with other packs.
///
/// With `remainder_policy::carry` the packs of a level that do not fill a step are left over: in
/// the next epoch they run once more than the other packs. These packs are the last ones of a
/// random order of the epoch. A last step is then short only if a level has fewer packs than a step
/// or if the ranks changed within the epoch. The packs must be the same in every epoch.
///
/// A sampler resumes from its state after any step, also with another number of ranks. Groups that
/// have run do not run again, and the rest is scheduled for the present ranks. The state holds no
/// schedule; the constructor recomputes the schedules of the epoch up to its step. In an epoch the
/// ranks may change `max_rank_changes` times, which is eight times; `rank_changes_left()` returns
/// the number of remaining changes. All ranks must have the same arguments, except for their rank.
///
/// Complexity: the constructor and the first step of an epoch compute a schedule. The constructor
/// computes one more for each change of the ranks since the epoch began. All other calls are
/// constant time. Memory: the loads and 12 bytes for each step. During the computation of a
/// schedule also the memory of `schedule_steps`, 13 bytes and a load for each group. Only the
/// constructor and the first step of an epoch allocate. Determinism: portable for integers. Source:
/// Yao et al., "Hierarchical balance packing", NeurIPS 2025.
template <measure Load, step_scheduler<Load> Scheduler = schedule_steps_fn>
class level_sampler : public detail::epoch_walker<detail::level_plan<Load, Scheduler>> {
 public:
  /// Constructs a sampler at the beginning of epoch `options.epoch`. `loads` has a weight or
  /// resources for each group of `packed`, such as the sum of the squares of its lengths. The
  /// sampler copies both arguments. Errors: `std::invalid_argument` if there are no ranks or more
  /// than `max_ranks`, if a rank is not below their number, or if a degree does not divide their
  /// number. It is also thrown if the numbers of loads and groups differ, and if a load is negative
  /// or not finite. It is thrown as well if the numbers of packs that the levels may leave over do
  /// not fit into a state, for example with more than three levels of 2^20 groups. Further errors:
  /// the errors of `schedule_steps`.
  template <load_range<Load> GroupLoads>
  level_sampler(level_packing const& packed, GroupLoads const& loads, shard const& place,
                level_sampler_options const& options = {}, Scheduler schedule = {})
      : walker(plan_type(packed, loads, place, options, std::move(schedule)), options.schedule.seed,
               options.schedule.epoch) {}

  /// Constructs a sampler that continues from `state`, with the seed and epoch count of `state`
  /// instead of `options`. Errors: the errors of the other constructor, and `std::invalid_argument`
  /// if `state` belongs to other packs, loads or options. It is also thrown if no sampler could
  /// have `state`, and if the ranks changed more than `max_rank_changes` times within the epoch.
  template <load_range<Load> GroupLoads>
  level_sampler(level_packing const& packed, GroupLoads const& loads, shard const& place,
                level_sampler_options const& options, sampler_state const& state,
                Scheduler schedule = {})
      : walker(plan_type(packed, loads, place, options, std::move(schedule)), state) {}

  /// Deleted because two numbers could be swapped: write `{.ranks = 8, .rank = 0}`.
  template <load_range<Load> GroupLoads, std::integral Number, class... Others>
  level_sampler(level_packing const&, GroupLoads const&,
                Number /* a shard: {.ranks = ..., .rank = ...} */, Others const&...) = delete;

 private:
  using plan_type = detail::level_plan<Load, Scheduler>;
  using walker = detail::epoch_walker<plan_type>;
};

template <sample_range GroupLoads, std::integral Number, class... Others>
level_sampler(level_packing const&, GroupLoads const&, Number, Others const&...)
    -> level_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads,
          step_scheduler<std::ranges::range_value_t<GroupLoads const>> Scheduler>
level_sampler(level_packing const&, GroupLoads const&, shard const&, level_sampler_options const&,
              Scheduler) -> level_sampler<std::ranges::range_value_t<GroupLoads const>, Scheduler>;
template <sample_range GroupLoads, step_scheduler<std::ranges::range_value_t<GroupLoads const>>
                                       Scheduler = schedule_steps_fn>
level_sampler(level_packing const&, GroupLoads const&, shard const&,
              level_sampler_options const& = {}, sampler_state const& = {}, Scheduler = {})
    -> level_sampler<std::ranges::range_value_t<GroupLoads const>, Scheduler>;

}  // namespace omnibal::inline v0
