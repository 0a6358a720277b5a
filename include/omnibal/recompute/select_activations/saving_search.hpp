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
#include <omnibal/recompute/select_activations/end_search.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_activations/saving_solver.hpp>
#include <omnibal/recompute/select_activations/window_knapsack.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Searches for the saved modules, and assigns a choice to each module.
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
    std::int64_t const min_peak = replay_.peak(saved_);
    if (min_peak > budget_) return infeasible(min_peak);
    budget_ = std::min(budget_, table_.most_bytes());
    saving_solver<Time> solver(table_, budget_, options_);
    saved_solution const solution =
        table_.in_flight() == 1 ? solver.solve({0, solver.limits().total_bytes})
                                : end_search<Time>(table_, budget_, solver).run(options_.effort);
    choose_saved(solver.limits(), solution.saved);
    keep_all_that_fit();
    return feasible(solver.limits().total_gain - solution.bound);
  }

 private:
  /// Offloads the required and saved modules, and then all other modules that fit.
  void choose_saved(queue_limits const& limits, std::vector<unsigned char> const& saved) {
    choices_.assign(table_.bytes.size(), activation_choice::recompute);
    for (std::size_t k = 0; k != choices_.size(); ++k) {
      if (table_.needs[k] == module_need::required) choices_[k] = activation_choice::offload;
    }
    saved_.offloaded = table_.required_bytes;
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] == 0) continue;
      saved_item const& item = limits.items[j];
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

  /// Keeps modules instead of offloading them if they fit. Begins with the last layers, because the
  /// link has the least time to transfer their bytes.
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

  /// Returns the result for the current choices. `min_added` is a lower bound of the time that they
  /// add, as a whole number.
  [[nodiscard]] activations_result<Time> feasible(std::int64_t min_added) {
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
    std::int64_t const gap =
        std::max<std::int64_t>(0, recomputed - std::max<std::int64_t>(0, min_added));
    result.peak_bytes = replay_.peak(saved_);
    result.proven = gap == 0;
    result.lower_bound = std::max(Time{}, result.added_time - table_.from_whole(gap));
    return result;
  }

  [[nodiscard]] activations_result<Time> infeasible(std::int64_t min_peak) const {
    activations_result<Time> result;
    result.status = solve_status::infeasible;
    result.proven = true;
    result.peak_bytes = min_peak;
    result.missing_bytes =
        saturate_cast<std::int64_t>(static_cast<int128>(result.peak_bytes) - budget_);
    return result;
  }

  activation_table<Time> const& table_;
  std::int64_t budget_;
  select_activations_options const& options_;
  activation_replay<Time> replay_;
  saved_bytes saved_;
  std::vector<activation_choice> choices_;
};

}  // namespace omnibal::inline v0::detail
