// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cells of bundles with similar loads, which are cut in rounds.
///
/// The input is the levels of bundles in random order, and the goals of the waiting time.
/// `draw_pool` makes these bundles of one group, or `join_groups` of several. The output is an
/// order of bundles, in which each step has random bundles of one cell.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_rules.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/step_load.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The bundles of full steps, initially in one cell. A cut divides all lists of a cell: one in
/// random order, which contains its steps, and one sorted by each kind of load.
template <std::size_t R>
class sorted_cells {
 public:
  sorted_cells(std::span<load_levels<R> const> levels, step_grid const& grid)
      : levels_(levels), ranks_(grid.ranks), spare_(levels.size()) {
    lists_[0].resize(levels.size());
    std::iota(lists_[0].begin(), lists_[0].end(), std::uint32_t{0});
    for (std::size_t r = 0; r != R; ++r) {
      constexpr load_level above_all = load_level{1} << 62;
      lists_[r + 1] = order_descending(
          levels.size(), [&](std::size_t bundle) { return above_all - levels[bundle][r]; });
      for (std::uint32_t step = 0; step != grid.steps; ++step) {
        min_waiting_[r] += waiting(lists_[r + 1], step)[r];
      }
    }
    is_low_.assign(levels.size(), 0);
    if (grid.steps != 0) add({0, grid.steps, {}});
  }

  /// Returns the waiting time, in each kind, if each step has neighbors in the order of this kind.
  [[nodiscard]] waiting_times<R> const& min_waiting() const { return min_waiting_; }

  /// Cuts cells in rounds until the waiting time is within the goals or no cut helps.
  void cut(waiting_times<R> const& goals, schedule_rng const& draws, std::uint32_t rounds) {
    for (std::uint32_t round = 0; round != rounds; ++round) {
      if (!cut_round(goals, draws, round)) return;
    }
  }

  /// Returns the bundles in the order of steps; see `step_grid`.
  [[nodiscard]] std::span<std::uint32_t const> order() const { return lists_[0]; }

 private:
  /// The steps [first, last), and their waiting time.
  struct cell {
    std::uint32_t first;
    std::uint32_t last;
    waiting_times<R> waiting;

    [[nodiscard]] std::uint32_t size() const { return last - first; }
  };

  [[nodiscard]] waiting_times<R> waiting(std::span<std::uint32_t const> list,
                                         std::uint32_t step) const {
    step_load<R> load;
    for (std::uint32_t const bundle : list.subspan(step * ranks_, ranks_)) {
      load.add(levels_[bundle]);
    }
    return load.waiting(ranks_);
  }

  /// Cuts cells according to the rule; returns false if no cut helps or is necessary.
  bool cut_round(waiting_times<R> const& goals, schedule_rng const& draws, std::uint32_t round) {
    cut_rule const rule = find_rule(goals);
    if (rule.kind == R) return false;
    std::size_t const count = cells_.size();
    for (std::size_t k = 0; k != count; ++k) {
      cell const one = cells_[k];
      std::uint64_t const word = draws.of_cell(round, one.first);
      if (one.size() < 2 || !rule.cuts(one.waiting[rule.kind], word)) continue;
      cut_cell(k, rule.kind, word);
    }
    return true;
  }

  void measure(cell& one) {
    one.waiting = {};
    for (std::uint32_t step = one.first; step != one.last; ++step) {
      auto const of_step = waiting(lists_[0], step);
      for (std::size_t r = 0; r != R; ++r) one.waiting[r] += of_step[r];
    }
    for (std::size_t r = 0; r != R; ++r) waiting_[r] += one.waiting[r];
  }
  void add(cell one) {
    measure(one);
    cells_.push_back(one);
  }

