#pragma once

/// \file
/// The packs of each rank in each step, the levels of a hierarchy in turn.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/schedule_level.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/packing_level.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/detail/epoch_progress.hpp>
#include <omnibal/sample/level_sampler/level_epoch.hpp>
#include <omnibal/sample/sampler_state.hpp>
#include <omnibal/sample/shard.hpp>
#include <omnibal/steps.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct level_sampler_options {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  /// How uneven the loads of a step may be; see `schedule_steps_options`.
  double max_dist_ratio = 0.002;
  /// For the last step of each level.
  remainder_policy remainder = remainder_policy::short_step;
  /// So many steps of epoch 0, the first ones, take packs of the first level only, as long as there
  /// are any.
  std::uint64_t short_first_steps = 0;
};

/// What a rank does in a step. All ranks are at the same level.
struct level_step {
  std::size_t level = 0;
  packing_level setting{};
  /// The groups of this rank, which `setting.sequence` ranks share; none where it is idle.
  std::span<std::uint32_t const> groups{};
};

/// Walks the packs of a hierarchy: every step is of one level, and so of one parallel setting, the
/// levels take turns evenly, and in every epoch each group runs once. In a step of a level ranks
/// [k * sequence, (k + 1) * sequence) share pack k; the packs of a step have even loads, as
/// `level_steps` makes them, and most of them meet others in the next epoch.
///
/// With `remainder_policy::carry` the packs of a level that do not fill a step of it, the last of a
/// random order of the epoch, run once more than the others in the next epoch, so that a last step
/// is short only where a level has fewer packs than a step or where the ranks changed within the
/// epoch. The packs must be the same in every epoch then.
///
/// Resumes from its state after any step, also with another number of ranks: what has run stays
/// run, and the rest is scheduled again for the present ranks. The state holds no schedule; those of
/// the epoch so far are made again. All ranks must be given the same arguments but for their rank.
///
/// Complexity: the constructor and the first step of an epoch make a schedule, the constructor one
/// more for each change of the ranks since the epoch began; all else is constant time. Memory: the
/// loads and 12 bytes for each step; while a schedule is made that of `schedule_steps`, and 13 bytes
/// and a load per group. Only the constructor and the first step of an epoch allocate. Determinism:
/// portable for integers. Source: Yao et al., "Hierarchical balance packing", NeurIPS 2025.
template <amount Load>
class level_sampler {
 public:
  /// At the begin of epoch `options.epoch`. `loads` has a weight or resources for each group
  /// of `packed`, such as its sum of squares; both are copied. Errors: `std::invalid_argument` for
  /// no ranks, more than `most_ranks`, a rank that is not below their number, a degree that does
  /// not divide it, another number of loads than groups, a load that is negative or not finite, and
  /// levels with so many groups that no state can say how many each carries (more than three of 2^20
  /// and more); those of `schedule_steps`.
  template <detail::loads_as<Load> GroupLoads>
  level_sampler(level_packing const& packed, GroupLoads const& loads, shard const& place,
                level_sampler_options const& options = {})
      : level_sampler(own_data(packed, loads), place, options) {
    plan(progress_);
  }

  /// Where `state` was taken; its seed and epoch count, not those of `options`. Errors: as above,
  /// and `std::invalid_argument` for a state of other packs, loads or options, for one that no
  /// sampler could have, and where the ranks changed within the epoch for the time number
  /// `most_rank_changes + 1`.
  template <detail::loads_as<Load> GroupLoads>
  level_sampler(level_packing const& packed, GroupLoads const& loads, shard const& place,
                level_sampler_options const& options, sampler_state const& state)
      : level_sampler(own_data(packed, loads), place, options) {
    detail::check_digest(name, state, digest(),
                         "packed, loads, options.max_dist_ratio, options.remainder and "
                         "options.short_first_steps");
    check_state(state);
    plan(detail::epoch_progress(name, state, progress_.present()));
    if (!done()) progress_.check_room(name);
  }

