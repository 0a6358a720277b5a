// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The arguments, the shape and the random numbers of a schedule, and the arithmetic of its levels.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/bits.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/permutation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// A whole step of waiting. The sum of 2^32 such steps fits 64 bits.
inline constexpr std::int64_t whole_step = std::int64_t{1} << 30;

/// A load as an integer: `largest * ranks` is below 2^62, so that sums over a step fit.
using load_level = std::uint64_t;

/// Returns the number of bits that levels may have.
[[nodiscard]] constexpr int level_bits(std::uint64_t ranks) { return 62 - bit_width(ranks); }

/// Returns the number of low bits that must be removed from the loads of a kind with this largest
/// load.
[[nodiscard]] constexpr int level_shift(std::uint64_t largest, std::uint64_t ranks) {
  int const shift = bit_width(largest) - level_bits(ranks);
  return shift < 0 ? 0 : shift;
}

/// Returns a level as a share of the largest level of its kind, in units of 2^-31.
[[nodiscard]] constexpr std::uint32_t share_of_level(load_level level, load_level largest) {
  if (largest == 0) return 0;
  int const bits = bit_width(largest);
  int const shift = bits < 32 ? 0 : bits - 32;
  return static_cast<std::uint32_t>(((level >> shift) << 31) / (largest >> shift));
}

/// Returns the share of a step that ranks wait, in `whole_step`s, rounded down. A rank without a
/// group waits the whole step. The share is zero if the largest level is zero.
[[nodiscard]] constexpr std::int64_t waiting_of_step(load_level largest, std::uint64_t sum,
                                                     std::uint64_t ranks) {
  if (largest == 0) return 0;
  std::uint64_t const whole = largest * ranks;
  double const share = static_cast<double>(whole - sum) / static_cast<double>(whole);
  return static_cast<std::int64_t>(share * static_cast<double>(whole_step));
}

/// The numbers of ranks, steps and runs of groups in a schedule.
struct schedule_shape {
  std::uint32_t ranks = 0;
  std::uint32_t groups_per_rank = 1;
  /// The number of full steps.
  std::uint32_t steps = 0;
  /// The groups that run, without repetitions; the carried groups are the first of them.
  std::uint32_t runs = 0;
  std::uint32_t carried = 0;
  /// The groups that do not fill a step, and the groups that are repeated to fill it.
  std::uint32_t extra = 0;
  std::uint32_t repeated = 0;

  /// Returns the number of groups in a full step.
  [[nodiscard]] constexpr std::uint32_t groups_per_step() const { return ranks * groups_per_rank; }
  /// Returns the number of groups in full steps.
  [[nodiscard]] constexpr std::uint32_t pool() const { return steps * groups_per_step(); }
};

/// Checks the arguments of a schedule. Errors: `std::invalid_argument` for no ranks, no groups per
/// rank, a `max_dist_ratio` that is negative or not finite, and a carried group that does not
/// exist; `std::length_error` if groups, carried groups and the groups of a step exceed 2^32 - 1.
/// Epochs without a full step leave out a group twice, so that a group may be carried twice.
inline void check_schedule(std::string_view function, std::size_t groups, std::size_t ranks,
                           schedule_steps_options const& options) {
  check_positive(function, "ranks", ranks);
  check_positive(function, "options.groups_per_rank", options.groups_per_rank);
  check_number(function, "ranks", ranks);
  std::size_t const in_step = ranks * options.groups_per_rank;
  check_number(function, "ranks * options.groups_per_rank", in_step);
  check_weight(function, "options.max_dist_ratio", options.max_dist_ratio);
  std::size_t const carried = options.carried.size();
  check_index_count(function, "the schedule", carried + std::max(groups, in_step));
  for (std::size_t i = 0; i != carried; ++i) {
    if (options.carried[i] < groups) continue;
    throw_invalid(function, "options.carried[", i, "] is ", options.carried[i], ", but there are ",
                  groups, " groups");
  }
}

/// Returns the shape of a schedule. Precondition: `check_schedule` holds.
[[nodiscard]] inline schedule_shape shape_of_schedule(std::size_t groups, std::size_t carried,
                                                      std::size_t ranks, remainder_policy remainder,
                                                      std::uint32_t groups_per_rank = 1) {
  auto const all = static_cast<std::uint32_t>(groups + carried);
  auto const in_step = static_cast<std::uint32_t>(ranks * groups_per_rank);
  std::uint32_t const rest = all % in_step;
  bool const is_rest_left_out = remainder == remainder_policy::carry;
  bool const is_rest_filled_up = remainder == remainder_policy::repeat && rest != 0;
  std::uint32_t const runs = is_rest_left_out ? all - rest : all;
  return {.ranks = static_cast<std::uint32_t>(ranks),
          .groups_per_rank = groups_per_rank,
          .steps = all / in_step,
          .runs = runs,
          .carried = std::min(static_cast<std::uint32_t>(carried), runs),
          .extra = is_rest_left_out ? 0 : rest,
          // Ranks repeat the same number of groups as in other steps, or none.
          .repeated = is_rest_filled_up ? (in_step - rest) / groups_per_rank * groups_per_rank : 0};
}

