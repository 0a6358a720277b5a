// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices with the least time for a budget, over all limits on transient bytes.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/recompute/select_recompute/knapsack.hpp>
#include <omnibal/recompute/select_recompute/knapsack_problem.hpp>
#include <omnibal/recompute/select_recompute/transient_limits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The search over limits on transient bytes. A limit is needed because the largest transient bytes
/// count once for all layers. With a limit, a knapsack problem without transient bytes remains:
/// fewer choices and a smaller budget. Many limits are nearly equal, so the search bounds a range
/// of limits together, with the choices of the largest limit and the budget of the smallest limit.
template <class Time>
class budget_search {
 public:
  budget_search(std::string_view function, choice_table<Time> const& table, std::int64_t budget,
                select_recompute_options const& options)
      : function_(function),
        table_(table),
        budget_(budget),
        options_(options),
        gain_limits_{options.states.value_or(states_of(options.effort)), options.max_gap},
        order_(table.ordered_layers()),
        transient_(find_limits(function, table, budget, options)),
        limits_(transient_.limits),
        is_solved_(limits_.size(), false) {
    for (std::size_t i = 0; i != order_.size(); ++i) {
      if (i == 0 || !table.are_equal(order_[i - 1], order_[i])) ++kinds_;
      kind_at_.push_back(kinds_);
    }
  }

  [[nodiscard]] recompute_result<Time> run() {
    if (limits_.empty()) return infeasible();
    write_problem(table_, order_, limits_.back(), problem_);
    // If every layer has its least time under the last limit, no other limit is better.
    search({problem_.fits_least_time ? limits_.size() - 1 : 0, limits_.size(), 0});
    return feasible();
  }

 private:
  /// Consecutive limits, and a lower bound of the time under all of them.
  struct range {
    std::size_t first;
    std::size_t last;
    std::int64_t min_time;

    [[nodiscard]] std::size_t size() const { return last - first; }
  };

  /// A lower bound of the time, and a solution if the search found a solution better than the best
  /// so far.
  struct outcome {
    std::int64_t min_time;
    bool is_better;
    std::int64_t time;
    std::vector<std::uint32_t> choices{};
  };

  static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();
  /// The search seeks a proof up to this number of different layers, or up to this product of
  /// layers and problems.
  static constexpr std::size_t few_kinds = 4;
  static constexpr std::size_t little_work = 200;

  [[nodiscard]] static std::size_t states_of(effort level) {
    constexpr by_effort<std::size_t> levels{.fast = 32, .normal = 120, .thorough = 1024};
    return levels[level];
  }

  /// Branch and bound: solves, bounds or divides ranges of limits.
  void search(range const& all) {
    std::vector<range> left{all};
    while (!left.empty()) {
      range one = without_solved(left.back());
      left.pop_back();
      if (one.size() == 0) continue;
      if (one.size() > 1 && is_worth(one.min_time)) one.min_time = bound_together(one);
      if (!is_worth(one.min_time)) {
        pruned_bound_ = std::min(pruned_bound_, one.min_time);
      } else if (one.size() == 1) {
        solve(one.first);
      } else {
        std::size_t const middle = one.first + one.size() / 2;
        left.push_back({one.first, middle, one.min_time});
        left.push_back({middle, one.last, one.min_time});
      }
    }
  }

  /// Returns the range without the solved limits at both of its ends.
  [[nodiscard]] range without_solved(range result) const {
    while (result.size() != 0 && is_solved_[result.first]) ++result.first;
    while (result.size() != 0 && is_solved_[result.last - 1]) --result.last;
    return result;
  }

  /// Solves the problem of a limit, and keeps its solution if the solution is the best so far.
  void solve(std::size_t index) {
    outcome found = solve_problem(limits_[index], search_goal::solution);
    is_solved_[index] = true;
    solved_bound_ = std::min(solved_bound_, found.min_time);
    if (!found.is_better) return;
    time_ = found.time;
    choices_ = std::move(found.choices);
  }

  /// Returns a lower bound of the time under the limits of a range. If the relaxation has a better
  /// solution, also solves the problem of the limit that fits this solution.
  [[nodiscard]] std::int64_t bound_together(range const& given) {
    transient_limit const widest{limits_[given.last - 1].transient_bytes,
                                 limits_[given.first].kept_bytes};
    outcome const found = solve_problem(widest, search_goal::bound);
    if (found.is_better) {
      auto const like =
          std::lower_bound(limits_.begin(), limits_.end(), largest_transient(found.choices),
                           [](transient_limit const& one, std::int64_t bytes) {
                             return one.transient_bytes < bytes;
                           });
      auto const index = static_cast<std::size_t>(like - limits_.begin());
      if (!is_solved_[index]) solve(index);
    }
    return std::max(given.min_time, found.min_time);
  }

