#pragma once

/// \file
/// The groups of each rank in each step of an epoch, with even steps.

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/detail/epoch_progress.hpp>
#include <omnibal/sample/detail/group_pool.hpp>
#include <omnibal/sample/sampler_state.hpp>
#include <omnibal/sample/shard.hpp>
#include <omnibal/steps.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A functor like `schedule_steps`: every group is in one cell of a complete step, and in others
/// only where `steps::is_repeat` says so. It must give equal steps for equal arguments. It is never
/// asked to carry: the sampler hands it the groups that are to run.
template <class Scheduler, class Load>
concept step_scheduler = requires(Scheduler const& schedule, std::span<Load const> loads,
                                  std::size_t ranks, schedule_steps_options const& options) {
  { std::invoke(schedule, loads, ranks, options) } -> std::same_as<steps>;
};

/// Loads of groups, given as a range of what converts to `Load`.
template <class Range, class Load>
concept load_range = sample_range<Range> && std::convertible_to<sample_reference<Range>, Load>;

/// Walks the steps that a scheduler makes of the groups of each epoch. In each epoch every group
/// runs once, in the cells that `schedule_steps(loads, ranks, options)` gives for that epoch.
///
/// Resumes from its state after any step, also with another number of ranks: what has run stays
/// run, and the rest is scheduled again for the present ranks. The state holds no schedule; those
/// of the epoch so far are made again. All ranks must be given the same arguments but for their
/// rank.
///
/// With `remainder_policy::carry` what does not fill a step of the epoch, the last groups of a
/// random order of it, runs once more than the others in the next epoch; a last step is short only
/// where there are fewer groups than ranks or where the ranks changed within the epoch. The groups
/// must be the same in every epoch then.
///
/// Complexity: the constructor and the first step of an epoch make a schedule, the constructor one
/// more for each change of the ranks since the epoch began; all else is constant time. Memory:
/// the loads and the groups of this rank; while a schedule is made that of the scheduler and 10
/// bytes and a load per group. Only the constructor and the first step of an epoch allocate.
/// Determinism: that of the scheduler; `schedule_steps` is portable for integers.
template <amount Load, step_scheduler<Load> Scheduler = schedule_steps_fn>
class step_sampler {
 public:
  /// At the begin of epoch `options.epoch`. `loads` is a range of weights or resources and is
  /// copied. Errors: `std::invalid_argument` for no ranks, more than `most_ranks`, a rank that is
  /// not below their number, groups in `options.carried`, and a scheduler that loses or doubles
  /// groups; `std::length_error` above 2^32 - 1 groups; those of the scheduler.
  template <load_range<Load> GroupLoads>
  step_sampler(GroupLoads const& loads, shard const& place,
               schedule_steps_options const& options = {}, Scheduler schedule = {})
      : step_sampler(copy_of(loads), place, options, std::move(schedule)) {
    start({.seed = options.seed, .epoch = options.epoch, .digest = digest()});
  }

  /// Where `state` was taken; its seed and epoch count, not those of `options`. Errors: as above,
  /// and `std::invalid_argument` for a state of other loads or options, for one that no sampler
  /// could have, and where the ranks changed within the epoch for the time number
  /// `most_rank_changes + 1`.
  template <load_range<Load> GroupLoads>
  step_sampler(GroupLoads const& loads, shard const& place, schedule_steps_options const& options,
               sampler_state const& state, Scheduler schedule = {})
      : step_sampler(copy_of(loads), place, options, std::move(schedule)) {
    detail::check_digest(name, state, digest(),
                         "loads, options.max_dist_ratio, options.remainder and options.rounds");
    start(state);
  }

  /// Two numbers could be swapped: write `{.ranks = 8, .rank = 0}`.
  template <load_range<Load> GroupLoads, std::integral Number, class... Others>
  step_sampler(GroupLoads const&, Number /* a shard: {.ranks = ..., .rank = ...} */,
               Others const&...) = delete;

