// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups in random order, in cells with similar loads that are cut in rounds.

#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The loads of groups as levels.
template <std::size_t R>
struct load_levels {
  std::vector<std::array<load_level, R>> of_group;
  std::array<load_level, R> largest{};

  /// Returns the largest share of a group in all kinds.
  [[nodiscard]] std::uint32_t size_of(std::uint32_t group) const {
    std::uint32_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      result = std::max(result, share_of_level(of_group[group][r], largest[r]));
    }
    return result;
  }
};

/// Computes levels of numbers up to `largest`, which must not be negative.
template <class Working>
[[nodiscard]] auto level_scale(Working largest, std::size_t ranks) {
  if constexpr (std::floating_point<Working>) {
    return fixed_point::by_power_of_two(largest, level_bits(ranks));
  } else {
    int const shift = level_shift(static_cast<std::uint64_t>(largest), ranks);
    return [shift](Working value) { return value >> shift; };
  }
}

/// Computes the levels of loads. Errors: `std::invalid_argument` if a load is negative, not finite
/// or above 2^63 - 1.
template <sample_range Loads>
[[nodiscard]] auto measure_levels(std::string_view function, Loads const& loads,
                                  std::size_t ranks) {
  using amount_type = demand_result<std::identity, sample_reference<Loads>>;
  using working = working_weight<typename weight_of<amount_type>::type>;
  constexpr std::size_t kinds = kinds_of<amount_type>;
  std::size_t const count = std::ranges::size(loads);
  auto const first = std::ranges::begin(loads);
  auto const amounts = [&](std::size_t group) {
    return checked_costs<working>(
        function, "loads", group,
        first[static_cast<std::ranges::range_difference_t<Loads const>>(group)]);
  };
  std::array<working, kinds> largest{};
  for (std::size_t group = 0; group != count; ++group) {
    auto const load = amounts(group);
    for (std::size_t r = 0; r != kinds; ++r) largest[r] = std::max(largest[r], load[r]);
  }
  load_levels<kinds> result;
  result.of_group.resize(count);
  for (std::size_t r = 0; r != kinds; ++r) {
    auto const scale = level_scale(largest[r], ranks);
    result.largest[r] = static_cast<load_level>(scale(largest[r]));
    for (std::size_t group = 0; group != count; ++group) {
      result.of_group[group][r] = static_cast<load_level>(scale(amounts(group)[r]));
    }
  }
  return result;
}

/// The largest loads and the sums of a step.
template <std::size_t R>
struct step_load {
  std::array<load_level, R> largest{};
  std::array<std::uint64_t, R> sum{};

  void add(std::array<load_level, R> const& level) {
    for (std::size_t r = 0; r != R; ++r) {
      largest[r] = std::max(largest[r], level[r]);
      sum[r] += level[r];
    }
  }
  [[nodiscard]] std::array<std::int64_t, R> waiting(std::size_t ranks) const {
    std::array<std::int64_t, R> result;
    for (std::size_t r = 0; r != R; ++r) result[r] = waiting_of_step(largest[r], sum[r], ranks);
    return result;
  }
};

/// Groups in random order, the carried ones first.
template <std::size_t R>
struct schedule_pool {
  schedule_shape shape;
  /// The groups of full steps, and their levels; carried groups come first.
  std::vector<std::uint32_t> groups;
  std::vector<std::array<load_level, R>> levels;
  std::size_t carried = 0;
  /// The cells of the step that is not full.
  grouping last;
  /// The levels of its groups.
  std::vector<std::array<load_level, R>> last_levels;
  /// The number of its cells without repetition.
  std::size_t last_own = 0;
  /// Its waiting time.
  std::array<std::int64_t, R> last_waiting{};
};

/// Returns the runs of the last step, repeated ones included, by ascending size from number `first`
/// on. Without `by_size` their order is random, with the carried ones last.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> runs_of_last_step(load_levels<R> const& levels,
                                                           std::span<std::uint32_t const> runs,
                                                           schedule_shape const& shape,
                                                           std::uint32_t first, bool by_size) {
  std::vector<std::uint64_t> keys(runs.size());
  for (std::uint32_t i = 0; i != shape.runs; ++i) {
    std::uint32_t const size = by_size ? levels.size_of(runs[i]) : 0;
    keys[i] = std::uint64_t{i < shape.carried ? size_of_carried : size} << 32 | i;
  }
  std::size_t const count = shape.extra + shape.repeated;
  auto const begin = keys.begin() + static_cast<std::ptrdiff_t>(first);
  auto const end = begin + static_cast<std::ptrdiff_t>(count);
  std::nth_element(keys.begin(), begin, keys.end());
  std::nth_element(begin, end - 1, keys.end());
  std::sort(begin, end);
  std::vector<std::uint32_t> result(count);
  for (std::size_t k = 0; k != count; ++k) result[k] = static_cast<std::uint32_t>(keys[first + k]);
  return result;
}

