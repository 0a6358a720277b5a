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
/// for given end bytes.
template <class Time>
class saving_search {
 public:
  saving_search(activation_table<Time> const& table, std::int64_t budget,
                select_activations_options const& options)
      : table_(table),
        budget_(budget),
        options_(options),
        replay_(table),
        relaxation_(limits_),
        knapsack_(limits_) {}

  [[nodiscard]] activations_result<Time> run() {
    replay_.offloaded = table_.required_bytes;
    least_peak_ = replay_.peak();
    least_end_ = replay_.held();
    if (least_peak_ > budget_) return infeasible();
    budget_ = std::min(budget_, table_.most_bytes());
    find_items();
    if (table_.in_flight() == 1) {
      bound_ = solve(0, limits_.total_bytes);
    } else {
      search_ends();
    }
    choose_saved();
    keep_all_that_fit();
    return feasible();
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
    solution_.assign(limits_.items.size(), 0);
  }

  /// Sets the limits for end bytes from `least` to `most`; returns an upper bound on the gain.
  std::int64_t relax(std::int64_t least, std::int64_t most) {
    limits_.set_limits(table_, budget_ - (table_.in_flight() - 1) * least, most);
    relaxation_.solve(prices_);
    return static_cast<std::int64_t>(prices_.bound >> prices_.shift);
  }

  /// Solves the problem for end bytes from `least` to `most`; returns an upper bound on the gain.
  /// Precondition: solutions within these limits are within the budget.
  std::int64_t solve(std::int64_t least, std::int64_t most) {
    std::int64_t bound = relax(least, most);
    round_down();
    if (gain_ >= bound) return bound;
    std::size_t const chosen = most_valuable([](window const&) { return true; });
    if (chosen != prices_.windows.size()) {
      knapsack_.solve(prices_.windows[chosen], options_.effort);
      bound = std::min(bound, knapsack_.bound());
      if (gain_ >= bound) return bound;
      sum_layers(knapsack_.saved());
      if (limits_.allow(sums_)) {
        accept(knapsack_.saved(), knapsack_.gain());
        return bound;
      }
    }
    queue_label_search labels(limits_, prices_);
    if (labels.run(gain_, max_labels())) labels.write(solution_);
    gain_ = labels.gain();
    return std::min(bound, labels.bound());
  }

  /// Finds the end bytes with the largest bound by bisection, and solves the problem for them. The
  /// relaxation is a concave function of the end bytes: more of them widen the windows that end
  /// after the last layer, and narrow all others. Therefore its prices bound all smaller or all
  /// larger end bytes too.
  void search_ends() {
    std::int64_t const others = table_.in_flight() - 1;
    std::int64_t high = (budget_ - (least_peak_ - others * least_end_)) / others;
    if (table_.layers_size() != 0) {
      high = std::min(high, (budget_ - table_.forward_transient.back()) / table_.in_flight());
    }
    high = std::min(high, limits_.total_bytes);
    std::int64_t const top = high;
    std::int64_t low = least_end_;
    std::int64_t best = high;
    std::int64_t most = -1;
    std::int64_t below = 0;
    std::int64_t above = 0;
    for (int count = 0; count != max_ends && low <= high; ++count) {
      std::int64_t const end = count == 0 ? high : low + (high - low) / 2;
      std::int64_t const bound = relax(end, end);
      if (bound > most) best = end;
      most = std::max(most, bound);
      int128 const growth = prices_of_end();
      if (growth >= 0) {
        low = end + 1;
        below = bound;
      }
      if (growth <= 0) {
        high = end - 1;
        above = bound;
      }
    }
    // All end bytes are at most `high` or above it.
    if (low <= high) below = std::max(below, relax(low, high));
    if (low > high && high >= least_end_) static_cast<void>(relax(high, high));
    if (high >= least_end_) bound_ = bound_by_window(below, true);
    if (high < top) {
      static_cast<void>(relax(high + 1, high + 1));
      bound_ = std::max(bound_, bound_by_window(above, false));
    }
    solve(best, best);
  }

  /// Returns the smaller one of a bound and of the bound by a window that ends after the last layer
  /// or by one that does not. Such a window is at its widest for the largest or for the smallest of
  /// the end bytes that the limits allow.
  [[nodiscard]] std::int64_t bound_by_window(std::int64_t bound, bool is_last) {
    std::size_t const chosen =
        most_valuable([&](window const& one) { return (one.last == limits_.size()) == is_last; });
    if (chosen == prices_.windows.size()) return bound;
    knapsack_.solve(prices_.windows[chosen], options_.effort);
    return std::min(bound, knapsack_.bound());
  }

  /// Returns the change of the bound for one more end byte, times 2^shift.
  [[nodiscard]] int128 prices_of_end() const {
    int128 result = 0;
    for (std::size_t c = 0; c != prices_.windows.size(); ++c) {
      bool const is_last = prices_.windows[c].last == limits_.size();
      result += prices_.prices[c] * int128{is_last ? 1 : 1 - table_.in_flight()};
    }
    return result;
  }

  [[nodiscard]] std::size_t max_labels() const {
    constexpr std::size_t levels[]{32, 128, 2048};
    return options_.labels.value_or(levels[static_cast<std::size_t>(options_.effort)]);
  }