  /// The groups of this rank in the next step; none where it is idle. After the last step of an
  /// epoch it is the first of the next epoch. Valid until the next epoch begins, and as long as the
  /// sampler; a temporary has none. Errors: `std::invalid_argument` where there are no groups at all;
  /// those of the scheduler.
  [[nodiscard]] std::span<std::uint32_t const> next() & {
    if (loads_.empty()) detail::throw_invalid(next_name, "there are no groups");
    if (done()) {
      detail::epoch_progress next_epoch = progress_;
      next_epoch.start_next_epoch(left_over_);
      plan(next_epoch);
    }
    std::uint64_t const run = progress_.present().step_count;
    progress_.set_present_steps(run + 1);
    return mine_(static_cast<std::size_t>(run), 0);
  }

  /// The groups of this rank in a step of the epoch. Errors: `std::invalid_argument` for a step
  /// that the epoch does not have or that ran with other ranks.
  [[nodiscard]] std::span<std::uint32_t const> operator()(std::uint64_t step) const& {
    return mine_(present_step(name, step), 0);
  }
  void next() && = delete;
  void operator()(std::uint64_t step) const&& = delete;

  /// True where the groups that `next` gave last are repetitions that fill a step, so that a loss
  /// can leave them out. Before the first step with the present ranks false.
  [[nodiscard]] bool is_repeat() const {
    std::uint64_t const run = progress_.present().step_count;
    return run != 0 && mine_.is_repeat(static_cast<std::size_t>(run - 1), 0);
  }

  /// The same of a step of the epoch: of `step()` that which comes. At the end of the epoch, where
  /// none comes, false: `next` makes the steps of the next epoch. Errors: as above, but for
  /// `step_count()`.
  [[nodiscard]] bool is_repeat(std::uint64_t step) const {
    if (step == step_count()) return false;
    return mine_.is_repeat(present_step("step_sampler::is_repeat", step), 0);
  }

  /// True where all steps of the epoch have run.
  [[nodiscard]] bool done() const { return progress_.present().step_count == mine_.size(); }

  [[nodiscard]] std::uint64_t epoch() const { return progress_.epoch(); }
  /// The number of steps of the epoch that have run; the index of the next one.
  [[nodiscard]] std::uint64_t step() const { return progress_.step(); }
  /// The number of steps of the epoch, those that ran with other ranks included.
  [[nodiscard]] std::uint64_t step_count() const { return progress_.first_step() + mine_.size(); }
  /// The number of groups that this epoch leaves for the next one.
  [[nodiscard]] std::uint64_t left_over() const { return left_over_; }

  /// What a checkpoint must hold; the same on all ranks.
  [[nodiscard]] sampler_state state() const { return progress_.state(); }

 private:
  static constexpr std::string_view name = "step_sampler";
  static constexpr std::string_view next_name = "step_sampler::next";

  struct own_loads {
    std::vector<Load> values;
  };

  template <class GroupLoads>
  [[nodiscard]] static own_loads copy_of(GroupLoads const& loads) {
    detail::check_index_count(name, "loads", std::ranges::size(loads));
    own_loads result;
    result.values.reserve(std::ranges::size(loads));
    for (auto&& load : loads) result.values.push_back(load);
    return result;
  }