/// The random numbers of a schedule.
class schedule_rng {
 public:
  constexpr schedule_rng(std::uint64_t seed, std::uint64_t epoch)
      : shuffle_{seed}, step_shuffle_{~seed}, words_(~seed, epoch), epoch_(epoch) {}

  /// Returns the random order of `count` groups.
  [[nodiscard]] constexpr rng::permutation groups(std::uint64_t count) const {
    return shuffle_.order(count, epoch_);
  }
  /// Returns the random order of `count` steps.
  [[nodiscard]] constexpr rng::permutation steps(std::uint64_t count) const {
    return step_shuffle_.order(count, epoch_);
  }
  /// Returns a word for the cell that begins at a step, in a round.
  [[nodiscard]] constexpr std::uint64_t of_cell(std::uint32_t round, std::uint32_t first) const {
    return words_.word(std::uint64_t{round} << 32 | first);
  }
  /// Returns the engine that the mixer of steps draws from.
  [[nodiscard]] constexpr rng::engine bundles() const {
    return rng::engine(words_.word(~std::uint64_t{1}));
  }
  /// Returns the beginning of the last step among the groups sorted by size. A short last step
  /// begins at the smallest groups. A last step with repetitions begins anywhere, so that it
  /// repeats groups similar to its own. Precondition: there is a full step, of one group for each
  /// rank.
  [[nodiscard]] constexpr std::uint32_t last_step(schedule_shape const& shape) const {
    if (shape.repeated == 0) return 0;
    std::uint64_t const word = words_.word(~std::uint64_t{0});
    auto const middle =
        static_cast<std::uint32_t>(static_cast<uint128>(word) * (shape.runs - shape.carried) >> 64);
    std::uint32_t const first = middle < shape.ranks / 2 ? 0 : middle - shape.ranks / 2;
    std::uint32_t const last = shape.runs - shape.ranks;
    return first < last ? first : last;
  }

 private:
  rng::feistel shuffle_;
  rng::feistel step_shuffle_;
  rng::engine words_;
  std::uint64_t epoch_;
};

/// The size by which carried groups are sorted for the last step; other groups have the largest
/// share of all kinds. Carried groups follow all others, because they are to run soon.
inline constexpr std::uint32_t size_of_carried = ~std::uint32_t{0};

/// The cells that are cut in a round: cells that wait for at least half as long as the worst cell.
/// Waiting counts in the kind that is furthest above its goal. If all these cuts would save more
/// than required, some of the cells are chosen at random.
struct cut_rule {
  /// The kind, or the number of kinds if nothing is to be cut.
  std::uint32_t kind = 0;
  /// The waiting time of the worst cell.
  std::int64_t most = 0;
  /// The waiting time to be saved, and the approximate waiting time that all cuts would save.
  std::uint64_t excess = 0;
  std::uint64_t saved = 0;

  [[nodiscard]] constexpr bool is_bad(std::int64_t waiting) const {
    return waiting > 0 && waiting >= most - most / 2;
  }
  /// Returns the saving of a cut, which about halves the waiting time.
  [[nodiscard]] static constexpr std::uint64_t saving(std::int64_t waiting) {
    return static_cast<std::uint64_t>(waiting) / 2;
  }
  /// Returns whether to cut a cell; `word` is the random word of the cell.
  [[nodiscard]] constexpr bool cuts(std::int64_t waiting, std::uint64_t word) const {
    if (!is_bad(waiting)) return false;
    if (saved <= excess || waiting == most) return true;
    return static_cast<uint128>(word >> 32) * saved < static_cast<uint128>(excess) << 32;
  }
};

/// A place for a cut: after a number of steps of a cell, with a random word.
struct cut_choice {
  std::uint64_t word;
  std::uint32_t steps;
};

/// Returns the saving of a cut behind `groups` groups, which wait for `level`, their largest, from
/// then on.
[[nodiscard]] constexpr uint128 saved_by_cut(std::uint64_t groups, load_level level,
                                             load_level largest) {
  return static_cast<uint128>(groups) * (largest - level);
}

/// Returns true for cuts that save at least three quarters of the saving of the best cut.
[[nodiscard]] constexpr bool is_good_cut(uint128 saved, uint128 best) {
  return saved >= best - best / 4;
}

/// Returns the choice with the lower word; for equal words the lower cut.
[[nodiscard]] constexpr cut_choice chosen_cut(cut_choice const& left, cut_choice const& right) {
  bool const is_right =
      right.word < left.word || (right.word == left.word && right.steps < left.steps);
  return is_right ? right : left;
}

}  // namespace omnibal::inline v0::detail