  /// Two numbers could be swapped: write `{.ranks = 8, .rank = 0}`.
  template <detail::loads_as<Load> GroupLoads, std::integral Number, class... Others>
  level_sampler(level_packing const&, GroupLoads const&,
                Number /* a shard: {.ranks = ..., .rank = ...} */, Others const&...) = delete;

  /// What this rank does in the next step. After the last step of an epoch it is the first of the
  /// next epoch. Valid until the next epoch begins, and as long as the sampler; a temporary has none.
  /// Errors: `std::invalid_argument` where there are no groups at all.
  [[nodiscard]] level_step next() & {
    if (loads_.empty()) detail::throw_invalid("level_sampler::next", "there are no groups");
    if (done()) {
      detail::epoch_progress next_epoch = progress_;
      next_epoch.start_next_epoch(carry_.joined(left_over_));
      plan(next_epoch);
    }
    std::uint64_t const run = progress_.present().step_count;
    progress_.set_present_steps(run + 1);
    return step_at(static_cast<std::size_t>(run));
  }

  /// What this rank does in a step of the epoch. Errors: `std::invalid_argument` for a step that the
  /// epoch does not have or that ran with other ranks.
  [[nodiscard]] level_step operator()(std::uint64_t step) const& {
    return step_at(present_step(name, step));
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
    return mine_.is_repeat(present_step("level_sampler::is_repeat", step), 0);
  }

  /// True where all steps of the epoch have run.
  [[nodiscard]] bool done() const { return progress_.present().step_count == mine_.size(); }

  [[nodiscard]] std::uint64_t epoch() const { return progress_.epoch(); }
  /// The number of steps of the epoch that have run; the index of the next one.
  [[nodiscard]] std::uint64_t step() const { return progress_.step(); }
  /// The number of steps of the epoch, those that ran with other ranks included.
  [[nodiscard]] std::uint64_t step_count() const { return progress_.first_step() + mine_.size(); }

  /// The number of groups that this epoch leaves for the next one.
  [[nodiscard]] std::uint64_t left_over() const {
    return std::accumulate(left_over_.begin(), left_over_.end(), std::uint64_t{0});
  }

  /// What a checkpoint must hold; the same on all ranks. Its `carried` stands for the numbers of
  /// groups of all levels.
  [[nodiscard]] sampler_state state() const { return progress_.state(); }

 private:
  static constexpr std::string_view name = "level_sampler";

  struct own_data {
    template <class GroupLoads>
    own_data(level_packing const& packed, GroupLoads const& given)
        : levels(packed.levels), loads(detail::checked_loads<Load>(name, packed, given)) {}

    std::vector<packed_level> levels;
    std::vector<Load> loads;
  };