  /// Returns the rule for the kind furthest above its goal among the kinds in which a cell can be
  /// cut.
  [[nodiscard]] cut_rule find_rule(waiting_times<R> const& goals) const {
    waiting_times<R> max{};
    for (cell const& one : cells_) {
      if (one.size() < 2) continue;
      for (std::size_t r = 0; r != R; ++r) max[r] = std::max(max[r], one.waiting[r]);
    }
    cut_rule rule{.kind = R};
    std::int64_t excess = 0;
    for (std::uint32_t r = 0; r != R; ++r) {
      if (max[r] == 0 || waiting_[r] - goals[r] <= excess) continue;
      excess = waiting_[r] - goals[r];
      rule.kind = r;
      rule.most = max[r];
    }
    if (rule.kind == R) return rule;
    rule.excess = static_cast<std::uint64_t>(excess);
    for (cell const& one : cells_) {
      std::int64_t const own = one.waiting[rule.kind];
      if (one.size() >= 2 && rule.is_bad(own)) rule.saved += cut_rule::saving(own);
    }
    return rule;
  }

  /// Cuts a cell by the loads of a kind. The lower part keeps its number.
  void cut_cell(std::size_t index, std::size_t r, std::uint64_t word) {
    cell low = cells_[index];
    cell high = low;
    for (std::size_t k = 0; k != R; ++k) waiting_[k] -= low.waiting[k];
    low.last = high.first = low.first + place_of_cut(low, r, word);
    std::size_t const first = low.first * ranks_;
    std::size_t const middle = high.first * ranks_;
    std::size_t const last = high.last * ranks_;
    for (std::size_t i = first; i != middle; ++i) is_low_[lists_[r + 1][i]] = 1;
    for (auto& list : lists_) {
      std::size_t to_low = first;
      std::size_t to_high = 0;
      for (std::size_t i = first; i != last; ++i) {
        std::uint32_t const bundle = list[i];
        list[to_low] = bundle;
        spare_[to_high] = bundle;
        // Sums avoid branches that no processor can predict.
        std::size_t const stays = is_low_[bundle];
        to_low += stays;
        to_high += 1 - stays;
      }
      std::copy_n(spare_.begin(), to_high, list.begin() + static_cast<std::ptrdiff_t>(middle));
    }
    for (std::size_t i = first; i != middle; ++i) is_low_[lists_[0][i]] = 0;
    measure(low);
    cells_[index] = low;
    add(high);
  }

  /// Returns the number of steps below a cut.
  [[nodiscard]] std::uint32_t place_of_cut(cell const& one, std::size_t r,
                                           std::uint64_t word) const {
    auto const level = [&](std::uint32_t step, std::uint32_t steps) {
      return levels_[lists_[r + 1][(step + steps) * ranks_ - 1]][r];
    };
    load_level const largest = level(one.last, 0);
    auto const saved = [&](std::uint32_t steps) {
      return saved_by_cut(steps * ranks_, level(one.first, steps), largest);
    };
    uint128 best = 0;
    for (std::uint32_t k = 1; k != one.size(); ++k) best = std::max(best, saved(k));
    // Fewer bundles than one step are below the largest load.
    if (best == 0) return 1;
    rng::engine const words(word);
    cut_choice result{std::numeric_limits<std::uint64_t>::max(), one.size()};
    for (std::uint32_t k = 1; k != one.size(); ++k) {
      // Equal loads stay together.
      if (level(one.first, k) == level(one.first, k + 1) || !is_good_cut(saved(k), best)) continue;
      result = chosen_cut(result, {words.word(k), k});
    }
    return result.steps;
  }

  std::span<load_levels<R> const> levels_;
  std::size_t ranks_;
  /// The bundles of each cell, at the places of its steps, in each of the orders.
  std::array<std::vector<std::uint32_t>, R + 1> lists_;
  std::vector<std::uint32_t> spare_;
  /// Whether each bundle is below the present cut.
  std::vector<std::uint8_t> is_low_;
  std::vector<cell> cells_;
  /// The waiting time of the steps of all cells.
  waiting_times<R> waiting_{};
  waiting_times<R> min_waiting_{};
};

}  // namespace omnibal::inline v0::detail
