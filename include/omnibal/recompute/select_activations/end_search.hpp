// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The saved modules with the largest gain over all end bytes, the bytes in the queues after the
/// last layer.

#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/recompute/detail/activation_replay.hpp>
#include <omnibal/recompute/detail/activation_table.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_activations/saving_solver.hpp>
#include <omnibal/recompute/select_activations/window_knapsack.hpp>
#include <omnibal/recompute/select_activations/window_relaxation.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Branch and bound over the end bytes, if several micro-batches are in flight. The range with the
/// largest bound is solved first. If a solution exceeds the budget, its end bytes divide the range,
/// and the search solves the problem again for exactly these end bytes.
template <class Time>
class end_search {
 public:
  end_search(activation_table<Time> const& table, std::int64_t budget, saving_solver<Time>& solver)
      : table_(table),
        budget_(budget),
        solver_(solver),
        replay_(table),
        saved_(table.layers_size()) {
    min_peak_ = peak_of({});
  }

  /// Returns the best set of saved items that was found, and an upper bound of the gain over all
  /// end bytes. Precondition: the required modules fit into the budget.
  [[nodiscard]] saved_solution run(effort level) {
    std::int64_t const most = most_end();
    divided_ends const ends = divide_ends(most);
    saved_solution best = solver_.solve({ends.best, ends.best});
    improve(best);
    push({min_peak_.end, ends.first_open - 1}, ends.bound_below);
    push({ends.first_open, ends.last_open}, solver_.limits().total_gain);
    push({std::max(ends.first_open, ends.last_open + 1), most}, ends.bound_above);
    // The largest bound of the ranges that contain only one number.
    std::int64_t closed = 0;
    constexpr by_effort<std::size_t> max_ranges{.fast = 1, .normal = 8, .thorough = 64};
    for (std::size_t left = max_ranges[level]; left != 0 && most_open() > best.gain; --left) {
      closed = std::max(closed, solve_next(best));
    }
    best.bound = std::max({best.gain, closed, most_open()});
    return best;
  }

 private:
  /// The largest number of values of the end bytes that bisection tries.
  static constexpr int max_ends = 24;

  /// A range that is not solved yet, and an upper bound of the gains in it.
  struct open_range {
    end_range ends;
    std::int64_t bound;

    [[nodiscard]] bool operator<(open_range const& other) const { return bound < other.bound; }
  };

  /// Solves the open range with the largest bound, and divides it if it may contain a better
  /// solution. Returns the bound of the range if the range cannot be divided, zero otherwise.
  [[nodiscard]] std::int64_t solve_next(saved_solution& best) {
    std::pop_heap(open_.begin(), open_.end());
    open_range const one = open_.back();
    open_.pop_back();
    auto const [first, last] = one.ends;
    saved_solution found = solver_.solve(one.ends, best.gain);
    std::int64_t const bound = std::min(one.bound, found.bound);
    if (bound <= best.gain) return 0;
    auto const [peak, end] = peak_of(found.saved);
    bool const is_within = peak <= budget_;
    if (is_within && found.gain > best.gain) {
      best = std::move(found);
      improve(best);
    }
    if (first == last) return bound;
    if (best.gain >= bound) return 0;
    std::int64_t const middle = first + ((is_within ? last : end) - first + 1) / 2;
    push({first, middle - 1}, bound);
    push({middle, last}, bound);
    if (is_within) return 0;
    saved_solution repaired = solver_.solve({end, end}, best.gain);
    if (repaired.gain <= best.gain) return 0;
    best = std::move(repaired);
    improve(best);
    return 0;
  }

  /// Solves the problem again for the end bytes of the best solution, which leave more bytes for
  /// the other layers. Repeats this as long as the gain increases.
  void improve(saved_solution& best) {
    for (;;) {
      std::int64_t const end = peak_of(best.saved).end;
      saved_solution next = solver_.solve({end, end}, best.gain);
      if (next.gain <= best.gain) return;
      best = std::move(next);
    }
  }

