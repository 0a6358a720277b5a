#pragma once

/// \file
/// The groups of an epoch that have not run yet.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/each_once.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The entries of an epoch's schedule: each group once, and before them those that the epoch before
/// has left over, which therefore may be there twice.
///
/// What an epoch leaves over are the last groups of a random order of that epoch, so that their
/// number is all that a state must hold.
class group_pool {
 public:
  /// All entries. Precondition: `carried < groups`, or both are zero.
  group_pool(std::size_t groups, std::uint64_t seed, std::uint64_t epoch, std::uint64_t carried)
      : order_(groups, epoch_seed(seed, epoch)),
        previous_(groups, epoch_seed(seed, epoch - 1)),
        carried_(static_cast<std::size_t>(carried)),
        most_left_over_(groups == 0 ? 0 : groups - 1),
        waiting_(groups + carried_) {
    std::iota(waiting_.begin(), waiting_.end(), std::uint32_t{0});
  }

  /// The group of an entry.
  [[nodiscard]] std::uint32_t group_of(std::uint32_t entry) const {
    std::uint64_t const group =
        entry < carried_ ? previous_(order_.size() - carried_ + entry) : entry - carried_;
    return static_cast<std::uint32_t>(group);
  }

  /// The entries for a schedule of so many ranks: all that have not run, but with `carry` those
  /// that would not fill a step. No more are left over than before, as their number must say which:
  /// where the ranks changed within the epoch its last step may be short.
  [[nodiscard]] std::vector<std::uint32_t> offer(std::size_t ranks, remainder_policy policy) {
    if (policy != remainder_policy::carry) return waiting_;
    std::size_t const last = waiting_.size() % ranks;
    if (last <= most_left_over_) left_over_ = last;
    most_left_over_ = left_over_;
    std::vector<std::uint32_t> result;
    result.reserve(waiting_.size() - left_over_);
    std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(result),
                 [this](std::uint32_t entry) { return !is_left_over(entry); });
    return result;
  }

  /// The number of groups that the last offer left over.
  [[nodiscard]] std::size_t left_over() const { return left_over_; }

  /// Removes what ran in the first steps of a schedule of `offered`.
  void take(std::span<std::uint32_t const> offered, steps const& schedule, std::size_t step_count) {
    std::vector<std::uint8_t> has_run(carried_ + order_.size(), 0);
    for (std::size_t cell = 0; cell != step_count * schedule.ranks(); ++cell) {
      for (std::uint32_t const place : schedule.cells()[cell]) has_run[offered[place]] = 1;
    }
    std::erase_if(waiting_, [&](std::uint32_t entry) { return has_run[entry] != 0; });
  }

 private:
  [[nodiscard]] bool is_left_over(std::uint32_t entry) const {
    return entry >= carried_ && order_.inverse(entry - carried_) >= order_.size() - left_over_;
  }

  rng::permutation order_;
  rng::permutation previous_;
  std::size_t carried_;
  std::size_t left_over_ = 0;
  std::size_t most_left_over_;
  std::vector<std::uint32_t> waiting_;
};

/// Throws unless every one of `entries` is in one cell of a complete step, repetitions apart.
inline void check_schedule(std::string_view function, steps const& schedule, std::size_t ranks,
                           std::size_t entries) {
  if (schedule.ranks() != ranks) {
    throw_invalid(function, "the scheduler gives steps of " + to_text(schedule.ranks()) +
                                " ranks, not of " + to_text(ranks));
  }
  each_once named(function, "the scheduler", "groups", entries);
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      auto const cell = schedule(step, rank);
      if (!schedule.is_repeat(step, rank)) {
        named.take(cell);
      } else if (std::any_of(cell.begin(), cell.end(), [=](auto g) { return g >= entries; })) {
        throw_invalid(function, "the scheduler repeats a group that there is not");
      }
    }
  }
  named.finish();
}

}  // namespace omnibal::inline v0::detail
