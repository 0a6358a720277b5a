// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cells that a round cuts, and the place of a cut in a cell.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// The rule that selects the cells to cut in a round: cells whose idle time is at least half of the
/// idle time of the worst cell. The idle time is measured in one kind of load. If all these cuts
/// would save more than required, some of the cells are chosen at random.
struct cut_rule {
  /// The kind of load whose idle time is furthest above its goal.
  std::uint32_t kind = 0;
  /// The idle time of the worst cell.
  std::int64_t max_waiting = 0;
  /// The idle time of all steps above the goal.
  std::uint64_t excess = 0;
  /// The approximate idle time that cuts of all bad cells would save.
  std::uint64_t total_saving = 0;

  /// Returns true for a cell whose idle time is at least half of the idle time of the worst cell.
  [[nodiscard]] constexpr bool is_bad(std::int64_t waiting) const {
    return waiting > 0 && waiting >= max_waiting - max_waiting / 2;
  }
  /// Returns the saving of a cut, which about halves the idle time.
  [[nodiscard]] static constexpr std::uint64_t saving(std::int64_t waiting) {
    return static_cast<std::uint64_t>(waiting) / 2;
  }
  /// Returns whether to cut a cell; `word` is the random word of the cell.
  [[nodiscard]] constexpr bool cuts(std::int64_t waiting, std::uint64_t word) const {
    if (!is_bad(waiting)) return false;
    if (total_saving <= excess || waiting == max_waiting) return true;
    return static_cast<uint128>(word >> 32) * total_saving < static_cast<uint128>(excess) << 32;
  }
};

/// A place for a cut: after this number of steps of a cell. Among good places the place with the
/// lowest random word is chosen.
struct cut_place {
  std::uint64_t word;
  std::uint32_t steps;
};

/// Returns the saving of a cut above the `bundles` lightest bundles of a cell. Their ranks are then
/// idle until `level`, the largest load of these bundles, instead of `largest`.
[[nodiscard]] constexpr uint128 saved_by_cut(std::uint64_t bundles, load_level level,
                                             load_level largest) {
  return static_cast<uint128>(bundles) * (largest - level);
}

/// Returns true for cuts that save at least three quarters of the saving of the best cut.
[[nodiscard]] constexpr bool is_good_cut(uint128 saved, uint128 best) {
  return saved >= best - best / 4;
}

/// Returns the place with the lower word; for equal words the lower place.
[[nodiscard]] constexpr cut_place chosen_place(cut_place const& left, cut_place const& right) {
  bool const is_right =
      right.word < left.word || (right.word == left.word && right.steps < left.steps);
  return is_right ? right : left;
}

}  // namespace omnibal::inline v0::detail