  /// Searches for a solution that is better than the best so far.
  [[nodiscard]] outcome solve_problem(transient_limit const& limit, search_goal goal) {
    write_problem(table_, order_, limit, problem_);
    std::int64_t const known = choices_.empty() ? -1 : problem_.time - time_;
    knapsack_.run(problem_, gain_limits_, known, goal);
    work_ += table_.size();
    outcome result{problem_.time - knapsack_.bound(), knapsack_.gain() > known,
                   problem_.time - knapsack_.gain()};
    if (result.is_better) result.choices = choices_of(problem_.fronts, knapsack_.points());
    return result;
  }

  /// Returns false if problems with the lower bound `min_time` have no better solution, or if the
  /// gap is small enough.
  [[nodiscard]] bool is_worth(std::int64_t min_time) const {
    return min_time < time_ && !is_good_enough(min_time);
  }

  /// Returns true if the gap to this bound is small enough and no proof is sought. A gap is small
  /// enough within `max_gap`, or if it is hardly larger than the gap of the solved problems.
  [[nodiscard]] bool is_good_enough(std::int64_t min_time) const {
    if (kinds_ <= few_kinds || work_ < little_work) return false;
    double const max_gap =
        std::max(options_.max_gap * static_cast<double>(time_),
                 1.25 * static_cast<double>(time_ - std::min(time_, solved_bound_)));
    return static_cast<double>(time_ - min_time) <= max_gap;
  }

  [[nodiscard]] std::int64_t largest_transient(std::vector<std::uint32_t> const& choices) const {
    std::int64_t result = 0;
    for (std::size_t layer = 0; layer != choices.size(); ++layer) {
      result = std::max(result, table_.choice(layer, choices[layer]).transient_bytes);
    }
    return result;
  }

  [[nodiscard]] int128 needed_bytes(std::int64_t kept_bytes, std::int64_t transient_bytes) const {
    return static_cast<int128>(options_.in_flight) * kept_bytes + transient_bytes +
           options_.reserve_bytes;
  }

  [[nodiscard]] std::int64_t to_bytes(int128 bytes) const {
    return checked_cast<std::int64_t>(function_, "the sum of the fewest bytes", bytes);
  }

  /// Returns the choices of all layers. Equal layers have their choices in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> choices_of(pareto_fronts const& fronts,
                                                      std::span<std::uint32_t const> points) const {
    std::vector<sort_key> chosen;
    for (std::size_t i = 0; i != order_.size(); ++i) {
      chosen.push_back({kind_at_[i], fronts[i][points[i]].index});
    }
    sort_keys(chosen);
    std::vector<std::uint32_t> result(order_.size());
    for (std::size_t i = 0; i != order_.size(); ++i) {
      result[order_[i]] = static_cast<std::uint32_t>(chosen[i].place);
    }
    return result;
  }

  [[nodiscard]] recompute_result<Time> feasible() {
    recompute_result<Time> result;
    std::int64_t const gap = time_ - std::min({time_, solved_bound_, pruned_bound_});
    std::int64_t kept_bytes = 0;
    for (std::size_t layer = 0; layer != choices_.size(); ++layer) {
      auto const& chosen = table_.choice(layer, choices_[layer]);
      result.time += chosen.time;
      kept_bytes += chosen.bytes;
    }
    result.bytes = to_bytes(needed_bytes(kept_bytes, largest_transient(choices_)));
    result.choices = std::move(choices_);
    result.proven = gap == 0;
    result.lower_bound = std::max(Time{}, result.time - table_.from_whole(gap));
    return result;
  }

  [[nodiscard]] recompute_result<Time> infeasible() const {
    recompute_result<Time> result;
    result.status = solve_status::infeasible;
    result.proven = true;
    result.bytes = to_bytes(transient_.min_bytes);
    result.missing_bytes = to_bytes(transient_.min_bytes - budget_);
    return result;
  }

  std::string_view function_;
  choice_table<Time> const& table_;
  std::int64_t budget_;
  select_recompute_options const& options_;
  gain_limits gain_limits_;
  std::vector<std::uint32_t> order_;
  transient_limits transient_;
  std::vector<transient_limit> const& limits_;
  /// For each limit, true if its problem is solved.
  std::vector<bool> is_solved_;
  /// The number of different layers, and, for each place in the order, the number of different
  /// layers up to and including it.
  std::uint32_t kinds_ = 0;
  std::vector<std::uint32_t> kind_at_;
  /// The problem that is being solved; its memory is reused.
  knapsack_problem problem_;
  knapsack knapsack_;
  /// The best solution so far.
  std::vector<std::uint32_t> choices_;
  std::int64_t time_ = no_time;
  /// The least bounds of the problems that were solved, and of the ranges that were skipped.
  std::int64_t solved_bound_ = no_time;
  std::int64_t pruned_bound_ = no_time;
  /// The number of layers of all problems so far.
  std::size_t work_ = 0;
};

}  // namespace omnibal::inline v0::detail