  /// The allowed window with the largest value, which is its price times its bytes, or the number
  /// of windows.
  template <class Allowed>
  [[nodiscard]] std::size_t most_valuable(Allowed const& is_allowed) const {
    std::size_t result = prices_.windows.size();
    int128 most = -1;
    for (std::size_t c = 0; c != prices_.windows.size(); ++c) {
      int128 const value = static_cast<int128>(prices_.prices[c]) * prices_.windows[c].bytes;
      if (value <= most || !is_allowed(prices_.windows[c])) continue;
      most = value;
      result = c;
    }
    return result;
  }

  void sum_layers(std::vector<unsigned char> const& saved) {
    sums_.assign(limits_.size(), 0);
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] != 0) sums_[limits_.items[j].layer] += limits_.items[j].bytes;
    }
  }

  void accept(std::vector<unsigned char> const& saved, std::int64_t gain) {
    if (gain <= gain_) return;
    gain_ = gain;
    solution_ = saved;
  }

  /// Saves items if they fit, those with the largest part of the relaxed solution first.
  void round_down() {
    std::vector<std::uint32_t> order(limits_.items.size());
    std::iota(order.begin(), order.end(), 0u);
    auto const parts = relaxation_.parts();
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (parts[a] != parts[b]) return parts[a] > parts[b];
      auto const left = static_cast<int128>(limits_.items[a].gain) * limits_.items[b].bytes;
      auto const right = static_cast<int128>(limits_.items[b].gain) * limits_.items[a].bytes;
      return left != right ? left > right : a < b;
    });
    std::vector<unsigned char> saved(order.size(), 0);
    sums_.assign(limits_.size(), 0);
    std::int64_t gain = 0;
    for (std::uint32_t const j : order) {
      saved_item const& item = limits_.items[j];
      sums_[item.layer] += item.bytes;
      if (!limits_.allow(sums_)) {
        sums_[item.layer] -= item.bytes;
        continue;
      }
      saved[j] = 1;
      gain += item.gain;
    }
    accept(saved, gain);
  }

  /// Offloads the modules of the solution, and then all other modules that fit.
  void choose_saved() {
    choices_.assign(table_.bytes.size(), activation_choice::recompute);
    for (std::size_t k = 0; k != choices_.size(); ++k) {
      if (table_.needs[k] == module_need::required) choices_[k] = activation_choice::offload;
    }
    replay_.offloaded = table_.required_bytes;
    for (std::size_t j = 0; j != solution_.size(); ++j) {
      if (solution_[j] == 0) continue;
      saved_item const& item = limits_.items[j];
      choices_[item.place] = activation_choice::offload;
      replay_.offloaded[item.layer] += item.bytes;
    }
    for_each_module([&](std::size_t layer, std::size_t module) {
      if (choices_[module] != activation_choice::recompute) return;
      replay_.offloaded[layer] += table_.bytes[module];
      if (replay_.peak() <= budget_) {
        choices_[module] = activation_choice::offload;
      } else {
        replay_.offloaded[layer] -= table_.bytes[module];
      }
    });
  }

  /// Keeps modules instead of offloading them if they fit. The last layers are first, because their
  /// bytes have the least time on the link.
  void keep_all_that_fit() {
    for_each_module([&](std::size_t layer, std::size_t module) {
      if (choices_[module] != activation_choice::offload) return;
      std::int64_t const bytes = table_.bytes[module];
      replay_.offloaded[layer] -= bytes;
      replay_.kept[layer] += bytes;
      if (replay_.peak() <= budget_) {
        choices_[module] = activation_choice::keep;
      } else {
        replay_.offloaded[layer] += bytes;
        replay_.kept[layer] -= bytes;
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

  [[nodiscard]] activations_result<Time> feasible() {
    activations_result<Time> result;
    std::int64_t recomputed = 0;
    for (std::size_t i = 0; i != table_.layers_size(); ++i) {
      auto const first = choices_.begin() + static_cast<std::ptrdiff_t>(table_.offsets[i]);
      auto const last = choices_.begin() + static_cast<std::ptrdiff_t>(table_.offsets[i + 1]);
      result.choices.emplace_back(first, last);
      result.offloaded_bytes += replay_.offloaded[i];
    }
    for (std::size_t k = 0; k != choices_.size(); ++k) {
      if (choices_[k] != activation_choice::recompute) continue;
      result.added_time += table_.times[k];
      if (table_.bytes[k] != 0) recomputed += table_.to_whole(table_.times[k]);
    }
    std::int64_t const least = std::max<std::int64_t>(0, limits_.total_gain - bound_);
    std::int64_t const gap = std::max<std::int64_t>(0, recomputed - least);
    result.peak_bytes = replay_.peak();
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
  window_prices prices_;
  window_relaxation relaxation_;
  window_knapsack knapsack_;
  std::vector<std::int64_t> sums_;
  /// Whether each item is saved in the best solution, and its gain.
  std::vector<unsigned char> solution_;
  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
  std::vector<activation_choice> choices_;
};

}  // namespace omnibal::inline v0::detail