  level_sampler(own_data data, shard const& place, level_sampler_options const& options)
      : levels_(std::move(data.levels)),
        loads_(std::move(data.loads)),
        carry_(levels_),
        place_(place),
        options_(options),
        progress_(name, {}, detail::segment_of(name, place, 1)) {
    if (options.remainder == remainder_policy::carry) carry_.check_room(name);
    progress_ = detail::epoch_progress(
        name, {.seed = options.seed, .epoch = options.epoch, .digest = digest()},
        progress_.present());
  }

  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    result.add(options_.max_dist_ratio);
    result.add(static_cast<std::uint64_t>(options_.remainder));
    result.add(options_.short_first_steps);
    result.add(std::uint64_t{levels_.size()});
    for (packed_level const& level : levels_) {
      result.add(static_cast<std::uint64_t>(level.setting.length));
      result.add(static_cast<std::uint64_t>(level.setting.sequence));
      result.add(static_cast<std::uint64_t>(level.setting.checkpointed_layers));
      result.add(std::uint64_t{level.group_count});
    }
    result.add(std::uint64_t{detail::kinds_of<Load>});
    for (Load const& load : loads_) result.add_amounts(load);
    return result.value();
  }

  void check_state(sampler_state const& state) const {
    if (state.carried != 0 && options_.remainder != remainder_policy::carry) {
      detail::throw_invalid(name,
                            "state.carried is " + detail::to_text(state.carried) + ", must be 0");
    }
    for (sampler_segment const& segment : state.segments) {
      if (segment.batch <= 1) continue;
      detail::throw_invalid(name, "state.segments has a batch of " +
                                      detail::to_text(segment.batch) + " groups, must be 1");
    }
  }

  /// Goes to an epoch: makes its schedules, one for each change of the ranks, and keeps what this
  /// rank has of the last.
  void plan(detail::epoch_progress const& progress) {
    detail::level_epoch<Load> epoch(levels_, loads_,
                                    {.seed = progress.seed(),
                                     .epoch = progress.epoch(),
                                     .max_dist_ratio = options_.max_dist_ratio,
                                     .remainder = options_.remainder},
                                    carry_.split(name, progress.carried(), progress.epoch()));
    std::uint64_t first_step = 0;
    for (sampler_segment const& segment : progress.ended()) {
      epoch.schedule(name, segment.ranks);
      check_steps(segment, epoch.step_count());
      epoch.run(segment.step_count, short_first(progress, first_step));
      first_step += segment.step_count;
    }
    epoch.schedule(name, place_.ranks);
    check_steps(progress.present(), epoch.step_count());
    mine_.clear();
    turns_.clear();
    epoch.for_each_turn(
        short_first(progress, first_step), [&](std::size_t level, std::size_t step) {
          auto const sequence = static_cast<std::size_t>(levels_[level].setting.sequence);
          turns_.push_back(static_cast<std::uint32_t>(level));
          epoch.append_cell(level, step, place_.rank / sequence, mine_);
        });
    progress_ = progress;
    left_over_ = epoch.left_over();
  }

  /// How many steps take short packs only from this one of the epoch on.
  [[nodiscard]] std::uint64_t short_first(detail::epoch_progress const& progress,
                                          std::uint64_t first_step) const {
    bool const is_begin = progress.epoch() == 0 && first_step < options_.short_first_steps;
    return is_begin ? options_.short_first_steps - first_step : 0;
  }

  /// Throws where the epoch has fewer steps than the segment.
  static void check_steps(sampler_segment const& segment, std::uint64_t step_count) {
    if (segment.step_count <= step_count) return;
    detail::throw_invalid(name, "state.segments has " + detail::to_text(segment.step_count) +
                                    " steps of " + detail::to_text(segment.ranks) +
                                    " ranks where the epoch has " + detail::to_text(step_count));
  }

  [[nodiscard]] level_step step_at(std::size_t present) const {
    std::size_t const level = turns_[present];
    return {level, levels_[level].setting, mine_(present, 0)};
  }

  /// The place of a step among those of the present ranks.
  [[nodiscard]] std::size_t present_step(std::string_view function, std::uint64_t step) const {
    std::uint64_t const first = progress_.first_step();
    if (step >= first && step < step_count()) return static_cast<std::size_t>(step - first);
    detail::throw_invalid(function, "step is " + detail::to_text(step) + ", must be in [" +
                                        detail::to_text(first) + ", " +
                                        detail::to_text(step_count()) + ")");
  }

  std::vector<packed_level> levels_;
  std::vector<Load> loads_;
  detail::level_carry carry_;
  shard place_;
  level_sampler_options options_;
  detail::epoch_progress progress_;
  /// The groups of this rank in each step of the present ranks, and the level of each.
  steps mine_{1};
  std::vector<std::uint32_t> turns_;
  /// Of each level.
  std::vector<std::uint64_t> left_over_;
};

template <sample_range GroupLoads>
level_sampler(level_packing const&, GroupLoads const&, shard const&,
              level_sampler_options const& = {})
    -> level_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads, std::integral Number, class... Others>
level_sampler(level_packing const&, GroupLoads const&, Number, Others const&...)
    -> level_sampler<std::ranges::range_value_t<GroupLoads const>>;
template <sample_range GroupLoads>
level_sampler(level_packing const&, GroupLoads const&, shard const&, level_sampler_options const&,
              sampler_state const&) -> level_sampler<std::ranges::range_value_t<GroupLoads const>>;

}  // namespace omnibal::inline v0
