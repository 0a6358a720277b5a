// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The steps of an epoch that have run, and the iteration from epoch to epoch.

#include <omnibal/check.hpp>
#include <omnibal/sample/epoch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace omnibal::inline v0::detail {

/// Returns the number of samples or groups that all ranks together take in a step of this segment.
[[nodiscard]] constexpr std::uint64_t taken_per_step(sampler_segment const& segment) {
  return std::uint64_t{segment.ranks} * segment.batch;
}

/// Returns a segment without steps for these ranks. Throws if the arguments are invalid.
[[nodiscard]] inline sampler_segment segment_of(std::string_view function, shard const& place,
                                                std::uint64_t batch) {
  check_positive(function, "shard.ranks", place.ranks);
  if (place.rank >= place.ranks) {
    throw_invalid(function, "shard.rank is ", place.rank, ", but there are ", place.ranks,
                  " ranks");
  }
  check_positive(function, "options.batch", batch);
  if (place.ranks > max_ranks) {
    throw_invalid(function, "shard.ranks is ", place.ranks, ", must be at most ", max_ranks);
  }
  check_number(function, "options.batch", batch);
  check_number(function, "shard.ranks * options.batch", place.ranks * batch);
  return {static_cast<std::uint32_t>(place.ranks), static_cast<std::uint32_t>(batch), 0};
}

/// Throws if an epoch of this number of samples or groups could not have left over `state.carried`.
/// The number left over is below the number of all samples or groups, and below the largest
/// possible number in a step.
inline void check_carried(std::string_view function, sampler_state const& state,
                          std::uint64_t count) {
  std::uint64_t const most =
      state.epoch == 0 || count == 0 ? 0 : std::min<std::uint64_t>(count, max_index_count) - 1;
  if (state.carried <= most) return;
  throw_invalid(function, "state.carried is ", state.carried, " in epoch ", state.epoch, " of ",
                count, ", at most ", most, " can be left over");
}

/// Makes room in the full state of a sampler whose next steps depend only on the number of samples
/// taken. One or two segments of a single rank replace the three oldest segments, with the same
/// number of steps and of samples. The batches of the new segments are the average number of
/// samples in a step, rounded down and rounded up. Precondition: no step of these segments was
/// short. Returns the number of segments left.
[[nodiscard]] inline std::size_t merge_oldest(sampler_state& state) {
  std::span<sampler_segment> const all(state.segments);
  std::uint64_t taken = 0;
  std::uint64_t step_count = 0;
  for (sampler_segment const& oldest : all.first(3)) {
    taken += taken_per_step(oldest) * oldest.step_count;
    step_count += oldest.step_count;
  }
  auto const batch = static_cast<std::uint32_t>(taken / step_count);
  std::uint64_t const larger_steps = taken % step_count;
  std::size_t count = 0;
  all[count++] = {1, batch, step_count - larger_steps};
  if (larger_steps != 0) all[count++] = {1, batch + 1, larger_steps};
  for (std::size_t i = 3; i != all.size(); ++i) {
    if (all[i].ranks == all[count - 1].ranks && all[i].batch == all[count - 1].batch) {
      all[count - 1].step_count += all[i].step_count;
    } else {
      all[count++] = all[i];
    }
  }
  std::fill(all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), sampler_segment{});
  return count;
}

/// The segments of the current epoch: the segments that have ended and the segment of the present
/// ranks.
class epoch_progress {
 public:
  /// Continues from `state` with the ranks of `present`, a segment without steps. Throws if no
  /// sampler could have `state`.
  epoch_progress(std::string_view function, sampler_state const& state,
                 sampler_segment const& present)
      : ended_(state), ended_count_(count_segments(function, state)), present_(present) {
    if (ended_count_ == 0) return;
    sampler_segment& last = ended_.segments[ended_count_ - 1];
    if (!same_ranks(last, present)) return;
    present_.step_count = last.step_count;
    last = {};
    --ended_count_;
  }

  [[nodiscard]] std::uint64_t seed() const { return ended_.seed; }
  [[nodiscard]] std::uint64_t epoch() const { return ended_.epoch; }
  [[nodiscard]] std::uint64_t carried() const { return ended_.carried; }

  /// Returns the segments that ended before the present ranks took over, oldest first.
  [[nodiscard]] std::span<sampler_segment const> ended() const {
    return {ended_.segments, ended_count_};
  }
  /// Returns the segment of the present ranks.
  [[nodiscard]] sampler_segment const& present() const { return present_; }

  /// Returns the number of steps before the steps of the present ranks.
  [[nodiscard]] std::uint64_t first_step() const {
    std::uint64_t result = 0;
    for (sampler_segment const& segment : ended()) result += segment.step_count;
    return result;
  }
  [[nodiscard]] std::uint64_t step() const { return first_step() + present_.step_count; }

