// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The saved modules with the largest gain under a budget, and their choices.

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/activations_result.hpp>
#include <omnibal/recompute/detail/activation_replay.hpp>
#include <omnibal/recompute/detail/activation_table.hpp>
#include <omnibal/recompute/select_activations/queue_label_search.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_activations/window_knapsack.hpp>
#include <omnibal/recompute/select_activations/window_relaxation.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The search for saved modules. If several micro-batches are in flight, every other one holds the
/// bytes that the queues contain after the last layer, the end bytes. The search solves the problem
/// for ranges of end bytes.
template <class Time>
class saving_search {
 public:
  saving_search(activation_table<Time> const& table, std::int64_t budget,
                select_activations_options const& options)
      : table_(table),
        budget_(budget),
        options_(options),
        replay_(table),
        saved_(table.layers_size()) {}

  [[nodiscard]] activations_result<Time> run() {
    saved_.offloaded = table_.required_bytes;
    least_peak_ = replay_.peak(saved_);
    least_end_ = replay_.held();
    if (least_peak_ > budget_) return infeasible();
    budget_ = std::min(budget_, table_.most_bytes());
    find_items();
    saved_solution const solution =
        table_.in_flight() == 1 ? solve(0, limits_.total_bytes) : search_ends();
    choose_saved(solution.saved);
    keep_all_that_fit();
    return feasible(solution.bound);
  }

 private:
  /// The largest number of end bytes that bisection tries.
  static constexpr int max_ends = 24;

  void find_items() {
    limits_.sent = table_.forward_link;
    limits_.fetched = table_.backward_link;
    for (std::size_t i = 0; i != table_.layers_size(); ++i) {
      limits_.sent[i] -= table_.required_bytes[i];
      if (i != 0) limits_.fetched[i] -= table_.required_bytes[i - 1];
    }
    limits_.total_bytes = table_.total_bytes();
    limits_.offsets.assign(1, 0);
    for (std::size_t i = 0; i != table_.layers_size(); ++i) {
      for (std::size_t k = table_.offsets[i]; k != table_.offsets[i + 1]; ++k) {
        std::int64_t const gain = table_.to_whole(table_.times[k]);
        if (gain == 0 || table_.bytes[k] == 0) continue;
        limits_.total_gain += gain;
        limits_.items.push_back(
            {table_.bytes[k], gain, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(k)});
      }
      limits_.offsets.push_back(static_cast<std::uint32_t>(limits_.items.size()));
    }
  }

  /// Sets the limits for end bytes from `least` to `most`, and returns the prices of the
  /// relaxation.
  [[nodiscard]] window_prices relax(std::int64_t least, std::int64_t most) {
    limits_.set_limits(table_, budget_ - (table_.in_flight() - 1) * least, most);
    return relaxation_.solve(limits_);
  }

  /// Solves the problem for end bytes from `least` to `most`. Solutions with no more gain than
  /// `known` do not matter. If both numbers are equal, the solution is within the budget.
  [[nodiscard]] saved_solution solve(std::int64_t least, std::int64_t most,
                                     std::int64_t known = 0) {
    window_prices const prices = relax(least, most);
    saved_solution result = round_down();
    result.bound = prices.max_gain();
    known = std::max(known, result.gain);
    if (known >= result.bound) return result;
    std::size_t const chosen = most_valuable(prices);
    if (chosen != prices.windows.size()) {
      saved_solution own = knapsack_.solve(limits_, prices.windows[chosen], options_.effort);
      own.bound = std::min(own.bound, result.bound);
      result.bound = own.bound;
      if (known >= result.bound) return result;
      if (limits_.allow(layer_bytes(own.saved))) return own.gain > result.gain ? own : result;
    }
    queue_label_search labels(limits_, prices);
    if (labels.run(known, max_labels())) {
      labels.write(result.saved);
      result.gain = labels.gain();
    }
    result.bound = std::min(result.bound, labels.bound());
    return result;
  }

