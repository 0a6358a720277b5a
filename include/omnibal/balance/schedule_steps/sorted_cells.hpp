// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cells of bundles with similar loads, which are cut in rounds.
///
/// The input is the times of bundles in random order, their lanes, and the goals of the idle time.
/// `draw_pool` makes these bundles of one group, or `join_groups` of several. The output is an
/// order of bundles, in which each step has random bundles of one cell.

#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/schedule_steps/cut_rule.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_rng.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/step_load.hpp>
#include <omnibal/balance/schedule_steps/timed_bundles.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The bundles of full steps, initially in one cell: a range of steps. Each cell has its bundles in
/// several orders: in random order, which assigns them to its steps, and sorted by each kind of
/// load. A cut divides a cell into a low cell, with the lightest bundles of a kind, and a high
/// cell.
///
/// With several lanes, the level of a bundle is its time. Each order lists the bundles of the first
/// lane, then of the next lane, and a step has bundles of all lanes. A low cell has the lightest
/// bundles of each lane.
template <std::size_t R>
class sorted_cells {
 public:
  /// Creates a cell of all bundles. The arguments must outlive this object.
  sorted_cells(timed_bundles<R> const& bundles, step_grid const& grid, rank_lanes const& lanes)
      : levels_(bundles.times()),
        grid_(grid),
        lanes_(lanes),
        random_order_(levels_.size()),
        is_low_(levels_.size(), 0),
        high_bundles_(levels_.size()) {
    std::iota(random_order_.begin(), random_order_.end(), std::uint32_t{0});
    bundles.sort_by_lane(random_order_);
    for (std::size_t r = 0; r != R; ++r) {
      sorted_[r] =
          order_ascending(levels_.size(), [&](std::size_t bundle) { return levels_[bundle][r]; });
      bundles.sort_by_lane(sorted_[r]);
      for (std::uint32_t step = 0; step != grid.steps; ++step) {
        min_waiting_[r] += waiting_of(sorted_[r], step)[r];
      }
    }
    if (grid.steps == 0) return;
    cells_.push_back(measured_cell(0, grid.steps));
    add_waiting(cells_.back());
  }

  /// Returns the idle time, in each kind, if the bundles of each step are neighbors in the order of
  /// this kind.
  [[nodiscard]] waiting_times<R> const& min_waiting() const { return min_waiting_; }

  /// Cuts cells in up to `rounds` rounds, until the idle time is within the goals or no cut helps.
  void cut(waiting_times<R> const& goals, schedule_rng const& draws, std::uint32_t rounds) {
    for (std::uint32_t round = 0; round != rounds; ++round) {
      std::optional<cut_rule> const rule = find_rule(goals);
      if (!rule) return;
      cut_round(*rule, draws, round);
    }
  }

  /// Returns the bundles in the order of steps, and of ranks in each step; see `step_grid`.
  [[nodiscard]] std::vector<std::uint32_t> order() && {
    if (lanes_.is_single()) return std::move(random_order_);
    std::vector<std::uint32_t> result(random_order_.size());
    for (std::uint32_t step = 0; step != grid_.steps; ++step) {
      auto const of_step = grid_.of_step(std::span(result), step);
      for (rank_lane const& lane : lanes_.all()) {
        std::size_t const from = place(lane, step);
        for (std::uint32_t k = 0; k != lane.ranks; ++k) {
          of_step[lanes_.rank_at(lane.first + k)] = random_order_[from + k];
        }
      }
    }
    return result;
  }

 private:
  /// The steps [first, last), and their idle time.
  struct cell {
    std::uint32_t first;
    std::uint32_t last;
    waiting_times<R> waiting;

    [[nodiscard]] std::uint32_t steps() const { return last - first; }
  };
  /// The places of a lane in a cell, [first, last), and the first place above a cut.
  struct cut_places {
    std::size_t first;
    std::size_t middle;
    std::size_t last;
  };

  /// Returns the first place of a step in the order of a lane.
  [[nodiscard]] std::size_t place(rank_lane const& lane, std::uint32_t step) const {
    return std::size_t{grid_.steps} * lane.first + std::size_t{step} * lane.ranks;
  }

  /// Returns the idle time of a step with the bundles that `order` assigns to the step.
  [[nodiscard]] waiting_times<R> waiting_of(std::span<std::uint32_t const> order,
                                            std::uint32_t step) const {
    step_load<R> load;
    for (rank_lane const& lane : lanes_.all()) {
      for (std::uint32_t const bundle : order.subspan(place(lane, step), lane.ranks)) {
        load.add(levels_[bundle]);
      }
    }
    return load.waiting(grid_.ranks);
  }

  [[nodiscard]] cell measured_cell(std::uint32_t first, std::uint32_t last) const {
    cell result{first, last, {}};
    for (std::uint32_t step = first; step != last; ++step) {
      auto const of_step = waiting_of(random_order_, step);
      for (std::size_t r = 0; r != R; ++r) result.waiting[r] += of_step[r];
    }
    return result;
  }
  void add_waiting(cell const& one) {
    for (std::size_t r = 0; r != R; ++r) waiting_[r] += one.waiting[r];
  }