  /// Returns the state. If `merges` is true and there is no room for the present segment, the
  /// oldest segments are merged.
  [[nodiscard]] sampler_state state(bool merges) const {
    sampler_state result = ended_;
    if (present_.step_count == 0) return result;
    bool const is_full = merges && ended_count_ > max_rank_changes;
    result.segments[is_full ? merge_oldest(result) : ended_count_] = present_;
    return result;
  }

  /// Returns the number of remaining changes of the ranks that a state of this epoch can hold.
  [[nodiscard]] std::size_t changes_left() const {
    return max_rank_changes - std::min(ended_count_, max_rank_changes);
  }

  void set_present_steps(std::uint64_t step_count) { present_.step_count = step_count; }

  void start_next_epoch(std::uint64_t carried) {
    ended_ = {.seed = ended_.seed,
              .epoch = ended_.epoch + 1,
              .digest = ended_.digest,
              .carried = carried};
    ended_count_ = 0;
    present_.step_count = 0;
  }

  /// Throws if a state has no room for a segment of the present ranks.
  void check_room(std::string_view function) const {
    if (ended_count_ <= max_rank_changes) return;
    throw_invalid(function, "the ranks changed ", ended_count_, " times in epoch ", ended_.epoch,
                  ", a state holds at most ", max_rank_changes, " changes: continue with ",
                  ended_.segments[max_rank_changes].ranks,
                  " ranks, other ranks can start the next epoch");
  }

 private:
  [[nodiscard]] static bool same_ranks(sampler_segment const& left, sampler_segment const& right) {
    return left.ranks == right.ranks && left.batch == right.batch;
  }

  /// Returns the number of segments in a state. Throws if the segments cannot belong to one epoch.
  [[nodiscard]] static std::size_t count_segments(std::string_view function,
                                                  sampler_state const& state) {
    std::size_t count = 0;
    for (std::size_t i = 0; i != max_rank_changes + 1; ++i) {
      sampler_segment const& segment = state.segments[i];
      if (segment == sampler_segment{}) continue;
      if (i != count) throw_segment(function, i, "follows an empty segment");
      if (segment.step_count == 0 || taken_per_step(segment) == 0 || segment.ranks > max_ranks) {
        throw_segment(function, i, "has ", segment.ranks, " ranks, batch ", segment.batch, " and ",
                      segment.step_count, " steps, must be positive and at most ", max_ranks,
                      " ranks");
      }
      if (i != 0 && same_ranks(segment, state.segments[i - 1])) {
        throw_segment(function, i, "has the ranks of the segment before it");
      }
      ++count;
    }
    return count;
  }

  template <class... Fault>
  [[noreturn]] static void throw_segment(std::string_view function, std::size_t index,
                                         Fault... fault) {
    throw_invalid(function, "state.segments[", index, "] ", fault...);
  }

  sampler_state ended_;
  std::size_t ended_count_;
  sampler_segment present_;
};

/// Iterates over the steps that a plan makes of each epoch: the common part of all samplers.
///
/// A `Plan` has these members. `name` is the name of the sampler, and `things` is the word for its
/// items in error texts. The member `lends` is true if the steps are spans of memory of the plan,
/// some of which may be repetitions. The member `counts_only` is true if steps depend on the number
/// of samples taken and not on the ranks that took them. Then old segments can be merged. The
/// result of `present()` is a segment of the present ranks without steps, `digest()` identifies the
/// data of the plan, and `check(state)` throws for a state of other data. The function
/// `plan(progress)` computes the steps of an epoch for the present ranks. The functions
/// `step_count()`, `at(step)` and `is_repeat(step)` describe these steps. `left_over()` is the
/// number of items left over for the next epoch, and `carried()` is the number that a state records
/// for them.
template <class Plan>
class epoch_walker {
 public:
  using step_type = typename Plan::step_type;

  /// Returns the work of this rank in the next step, which is empty if the rank is idle. After the
  /// last step of an epoch, the next step is the first step of the next epoch. Spans are valid
  /// until the next epoch begins or the sampler is destroyed; a temporary returns no spans. Errors:
  /// `std::invalid_argument` if there are no samples or groups; the errors of the scheduler.
  [[nodiscard]] step_type next() & {
    if (plan_.empty()) throw_invalid(member("::next"), "there are no ", Plan::things);
    if (done()) {
      epoch_progress next_epoch = progress_;
      next_epoch.start_next_epoch(plan_.carried());
      go_to(next_epoch);
    }
    std::uint64_t const run = progress_.present().step_count;
    progress_.set_present_steps(run + 1);
    return plan_.at(run);
  }
  [[nodiscard]] step_type next() && requires(!Plan::lends) { return next(); }