  /// Consecutive end bytes, and an upper bound on the gains with them.
  struct end_range {
    std::int64_t first;
    std::int64_t last;
    std::int64_t bound;

    [[nodiscard]] bool operator<(end_range const& other) const { return bound < other.bound; }
  };

  /// Branch and bound over the end bytes. In the relaxation of a range, each other micro-batch
  /// holds the fewest end bytes of the range, and this one at most the most of them. The range with
  /// the largest bound is solved first. A solution that exceeds the budget is repaired with its own
  /// end bytes, and divides the range.
  [[nodiscard]] saved_solution search_ends() {
    open_.clear();
    std::int64_t const most = most_end();
    divided_ends const ends = divide_ends(most);
    saved_solution best = solve(ends.best, ends.best);
    improve(best);
    push_range(least_end_, ends.first_open - 1, ends.bound_below);
    push_range(ends.first_open, ends.last_open, limits_.total_gain);
    push_range(std::max(ends.first_open, ends.last_open + 1), most, ends.bound_above);
    std::int64_t closed = 0;
    for (std::size_t left = max_ranges(); left != 0 && most_open() > best.gain; --left) {
      std::pop_heap(open_.begin(), open_.end());
      end_range const one = open_.back();
      open_.pop_back();
      saved_solution found = solve(one.first, one.last, best.gain);
      std::int64_t const bound = std::min(one.bound, found.bound);
      if (bound <= best.gain) continue;
      auto const [peak, end] = peak_of(found.saved);
      bool const is_within = peak <= budget_;
      if (is_within && found.gain > best.gain) {
        best = std::move(found);
        improve(best);
      }
      if (one.first == one.last) closed = std::max(closed, bound);
      if (one.first == one.last || best.gain >= bound) continue;
      std::int64_t const last = is_within ? one.last : end;
      std::int64_t const middle = one.first + (last - one.first + 1) / 2;
      push_range(one.first, middle - 1, bound);
      push_range(middle, one.last, bound);
      if (is_within) continue;
      saved_solution repaired = solve(end, end, best.gain);
      if (repaired.gain <= best.gain) continue;
      best = std::move(repaired);
      improve(best);
    }
    best.bound = std::max({best.gain, closed, most_open()});
    return best;
  }

  /// Solves the problem again for the end bytes of a solution, which leave the most bytes for the
  /// other layers, as long as the gain increases.
  void improve(saved_solution& best) {
    for (;;) {
      std::int64_t const end = peak_of(best.saved).end;
      saved_solution next = solve(end, end, best.gain);
      if (next.gain <= best.gain) return;
      best = std::move(next);
    }
  }

  void push_range(std::int64_t first, std::int64_t last, std::int64_t bound) {
    if (first > last) return;
    open_.push_back({first, last, std::min(bound, relax(first, last).max_gain())});
    std::push_heap(open_.begin(), open_.end());
  }
  [[nodiscard]] std::int64_t most_open() const { return open_.empty() ? 0 : open_.front().bound; }

  /// The bytes with offloaded items.
  struct offloaded_peak {
    std::int64_t peak;
    std::int64_t end;
  };