/// Builds the cells of the last step from its groups. If ranks have several groups, cells get large
/// and small groups in turn, except cells that repeat groups.
template <std::size_t R>
void deal_last_step(schedule_pool<R>& pool, load_levels<R> const& levels,
                    std::vector<std::uint32_t> groups, std::size_t groups_per_rank) {
  std::size_t const ranks = pool.shape.ranks / groups_per_rank;
  std::size_t const own = pool.shape.extra;
  pool.last_own = pool.shape.repeated != 0 ? (own + groups_per_rank - 1) / groups_per_rank
                                           : std::min(own, ranks);
  if (groups_per_rank != 1) {
    std::stable_sort(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(own),
                     [&](std::uint32_t left, std::uint32_t right) {
                       return levels.size_of(left) > levels.size_of(right);
                     });
  }
  for (std::size_t cell = 0; cell != pool.last_own; ++cell) {
    for (std::size_t k = 0, first = 0; first + cell < own; ++k, first += pool.last_own) {
      bool const turns = k % 2 == 1 && first + pool.last_own <= own;
      pool.last.push(groups[first + (turns ? pool.last_own - 1 - cell : cell)]);
    }
    pool.last.close();
  }
  for (std::size_t i = own; i != groups.size(); ++i) {
    pool.last.push(groups[i]);
    if ((i + 1 - own) % groups_per_rank == 0) pool.last.close();
  }
  step_load<R> load;
  for (auto const& cell : pool.last) {
    std::array<load_level, R> level{};
    for (std::uint32_t const group : cell) {
      pool.last_levels.push_back(levels.of_group[group]);
      for (std::size_t r = 0; r != R; ++r) level[r] += levels.of_group[group][r];
    }
    load.add(level);
  }
  pool.last_waiting = load.waiting(ranks);
}

/// Draws the order of the groups and removes the last step. The last step is a random sample if
/// ranks have several groups.
template <std::size_t R>
[[nodiscard]] schedule_pool<R> draw_pool(load_levels<R> const& levels, schedule_shape const& shape,
                                         schedule_rng const& draws,
                                         std::span<std::uint32_t const> carried,
                                         std::uint32_t groups_per_rank) {
  schedule_pool<R> result;
  result.shape = shape;
  std::vector<std::uint32_t> runs(shape.runs);
  auto const of_carried = draws.groups(carried.size());
  auto const of_groups = draws.groups(levels.of_group.size());
  for (std::uint32_t i = 0; i != shape.runs; ++i) {
    runs[i] = i < shape.carried ? carried[static_cast<std::size_t>(of_carried(i))]
                                : static_cast<std::uint32_t>(of_groups(i - shape.carried));
  }
  std::vector<std::uint8_t> is_last(shape.runs, 0);
  std::vector<std::uint32_t> of_last;
  if (shape.steps == 0) {
    for (std::uint32_t k = 0; k != shape.extra + shape.repeated; ++k) {
      of_last.push_back(runs[k % shape.extra]);
    }
    std::fill(is_last.begin(), is_last.end(), std::uint8_t{1});
  } else if (shape.extra != 0) {
    bool const by_size = groups_per_rank == 1;
    auto const last =
        runs_of_last_step(levels, runs, shape, by_size ? draws.last_step(shape) : 0, by_size);
    for (std::uint32_t const i : last) of_last.push_back(runs[i]);
    for (std::uint32_t const i : std::span(last).first(shape.extra)) is_last[i] = 1;
  }
  deal_last_step(result, levels, std::move(of_last), groups_per_rank);
  // The groups of the last step may join these groups.
  result.groups.reserve(shape.pool() + shape.extra);
  result.levels.reserve(shape.pool() + shape.extra);
  for (std::uint32_t i = 0; i != shape.runs; ++i) {
    if (is_last[i] != 0) continue;
    if (i < shape.carried) ++result.carried;
    result.groups.push_back(runs[i]);
    result.levels.push_back(levels.of_group[runs[i]]);
  }
  return result;
}

/// The groups of full steps, initially in one cell. A cut divides all lists of a cell: one in
/// random order, which contains its steps, and one sorted by each kind of load.
template <std::size_t R>
class sorted_cells {
 public:
  explicit sorted_cells(schedule_pool<R> const& pool)
      : pool_(&pool), ranks_(pool.shape.ranks), spare_(pool.levels.size()) {
    std::size_t const count = pool.levels.size();
    lists_[0].resize(count);
    std::iota(lists_[0].begin(), lists_[0].end(), std::uint32_t{0});
    for (std::size_t r = 0; r != R; ++r) {
      constexpr load_level above_all = load_level{1} << 62;
      lists_[r + 1] =
          order_descending(count, [&](std::size_t i) { return above_all - pool.levels[i][r]; });
      for (std::uint32_t s = 0; s != pool.shape.steps; ++s)
        least_[r] += waiting(lists_[r + 1], s)[r];
    }
    is_low_.assign(count, 0);
    if (pool.shape.steps != 0) add({0, pool.shape.steps, {}});
  }