  step_sampler(own_loads own, shard const& place, schedule_steps_options const& options,
               Scheduler schedule)
      : loads_(std::move(own.values)),
        place_(place),
        options_(options),
        schedule_(std::move(schedule)),
        progress_(name, {}, detail::segment_of(name, place, 1)) {
    if (!options.carried.empty()) {
      detail::throw_invalid(name, "options.carried has " + detail::to_text(options.carried.size()) +
                                      " groups, a sampler finds them itself");
    }
  }

  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    result.add(options_.max_dist_ratio);
    result.add(static_cast<std::uint64_t>(options_.remainder));
    result.add(std::uint64_t{options_.rounds});
    result.add(std::uint64_t{loads_.size()});
    result.add(std::uint64_t{detail::kinds_of<Load>});
    for (Load const& load : loads_) result.add_amounts(load);
    return result.value();
  }

  void start(sampler_state const& state) {
    bool const is_carried = options_.remainder == remainder_policy::carry;
    detail::check_carried(name, state, is_carried ? loads_.size() : 0);
    for (sampler_segment const& segment : state.segments) {
      if (segment.batch <= 1) continue;
      detail::throw_invalid(name, "state.segments has a batch of " +
                                      detail::to_text(segment.batch) + " groups, must be 1");
    }
    plan(detail::epoch_progress(name, state, progress_.present()));
    if (!done()) progress_.check_room(name);
  }

  /// Goes to an epoch: makes its schedules, one for each change of the ranks, and keeps what this
  /// rank has of the last.
  void plan(detail::epoch_progress const& progress) {
    detail::check_index_count(name, "loads and the carried groups",
                              loads_.size() + progress.carried());
    detail::group_pool pool(loads_.size(), progress.seed(), progress.epoch(), progress.carried());
    for (sampler_segment const& segment : progress.ended()) {
      auto const offered = pool.offer(segment.ranks, options_.remainder);
      steps const schedule = schedule_of(progress, segment, pool, offered);
      pool.take(offered, schedule, static_cast<std::size_t>(segment.step_count));
    }
    auto const offered = pool.offer(place_.ranks, options_.remainder);
    steps const schedule = schedule_of(progress, progress.present(), pool, offered);

    mine_.clear();
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::uint32_t const index : schedule(step, place_.rank)) {
        mine_.push(pool.group_of(offered[index]));
      }
      if (schedule.is_repeat(step, place_.rank)) {
        mine_.close_repeat();
      } else {
        mine_.close();
      }
    }
    progress_ = progress;
    left_over_ = pool.left_over();
  }

  /// The schedule of these entries for the ranks of a segment; throws where it has fewer steps.
  [[nodiscard]] steps schedule_of(detail::epoch_progress const& progress,
                                  sampler_segment const& segment, detail::group_pool const& pool,
                                  std::vector<std::uint32_t> const& offered) const {
    std::vector<Load> loads;
    loads.reserve(offered.size());
    for (std::uint32_t const entry : offered) loads.push_back(loads_[pool.group_of(entry)]);
    bool const is_carried = options_.remainder == remainder_policy::carry;
    schedule_steps_options const options{
        .seed = progress.seed(),
        .epoch = progress.epoch(),
        .max_dist_ratio = options_.max_dist_ratio,
        .remainder = is_carried ? remainder_policy::short_step : options_.remainder,
        .rounds = options_.rounds};
    steps result = std::invoke(schedule_, std::span<Load const>(loads), segment.ranks, options);
    detail::check_schedule(name, result, segment.ranks, offered.size());
    if (segment.step_count > result.size()) {
      detail::throw_invalid(name, "state.segments has " + detail::to_text(segment.step_count) +
                                      " steps of " + detail::to_text(segment.ranks) +
                                      " ranks where the epoch has " +
                                      detail::to_text(result.size()));
    }
    return result;
  }

  /// The place of a step among those of the present ranks.
  [[nodiscard]] std::size_t present_step(std::string_view function, std::uint64_t step) const {
    std::uint64_t const first = progress_.first_step();
    if (step >= first && step < step_count()) return static_cast<std::size_t>(step - first);
    detail::throw_invalid(function, "step is " + detail::to_text(step) + ", must be in [" +
                                        detail::to_text(first) + ", " +
                                        detail::to_text(step_count()) + ")");
  }

  std::vector<Load> loads_;
  shard place_;
  schedule_steps_options options_;
  Scheduler schedule_;
  detail::epoch_progress progress_;
  steps mine_{1};
  std::uint64_t left_over_ = 0;
};

template <sample_range GroupLoads>
step_sampler(GroupLoads const&, shard const&, schedule_steps_options const& = {})
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads>
step_sampler(GroupLoads const&, shard const&, schedule_steps_options const&, sampler_state const&)
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads, std::integral Number, class... Others>
step_sampler(GroupLoads const&, Number, Others const&...)
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads,
          step_scheduler<std::ranges::range_value_t<GroupLoads const>> Scheduler>
step_sampler(GroupLoads const&, shard const&, schedule_steps_options const&, Scheduler)
    -> step_sampler<std::ranges::range_value_t<GroupLoads const>, Scheduler>;
template <sample_range GroupLoads,
          step_scheduler<std::ranges::range_value_t<GroupLoads const>> Scheduler>
step_sampler(GroupLoads const&, shard const&, schedule_steps_options const&, sampler_state const&,
             Scheduler) -> step_sampler<std::ranges::range_value_t<GroupLoads const>, Scheduler>;

}  // namespace omnibal::inline v0