  [[nodiscard]] offloaded_peak peak_of(std::vector<unsigned char> const& saved) {
    saved_.offloaded = table_.required_bytes;
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] != 0) saved_.offloaded[limits_.items[j].layer] += limits_.items[j].bytes;
    }
    std::int64_t const peak = replay_.peak(saved_);
    return {peak, replay_.held()};
  }

  /// Returns the most end bytes with which the other micro-batches leave the required bytes of this
  /// one.
  [[nodiscard]] std::int64_t most_end() const {
    std::int64_t const others = table_.in_flight() - 1;
    std::int64_t result = (budget_ - (least_peak_ - others * least_end_)) / others;
    if (table_.layers_size() != 0) {
      result = std::min(result, (budget_ - table_.forward_transient.back()) / table_.in_flight());
    }
    return std::min(result, limits_.total_bytes);
  }

  /// End bytes in parts, and the bounds of the relaxation on the gains with them.
  struct divided_ends {
    /// The end bytes with the largest bound.
    std::int64_t best;
    /// The end bytes between the two parts, which bisection has left.
    std::int64_t first_open;
    std::int64_t last_open;
    /// The bounds for fewer and for more end bytes.
    std::int64_t bound_below;
    std::int64_t bound_above;
  };

  /// Divides the end bytes up to `most` by bisection. The relaxation is a concave function of the
  /// end bytes: more of them widen the windows that end after the last layer, and narrow all
  /// others. Therefore its prices bound all smaller or all larger end bytes too.
  [[nodiscard]] divided_ends divide_ends(std::int64_t most) {
    divided_ends result{most, least_end_, most, 0, 0};
    std::int64_t largest = -1;
    for (int count = 0; count != max_ends && result.first_open <= result.last_open; ++count) {
      std::int64_t const end =
          count == 0 ? most : result.first_open + (result.last_open - result.first_open) / 2;
      window_prices const prices = relax(end, end);
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

  /// Returns the change of the bound for one more end byte, times 2^shift.
  [[nodiscard]] int128 growth_of_bound(window_prices const& prices) const {
    int128 result = 0;
    for (std::size_t c = 0; c != prices.windows.size(); ++c) {
      bool const is_last = prices.windows[c].last == limits_.size();
      result += prices.prices[c] * int128{is_last ? 1 : 1 - table_.in_flight()};
    }
    return result;
  }

  /// Returns the number of ranges of end bytes that the search solves.
  [[nodiscard]] std::size_t max_ranges() const {
    constexpr std::size_t levels[]{1, 8, 64};
    return levels[static_cast<std::size_t>(options_.effort)];
  }

  [[nodiscard]] std::size_t max_labels() const {
    constexpr std::size_t levels[]{32, 128, 2048};
    return options_.labels.value_or(levels[static_cast<std::size_t>(options_.effort)]);
  }

  /// Returns the window with the largest value, which is its price times its bytes, or the number
  /// of windows.
  [[nodiscard]] static std::size_t most_valuable(window_prices const& prices) {
    std::size_t result = prices.windows.size();
    int128 most = -1;
    for (std::size_t c = 0; c != prices.windows.size(); ++c) {
      int128 const value = static_cast<int128>(prices.prices[c]) * prices.windows[c].bytes;
      if (value <= most) continue;
      most = value;
      result = c;
    }
    return result;
  }

  [[nodiscard]] std::vector<std::int64_t> layer_bytes(
      std::vector<unsigned char> const& saved) const {
    std::vector<std::int64_t> result(limits_.size(), 0);
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] != 0) result[limits_.items[j].layer] += limits_.items[j].bytes;
    }
    return result;
  }

  /// Saves items if they fit, those with the largest part of the relaxed solution first.
  [[nodiscard]] saved_solution round_down() const {
    std::vector<std::uint32_t> order(limits_.items.size());
    std::iota(order.begin(), order.end(), 0u);
    auto const parts = relaxation_.parts();
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (parts[a] != parts[b]) return parts[a] > parts[b];
      auto const left = static_cast<int128>(limits_.items[a].gain) * limits_.items[b].bytes;
      auto const right = static_cast<int128>(limits_.items[b].gain) * limits_.items[a].bytes;
      return left != right ? left > right : a < b;
    });
    saved_solution result{std::vector<unsigned char>(order.size(), 0)};
    std::vector<std::int64_t> sums(limits_.size(), 0);
    for (std::uint32_t const j : order) {
      saved_item const& item = limits_.items[j];
      sums[item.layer] += item.bytes;
      if (!limits_.allow(sums)) {
        sums[item.layer] -= item.bytes;
        continue;
      }
      result.saved[j] = 1;
      result.gain += item.gain;
    }
    return result;
  }

  /// Offloads the saved modules, and then all other modules that fit.
  void choose_saved(std::vector<unsigned char> const& saved) {
    choices_.assign(table_.bytes.size(), activation_choice::recompute);
    for (std::size_t k = 0; k != choices_.size(); ++k) {
      if (table_.needs[k] == module_need::required) choices_[k] = activation_choice::offload;
    }
    saved_.offloaded = table_.required_bytes;
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] == 0) continue;
      saved_item const& item = limits_.items[j];
      choices_[item.module_index] = activation_choice::offload;
      saved_.offloaded[item.layer] += item.bytes;
    }
    for_each_module([&](std::size_t layer, std::size_t module) {
      if (choices_[module] != activation_choice::recompute) return;
      saved_.offloaded[layer] += table_.bytes[module];
      if (replay_.peak(saved_) <= budget_) {
        choices_[module] = activation_choice::offload;
      } else {
        saved_.offloaded[layer] -= table_.bytes[module];
      }
    });
  }

  /// Keeps modules instead of offloading them if they fit. The last layers are first, because their
  /// bytes have the least time on the link.
  void keep_all_that_fit() {
    for_each_module([&](std::size_t layer, std::size_t module) {
      if (choices_[module] != activation_choice::offload) return;
      std::int64_t const bytes = table_.bytes[module];
      saved_.offloaded[layer] -= bytes;
      saved_.kept[layer] += bytes;
      if (replay_.peak(saved_) <= budget_) {
        choices_[module] = activation_choice::keep;
      } else {
        saved_.offloaded[layer] += bytes;
        saved_.kept[layer] -= bytes;
      }
    });
  }

  /// Calls `visit(layer, module)` for all modules, the last layer first.
  template <class Visit>
  void for_each_module(Visit const& visit) const {
    for (std::size_t i = table_.layers_size(); i-- != 0;) {
      for (std::size_t k = table_.offsets[i + 1]; k-- != table_.offsets[i];) visit(i, k);
    }
  }

  [[nodiscard]] activations_result<Time> feasible(std::int64_t bound) {
    activations_result<Time> result;
    std::int64_t recomputed = 0;
    for (std::size_t i = 0; i != table_.layers_size(); ++i) {
      auto const first = choices_.begin() + static_cast<std::ptrdiff_t>(table_.offsets[i]);
      auto const last = choices_.begin() + static_cast<std::ptrdiff_t>(table_.offsets[i + 1]);
      result.choices.emplace_back(first, last);
      result.offloaded_bytes += saved_.offloaded[i];
    }
    for (std::size_t k = 0; k != choices_.size(); ++k) {
      if (choices_[k] != activation_choice::recompute) continue;
      result.added_time += table_.times[k];
      if (table_.bytes[k] != 0) recomputed += table_.to_whole(table_.times[k]);
    }
    std::int64_t const least = std::max<std::int64_t>(0, limits_.total_gain - bound);
    std::int64_t const gap = std::max<std::int64_t>(0, recomputed - least);
    result.peak_bytes = replay_.peak(saved_);
    result.proven = gap == 0;
    result.lower_bound = std::max(Time{}, result.added_time - table_.from_whole(gap));
    return result;
  }

  [[nodiscard]] activations_result<Time> infeasible() const {
    activations_result<Time> result;
    result.status = solve_status::infeasible;
    result.proven = true;
    result.peak_bytes = least_peak_;
    result.missing_bytes =
        saturate_cast<std::int64_t>(static_cast<int128>(result.peak_bytes) - budget_);
    return result;
  }

  activation_table<Time> const& table_;
  std::int64_t budget_;
  /// The least peak, with all required modules offloaded, and the end bytes of these modules.
  std::int64_t least_peak_ = 0;
  std::int64_t least_end_ = 0;
  select_activations_options const& options_;
  activation_replay<Time> replay_;
  queue_limits limits_;
  window_relaxation relaxation_;
  window_knapsack knapsack_;
  saved_bytes saved_;
  /// A heap of ranges that are not solved yet.
  std::vector<end_range> open_;
  std::vector<activation_choice> choices_;
};

}  // namespace omnibal::inline v0::detail