  /// Returns the work of this rank in a step of the epoch. Errors: `std::invalid_argument` if the
  /// epoch does not have the step or if the step ran with other ranks.
  [[nodiscard]] step_type operator()(std::uint64_t step) const& {
    return plan_.at(present_step("", step, step_count()));
  }
  void operator()(std::uint64_t step) const&& requires(Plan::lends) = delete;

  /// Returns true if the groups that the last call of `next` returned are repetitions that fill a
  /// step, so that a loss can exclude them. The result is false before the first step with the
  /// present ranks.
  [[nodiscard]] bool is_repeat() const requires(Plan::lends) {
    std::uint64_t const run = progress_.present().step_count;
    return run != 0 && plan_.is_repeat(run - 1);
  }

  /// Returns true if the groups of this rank in a step of the epoch are repetitions. The argument
  /// `step()` means the next step. For `step_count()`, the end of the epoch, the result is false,
  /// because the steps of the next epoch are not computed yet. Errors: the errors of the call
  /// operator for other steps.
  [[nodiscard]] bool is_repeat(std::uint64_t step) const requires(Plan::lends) {
    if (step == step_count()) return false;
    return plan_.is_repeat(present_step("::is_repeat", step, step_count()));
  }

  /// Returns true if all steps of the epoch have run.
  [[nodiscard]] bool done() const { return progress_.present().step_count == plan_.step_count(); }

  [[nodiscard]] std::uint64_t epoch() const { return progress_.epoch(); }
  /// Returns the number of steps of the epoch that have run, which is the index of the next step.
  [[nodiscard]] std::uint64_t step() const { return progress_.step(); }
  /// Returns the number of steps of the epoch, including the steps that ran with other ranks.
  [[nodiscard]] std::uint64_t step_count() const {
    return progress_.first_step() + plan_.step_count();
  }
  /// Returns the number of samples or groups that this epoch leaves for the next one.
  [[nodiscard]] std::uint64_t left_over() const { return plan_.left_over(); }

  /// Returns how often the number of ranks or their batch can still change in this epoch. If the
  /// result is zero, the run can resume only with the present ranks until the epoch ends. The next
  /// epoch starts with any ranks and allows `max_rank_changes`. `epoch_sampler` has no such limit.
  [[nodiscard]] std::size_t rank_changes_left() const requires(!Plan::counts_only) {
    return progress_.changes_left();
  }

  /// Returns the state for a checkpoint, the same on all ranks.
  [[nodiscard]] sampler_state state() const { return progress_.state(Plan::counts_only); }

 protected:
  /// Starts at the beginning of an epoch.
  epoch_walker(Plan&& plan, std::uint64_t seed, std::uint64_t epoch)
      : plan_(std::move(plan)),
        progress_(Plan::name, {.seed = seed, .epoch = epoch, .digest = plan_.digest()},
                  plan_.present()) {
    plan_.plan(progress_);
  }

  /// Continues from `state`.
  epoch_walker(Plan&& plan, sampler_state const& state)
      : plan_(std::move(plan)), progress_(Plan::name, {}, plan_.present()) {
    plan_.check(state);
    go_to(epoch_progress(Plan::name, state, plan_.present()));
    if (!Plan::counts_only && !done()) progress_.check_room(Plan::name);
  }

  /// Sets the step that the next call of `next` returns.
  void seek_step(std::uint64_t step) {
    progress_.set_present_steps(present_step("::seek", step, step_count() + 1));
  }

 private:
  [[nodiscard]] static std::string member(std::string_view of) {
    return std::string(Plan::name).append(of);
  }

  void go_to(epoch_progress const& progress) {
    plan_.plan(progress);
    progress_ = progress;
  }

  /// Returns the index of a step among the steps of the present ranks.
  [[nodiscard]] std::uint64_t present_step(std::string_view function, std::uint64_t step,
                                           std::uint64_t end) const {
    std::uint64_t const first = progress_.first_step();
    if (step >= first && step < end) return step - first;
    throw_invalid(member(function), "step is ", step, ", must be in [", first, ", ", end, ")");
  }

  Plan plan_;
  epoch_progress progress_;
};

/// Throws if the epoch has fewer steps than the segment; `what` follows the number of steps in the
/// message.
inline void check_steps(std::string_view function, sampler_segment const& segment,
                        std::uint64_t most, std::string const& what) {
  if (segment.step_count <= most) return;
  throw_invalid(function, "state.segments has ", segment.step_count, " steps of ", what,
                " where the epoch has ", most);
}

}  // namespace omnibal::inline v0::detail