  /// Returns the rule for the kind furthest above its goal among the kinds in which a cell can be
  /// cut. Returns `std::nullopt` if no cut helps or is necessary.
  [[nodiscard]] std::optional<cut_rule> find_rule(waiting_times<R> const& goals) const {
    waiting_times<R> max{};
    for (cell const& one : cells_) {
      if (one.steps() < 2) continue;
      for (std::size_t r = 0; r != R; ++r) max[r] = std::max(max[r], one.waiting[r]);
    }
    std::optional<std::uint32_t> kind;
    std::int64_t excess = 0;
    for (std::uint32_t r = 0; r != R; ++r) {
      if (max[r] == 0 || waiting_[r] - goals[r] <= excess) continue;
      excess = waiting_[r] - goals[r];
      kind = r;
    }
    if (!kind) return std::nullopt;
    cut_rule rule{
        .kind = *kind, .max_waiting = max[*kind], .excess = static_cast<std::uint64_t>(excess)};
    for (cell const& one : cells_) {
      std::int64_t const own = one.waiting[rule.kind];
      if (one.steps() >= 2 && rule.is_bad(own)) rule.total_saving += cut_rule::saving(own);
    }
    return rule;
  }

  /// Cuts the cells that the rule selects.
  void cut_round(cut_rule const& rule, schedule_rng const& draws, std::uint32_t round) {
    // New cells are appended; only the next round considers them.
    std::size_t const count = cells_.size();
    for (std::size_t k = 0; k != count; ++k) {
      cell const one = cells_[k];
      std::uint64_t const word = draws.of_cell(round, one.first);
      if (one.steps() < 2 || !rule.cuts(one.waiting[rule.kind], word)) continue;
      cut_cell(k, rule.kind, word);
    }
  }

  /// Cuts a cell by the loads of a kind. The low cell keeps its index.
  void cut_cell(std::size_t index, std::size_t kind, std::uint64_t word) {
    cell const whole = cells_[index];
    std::uint32_t const middle = whole.first + steps_below_cut(whole, kind, word);
    for (rank_lane const& lane : lanes_.all()) cut_lane(lane, whole, middle, kind);
    for (std::size_t r = 0; r != R; ++r) waiting_[r] -= whole.waiting[r];
    cells_[index] = measured_cell(whole.first, middle);
    add_waiting(cells_[index]);
    cells_.push_back(measured_cell(middle, whole.last));
    add_waiting(cells_.back());
  }

  /// Divides the bundles of a lane in a cell between two cells: the low cell has the steps before
  /// `middle`.
  void cut_lane(rank_lane const& lane, cell const& whole, std::uint32_t middle, std::size_t kind) {
    cut_places const places{place(lane, whole.first), place(lane, middle), place(lane, whole.last)};
    for (std::size_t i = places.first; i != places.middle; ++i) is_low_[sorted_[kind][i]] = 1;
    divide(random_order_, places);
    for (auto& order : sorted_) divide(order, places);
    for (std::size_t i = places.first; i != places.middle; ++i) is_low_[random_order_[i]] = 0;
  }

  /// Moves the low bundles at `places` of an order to the front of these places. Low and high
  /// bundles keep their order.
  void divide(std::vector<std::uint32_t>& order, cut_places const& places) {
    std::size_t to_low = places.first;
    std::size_t to_high = 0;
    for (std::size_t i = to_low; i != places.last; ++i) {
      std::uint32_t const bundle = order[i];
      order[to_low] = bundle;
      high_bundles_[to_high] = bundle;
      // Sums avoid branches that no processor can predict.
      std::size_t const is_low = is_low_[bundle];
      to_low += is_low;
      to_high += 1 - is_low;
    }
    std::copy_n(high_bundles_.begin(), to_high,
                order.begin() + static_cast<std::ptrdiff_t>(places.middle));
  }

  /// Returns the level of the bundle before a place in the order of a kind.
  [[nodiscard]] load_level level_before(std::size_t kind, std::size_t place) const {
    return levels_[sorted_[kind][place - 1]][kind];
  }

  /// Selects a random cut among the good cuts of a cell, and returns the number of steps below it.
  [[nodiscard]] std::uint32_t steps_below_cut(cell const& whole, std::size_t kind,
                                              std::uint64_t word) const {
    // The largest level of the first `steps` steps of sorted bundles.
    auto const level_of = [&](std::uint32_t steps) {
      load_level result = level_before(kind, place(lanes_.fastest(), whole.first + steps));
      for (rank_lane const& lane : lanes_.all().subspan(1)) {
        result = std::max(result, level_before(kind, place(lane, whole.first + steps)));
      }
      return result;
    };
    load_level const largest = level_of(whole.steps());
    auto const saved = [&](std::uint32_t steps) {
      return saved_by_cut(std::uint64_t{steps} * grid_.ranks, level_of(steps), largest);
    };
    uint128 best = 0;
    for (std::uint32_t k = 1; k != whole.steps(); ++k) best = std::max(best, saved(k));
    // No cut saves idle time, because fewer bundles than one step are below the largest load.
    if (best == 0) return 1;
    rng::engine const words(word);
    cut_place result{std::numeric_limits<std::uint64_t>::max(), whole.steps()};
    for (std::uint32_t k = 1; k != whole.steps(); ++k) {
      // A cut does not separate equal loads.
      if (level_of(k) == level_of(k + 1) || !is_good_cut(saved(k), best)) continue;
      result = chosen_place(result, {words.word(k), k});
    }
    return result.steps;
  }

  std::span<load_levels<R> const> levels_;
  step_grid grid_;
  rank_lanes const& lanes_;
  /// The bundles of each cell at the places of its steps, lane by lane: in random order, and
  /// ascending by each kind of load.
  std::vector<std::uint32_t> random_order_;
  std::array<std::vector<std::uint32_t>, R> sorted_;
  std::vector<cell> cells_;
  /// The idle time of the steps of all cells.
  waiting_times<R> waiting_{};
  waiting_times<R> min_waiting_{};
  /// The memory of a cut: 1 for each bundle of the low cell, and the bundles of the high cell.
  std::vector<std::uint8_t> is_low_;
  std::vector<std::uint32_t> high_bundles_;
};

}  // namespace omnibal::inline v0::detail