  void push(end_range const& ends, std::int64_t bound) {
    if (ends.first > ends.last) return;
    open_.push_back({ends, std::min(bound, solver_.relax(ends).max_gain())});
    std::push_heap(open_.begin(), open_.end());
  }
  [[nodiscard]] std::int64_t most_open() const { return open_.empty() ? 0 : open_.front().bound; }

  /// The peak of the memory if all saved items are offloaded, and the end bytes.
  struct offloaded_peak {
    std::int64_t peak;
    std::int64_t end;
  };

  [[nodiscard]] offloaded_peak peak_of(std::vector<unsigned char> const& saved) {
    queue_limits const& limits = solver_.limits();
    saved_.offloaded = table_.required_bytes;
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] != 0) saved_.offloaded[limits.items[j].layer] += limits.items[j].bytes;
    }
    std::int64_t const peak = replay_.peak(saved_);
    return {peak, replay_.held()};
  }

  /// Returns the largest number of end bytes with which the other micro-batches leave the required
  /// bytes for this micro-batch.
  [[nodiscard]] std::int64_t most_end() const {
    std::int64_t const others = table_.in_flight() - 1;
    std::int64_t result = (budget_ - (min_peak_.peak - others * min_peak_.end)) / others;
    if (table_.layers_size() != 0) {
      result = std::min(result, (budget_ - table_.forward_transient.back()) / table_.in_flight());
    }
    return std::min(result, solver_.limits().total_bytes);
  }

  /// The end bytes, divided into parts, and the bounds of the relaxation for the parts.
  struct divided_ends {
    /// The end bytes with the largest bound.
    std::int64_t best;
    /// The range between the two parts that bisection has not decided.
    std::int64_t first_open;
    std::int64_t last_open;
    /// The upper bounds of the gain for fewer and for more end bytes than this range.
    std::int64_t bound_below;
    std::int64_t bound_above;
  };

  /// Divides the end bytes up to `most` by bisection. The relaxation is a concave function of the
  /// end bytes: more end bytes widen the windows that end after the last layer, and narrow all
  /// other windows. Therefore the prices of one relaxation also bound all smaller or all larger end
  /// bytes.
  [[nodiscard]] divided_ends divide_ends(std::int64_t most) {
    divided_ends result{most, min_peak_.end, most, 0, 0};
    std::int64_t largest = -1;
    for (int count = 0; count != max_ends && result.first_open <= result.last_open; ++count) {
      std::int64_t const end =
          count == 0 ? most : result.first_open + (result.last_open - result.first_open) / 2;
      window_prices const prices = solver_.relax({end, end});
      std::int64_t const bound = prices.max_gain();
      if (bound > largest) result.best = end;
      largest = std::max(largest, bound);
      int128 const growth = growth_of_bound(prices);
      if (growth >= 0) {
        result.first_open = end + 1;
        result.bound_below = bound;
      }
      if (growth <= 0) {
        result.last_open = end - 1;
        result.bound_above = bound;
      }
    }
    return result;
  }

  /// Returns the change of the bound for one additional end byte, times 2^shift.
  [[nodiscard]] int128 growth_of_bound(window_prices const& prices) const {
    int128 result = 0;
    for (std::size_t c = 0; c != prices.windows.size(); ++c) {
      bool const is_last = prices.windows[c].last == table_.layers_size();
      result += prices.prices[c] * int128{is_last ? 1 : 1 - table_.in_flight()};
    }
    return result;
  }

  activation_table<Time> const& table_;
  std::int64_t budget_;
  saving_solver<Time>& solver_;
  activation_replay<Time> replay_;
  saved_bytes saved_;
  /// The peak and the end bytes if only the required modules are saved.
  offloaded_peak min_peak_{};
  /// The open ranges, as a heap with the largest bound on top.
  std::vector<open_range> open_;
};

}  // namespace omnibal::inline v0::detail
