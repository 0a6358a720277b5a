#pragma once

/// \file
/// The packs of a hierarchy that have not run in an epoch, and their steps.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/schedule_level.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/packing_level.hpp>
#include <omnibal/sample/detail/group_pool.hpp>
#include <omnibal/sample/detail/share_tree.hpp>
#include <omnibal/sample/sampler_state.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Numbers of packs of the levels, in a mixed radix. A level leaves over fewer packs than it has,
/// and fewer than run at a time on the most ranks that there may be.
class level_carry {
 public:
  explicit level_carry(std::span<packed_level const> levels) {
    for (packed_level const& level : levels) {
      auto const at_once = static_cast<std::uint64_t>(most_ranks) /
                           static_cast<std::uint64_t>(level.setting.sequence);
      radices_.push_back(
          std::max<std::uint64_t>(1, std::min<std::uint64_t>(level.group_count, at_once)));
    }
  }

  /// Throws where the numbers of some levels do not fit into one of 64 bits.
  void check_room(std::string_view function) const {
    uint128 product = 1;
    for (std::uint64_t const radix : radices_) {
      product *= radix;
      if (product <= std::numeric_limits<std::uint64_t>::max()) continue;
      throw_invalid(function, "options.remainder is carry, but what " + to_text(radices_.size()) +
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

  /// The number of each level; throws where no sampler of these levels could have `state.carried`.
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
      throw_invalid(function, "state.carried is " + to_text(carried) + " in epoch " +
                                  to_text(epoch) + ", which these levels cannot have left over");
    }
    return result;
  }

 private:
  std::vector<std::uint64_t> radices_;
};

/// Calls `body(level, ordinal)` for every step: first for up to `short_first` steps of the first
/// level, then for the others with the levels in turn, each as evenly spread as its number of steps
/// allows. The steps of a level come in their order.
template <class Body>
void for_each_turn(std::vector<std::uint64_t> step_counts, std::uint64_t short_first,
                   Body const& body) {
  if (step_counts.empty()) return;
  std::uint64_t const begin = std::min(step_counts[0], short_first);
  for (std::uint64_t step = 0; step != begin; ++step) body(std::size_t{0}, step);
  step_counts[0] -= begin;
  std::uint64_t const rest =
      std::accumulate(step_counts.begin(), step_counts.end(), std::uint64_t{0});
  if (rest == 0) return;
  share_tree const turns(std::move(step_counts));
  for (std::uint64_t position = 0; position != rest; ++position) {
    source_draw const draw = turns.draw(position);
    body(std::size_t{draw.source}, draw.ordinal + (draw.source == 0 ? begin : 0));
  }
}

/// What waits of each level, and the schedules of it for some number of ranks.
template <class Load>
class level_epoch {
 public:
  /// All groups of the levels, and those that the epoch before has left over, `carried` of each.
  level_epoch(std::span<packed_level const> levels, std::span<Load const> loads,
              schedule_steps_options const& options, std::span<std::uint64_t const> carried)
      : levels_(levels), loads_(loads), options_(options) {
    pools_.reserve(levels.size());
    for (std::size_t level = 0; level != levels.size(); ++level) {
      pools_.emplace_back(levels[level].group_count, level_seed(options.seed, level), options.epoch,
                          carried[level]);
    }
  }

  /// Makes the schedules of all that waits; throws where a degree does not divide the ranks.
  void schedule(std::string_view function, std::size_t ranks) {
    offered_.clear();
    schedules_.clear();
    bool const is_carried = options_.remainder == remainder_policy::carry;
    schedule_steps_options options = options_;
    if (is_carried) options.remainder = remainder_policy::short_step;
    std::vector<Load> loads;
    for (std::size_t level = 0; level != levels_.size(); ++level) {
      std::size_t const packs = packs_per_step(function, level, levels_[level].setting, ranks);
      offered_.push_back(pools_[level].offer(packs, options_.remainder));
      loads.clear();
      for (std::uint32_t const entry : offered_.back())
        loads.push_back(loads_[group(level, entry)]);
      schedules_.push_back(schedule_places(level, std::span<Load const>(loads), packs, options));
    }
  }

  /// The steps of all schedules.
  [[nodiscard]] std::uint64_t step_count() const {
    return std::accumulate(
        schedules_.begin(), schedules_.end(), std::uint64_t{0},
        [](std::uint64_t sum, steps const& schedule) { return sum + schedule.size(); });
  }

  /// Calls `body(level, step of the level)` for all steps in their order, up to `short_first` of the
  /// first level before all others.
  template <class Body>
  void for_each_turn(std::uint64_t short_first, Body const& body) const {
    std::vector<std::uint64_t> counts;
    for (steps const& schedule : schedules_) counts.push_back(schedule.size());
    detail::for_each_turn(std::move(counts), short_first,
                          [&](std::size_t level, std::uint64_t step) {
                            body(level, static_cast<std::size_t>(step));
                          });
  }

  /// Appends what one pack of a step is, a cell, to `cells`.
  void append_cell(std::size_t level, std::size_t step, std::size_t pack, steps& cells) const {
    steps const& schedule = schedules_[level];
    for (std::uint32_t const place : schedule(step, pack)) {
      cells.push(group(level, offered_[level][place]));
    }
    if (schedule.is_repeat(step, pack)) {
      cells.close_repeat();
    } else {
      cells.close();
    }
  }

  /// Removes what runs in so many steps.
  void run(std::uint64_t step_count, std::uint64_t short_first) {
    std::vector<std::size_t> counts(levels_.size(), 0);
    std::uint64_t left = step_count;
    for_each_turn(short_first, [&](std::size_t level, std::size_t) {
      if (left == 0) return;
      --left;
      ++counts[level];
    });
    for (std::size_t level = 0; level != levels_.size(); ++level) {
      pools_[level].take(offered_[level], schedules_[level], counts[level]);
    }
  }

  /// How many groups of each level the present schedules leave to the next epoch.
  [[nodiscard]] std::vector<std::uint64_t> left_over() const {
    std::vector<std::uint64_t> result;
    result.reserve(pools_.size());
    for (group_pool const& pool : pools_) result.push_back(pool.left_over());
    return result;
  }

 private:
  [[nodiscard]] std::uint32_t group(std::size_t level, std::uint32_t entry) const {
    return levels_[level].first_group + pools_[level].group_of(entry);
  }

  std::span<packed_level const> levels_;
  std::span<Load const> loads_;
  schedule_steps_options options_;
  std::vector<group_pool> pools_;
  /// Of each level the entries of its pool that are scheduled, and their steps.
  std::vector<std::vector<std::uint32_t>> offered_;
  std::vector<steps> schedules_;
};

}  // namespace omnibal::inline v0::detail