  /// Returns the target waiting time in each kind, a sum over all full steps, from
  /// `max_dist_ratio`. If this target is out of reach, or nearly so, it is the waiting time of the
  /// sorted groups plus a quarter of `max_dist_ratio`. Cuts reduce the mixture of bundles, and for
  /// bundles the last step uses at most half of the allowed waiting time.
  [[nodiscard]] std::array<std::int64_t, R> goals(double max_dist_ratio,
                                                  std::uint32_t groups_per_rank) const {
    double const share = std::min(max_dist_ratio, 1.0) * static_cast<double>(whole_step);
    schedule_shape const& shape = pool_->shape;
    std::int64_t const allowed =
        static_cast<std::int64_t>(share) * (shape.steps + (shape.extra != 0 ? 1 : 0));
    std::array<std::int64_t, R> result{};
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const most = groups_per_rank == 1 ? whole_step : allowed / 2;
      std::int64_t const last = std::min(pool_->last_waiting[r], most);
      result[r] = std::max(allowed - last, least_[r] + allowed / 4);
    }
    return result;
  }

  /// Returns a target a third of the way from the goals to the waiting time of the sorted groups.
  [[nodiscard]] std::array<std::int64_t, R> stricter(
      std::array<std::int64_t, R> const& goals) const {
    std::array<std::int64_t, R> result;
    for (std::size_t r = 0; r != R; ++r) result[r] = goals[r] - (goals[r] - least_[r]) / 3;
    return result;
  }

  /// Cuts cells according to the rule; returns false if no cut helps or is necessary.
  bool cut_round(std::array<std::int64_t, R> const& goals, schedule_rng const& draws,
                 std::uint32_t round) {
    cut_rule const rule = find_rule(goals);
    if (rule.kind == R) return false;
    std::size_t const count = cells_.size();
    for (std::size_t k = 0; k != count; ++k) {
      cell const one = cells_[k];
      std::uint64_t const word = draws.of_cell(round, one.first);
      if (one.size() < 2 || !rule.cuts(one.waiting[rule.kind], word)) continue;
      cut(k, rule.kind, word);
    }
    return true;
  }

  /// Returns numbers of groups in the pool: the groups of step s are [s * ranks, (s + 1) * ranks).
  [[nodiscard]] std::span<std::uint32_t const> steps() const { return lists_[0]; }

 private:
  /// The steps [first, last), and their waiting time.
  struct cell {
    std::uint32_t first;
    std::uint32_t last;
    std::array<std::int64_t, R> waiting;

    [[nodiscard]] std::uint32_t size() const { return last - first; }
  };

  [[nodiscard]] std::array<std::int64_t, R> waiting(std::span<std::uint32_t const> list,
                                                    std::uint32_t step) const {
    step_load<R> load;
    for (std::uint32_t const i : list.subspan(step * ranks_, ranks_)) load.add(pool_->levels[i]);
    return load.waiting(ranks_);
  }

  void measure(cell& one) {
    one.waiting = {};
    for (std::uint32_t s = one.first; s != one.last; ++s) {
      auto const of_step = waiting(lists_[0], s);
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
  [[nodiscard]] cut_rule find_rule(std::array<std::int64_t, R> const& goals) const {
    std::array<std::int64_t, R> most{};
    for (cell const& one : cells_) {
      if (one.size() < 2) continue;
      for (std::size_t r = 0; r != R; ++r) most[r] = std::max(most[r], one.waiting[r]);
    }
    cut_rule rule{.kind = R};
    std::int64_t excess = 0;
    for (std::uint32_t r = 0; r != R; ++r) {
      if (most[r] == 0 || waiting_[r] - goals[r] <= excess) continue;
      excess = waiting_[r] - goals[r];
      rule.kind = r;
      rule.most = most[r];
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
  void cut(std::size_t index, std::size_t r, std::uint64_t word) {
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
        std::uint32_t const item = list[i];
        list[to_low] = item;
        spare_[to_high] = item;
        // Sums avoid branches that no processor can predict.
        std::size_t const stays = is_low_[item];
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
      return pool_->levels[lists_[r + 1][(step + steps) * ranks_ - 1]][r];
    };
    load_level const largest = level(one.last, 0);
    auto const saved = [&](std::uint32_t steps) {
      return saved_by_cut(steps * ranks_, level(one.first, steps), largest);
    };
    uint128 best = 0;
    for (std::uint32_t k = 1; k != one.size(); ++k) best = std::max(best, saved(k));
    // Fewer groups than one step are below the largest load.
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

  schedule_pool<R> const* pool_;
  std::size_t ranks_;
  std::array<std::vector<std::uint32_t>, R + 1> lists_;
  std::vector<std::uint32_t> spare_;
  std::vector<std::uint8_t> is_low_;
  std::vector<cell> cells_;
  /// The waiting time of the steps of all cells, in each kind.
  std::array<std::int64_t, R> waiting_{};
  /// The waiting time of steps of neighbors in the order of each kind.
  std::array<std::int64_t, R> least_{};
};

}  // namespace omnibal::inline v0::detail
