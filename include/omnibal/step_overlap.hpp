#pragma once

/// \file
/// How much alike the steps of two epochs are.

#include <omnibal/check.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct step_overlap_fn {
  /// The pairs of groups that share a step in both schedules, over the number expected of dealing
  /// at random: 1 where the two are as good as independent, 0 where no pair meets twice, and far
  /// above 1 where the same groups meet again and again.
  ///
  /// With `pairs(n) = n (n - 1) / 2`, a schedule that has n groups and puts `pairs(n_s)` pairs into
  /// step s has the share `sum(pairs(n_s)) / pairs(n)` of them in a step. What is expected is the
  /// number of pairs of the groups that both schedules have, times both shares: the mean where each
  /// schedule is dealt uniformly and by itself, with the step sizes that it has. 1 where that is
  /// zero, as for one rank. Cells that repeat groups do not count; a group that comes more than
  /// once for another reason counts in its first step. Ranks and micro-batches do not matter, and
  /// the schedules may have other ranks and groups.
  ///
  /// Complexity: linear in the cells and in the largest group index. Memory: 12 bytes per group up
  /// to that index, 16 per step. Determinism: portable. Errors: `std::length_error` above 2^32 - 1
  /// steps.
  [[nodiscard]] double operator()(steps const& first, steps const& second) const {
    std::size_t const groups = std::max(end_of_groups(first), end_of_groups(second));
    steps_of_groups const in_first(first, groups);
    steps_of_groups const in_second(second, groups);
    double const expected =
        pairs(common(in_first, in_second)) * in_first.share_of_pairs() * in_second.share_of_pairs();
    if (!(expected > 0)) return 1.0;
    return static_cast<double>(meeting_twice(in_first, in_second)) / expected;
  }

 private:
  [[nodiscard]] static double pairs(std::size_t count) {
    auto const n = static_cast<double>(count);
    return n * (n - 1) / 2;
  }

  [[nodiscard]] static std::size_t end_of_groups(steps const& schedule) {
    std::size_t result = 0;
    for (std::uint32_t const group : schedule.cells().items()) {
      result = std::max(result, std::size_t{group} + 1);
    }
    return result;
  }

  /// The step in which each group counts, and how many count in each step; `no_step`, the number of
  /// steps, where a group counts in none.
  struct steps_of_groups {
    steps_of_groups(steps const& schedule, std::size_t groups) : sizes(schedule.size(), 0) {
      detail::check_index_count("step_overlap", "a schedule", schedule.size());
      no_step = static_cast<std::uint32_t>(schedule.size());
      step.assign(groups, no_step);
      for (std::size_t s = 0; s != schedule.size(); ++s) {
        for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
          if (schedule.is_repeat(s, rank)) continue;
          for (std::uint32_t const group : schedule(s, rank)) {
            if (step[group] != no_step) continue;
            step[group] = static_cast<std::uint32_t>(s);
            ++sizes[s];
          }
        }
      }
    }

    [[nodiscard]] double share_of_pairs() const {
      double together = 0;
      std::size_t count = 0;
      for (std::uint32_t const size : sizes) {
        together += pairs(size);
        count += size;
      }
      return count < 2 ? 0.0 : together / pairs(count);
    }

    [[nodiscard]] bool counts(std::size_t group) const { return step[group] != no_step; }

    std::uint32_t no_step;
    std::vector<std::uint32_t> step;
    std::vector<std::uint32_t> sizes;
  };

  [[nodiscard]] static std::size_t common(steps_of_groups const& first,
                                          steps_of_groups const& second) {
    std::size_t result = 0;
    for (std::size_t group = 0; group != first.step.size(); ++group) {
      result += first.counts(group) && second.counts(group) ? 1u : 0u;
    }
    return result;
  }

  /// The pairs that share a step in both.
  [[nodiscard]] static std::uint64_t meeting_twice(steps_of_groups const& first,
                                                   steps_of_groups const& second) {
    grouping const groups = detail::collect_parts(first.step, first.sizes.size() + 1);
    std::uint64_t result = 0;
    std::vector<std::uint32_t> met(second.sizes.size(), 0);
    auto const for_each_met = [&](std::size_t step, auto const& body) {
      for (std::uint32_t const group : groups[step]) {
        if (second.counts(group)) body(met[second.step[group]]);
      }
    };
    for (std::size_t s = 0; s != first.sizes.size(); ++s) {
      for_each_met(s, [&](std::uint32_t& count) { result += count++; });
      for_each_met(s, [](std::uint32_t& count) { count = 0; });
    }
    return result;
  }
};

/// How much alike the steps of two epochs are; see `step_overlap_fn`.
inline constexpr step_overlap_fn step_overlap{};

}  // namespace omnibal::inline v0
