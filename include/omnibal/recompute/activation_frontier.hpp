// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Choices of activations for several budgets, with times and peaks that are monotone in the
/// budget.

#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/activations_result.hpp>
#include <omnibal/recompute/select_activations.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

namespace omnibal::inline v0 {

struct activation_frontier_fn {
  /// Selects choices for each of several budgets, as `select_activations` does. From a feasible
  /// budget to a larger budget, the added time and its lower bound never rise, and the peak never
  /// falls. The result has one element for each budget, in the order of `budgets`.
  ///
  /// The budgets are solved in ascending order. A budget inherits the choices of the previous
  /// budget unless its own choices are better. Own choices are better if they add less time, or the
  /// same time with fewer offloaded bytes, or if both are equal and the peak is lower. If better
  /// choices have a lower peak than the choices of smaller budgets, they fit these budgets too and
  /// replace their choices. The lower bound of a budget is the largest lower bound of this budget
  /// and all larger ones. Therefore each added time is at most the added time of
  /// `select_activations` for the same budget, each lower bound is at least its lower bound, and
  /// more results may be proven. In contrast to `select_activations`, a module that fits may still
  /// be recomputed or offloaded.
  ///
  /// Separate calls of `select_activations` do not guarantee this order, because each call sees
  /// only one budget. Optimal choices with the lowest peak would be in this order, but no search
  /// finds them in reasonable time for all inputs.
  ///
  /// Complexity: a call of `select_activations` for each budget, and a comparison with each smaller
  /// budget whose choices are replaced. Memory: as `select_activations`, and the results.
  /// Determinism: as `select_activations`. Errors: as `select_activations`; without budgets the
  /// layers are not checked. If a budget is too small, the function does not throw; the status of
  /// its result is infeasible.
  template <activation_layer_range Layers>
  [[nodiscard]] std::vector<activations_result<detail::activation_time<Layers>>> operator()(
      Layers const& layers, std::span<std::int64_t const> budgets, offload_link const& link,
      select_activations_options const& options = {}) const {
    std::vector<std::size_t> order(budgets.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return budgets[a] < budgets[b]; });
    std::vector<activations_result<detail::activation_time<Layers>>> results(budgets.size());
    for (std::size_t k = 0; k != order.size(); ++k) {
      auto& found = results[order[k]];
      found = select_activations(layers, budgets[order[k]], link, options);
      if (found.status == solve_status::infeasible) continue;
      bool const is_first = k == 0 || results[order[k - 1]].status == solve_status::infeasible;
      if (is_first) continue;
      if (!is_better(found, results[order[k - 1]])) {
        replace(results[order[k - 1]], found);
        continue;
      }
      for (std::size_t smaller = k; smaller-- != 0;) {
        auto& known = results[order[smaller]];
        if (known.status == solve_status::infeasible) break;
        if (known.peak_bytes <= found.peak_bytes) break;
        replace(found, known);
      }
    }
    raise_bounds(order, results);
    return results;
  }

 private:
  template <class Result>
  [[nodiscard]] static bool is_better(Result const& left, Result const& right) {
    return std::tie(left.added_time, left.offloaded_bytes, left.peak_bytes) <
           std::tie(right.added_time, right.offloaded_bytes, right.peak_bytes);
  }

  /// Replaces the result of a budget by the result of another budget, but keeps its lower bound.
  template <class Result>
  static void replace(Result const& from, Result& to) {
    auto const bound = to.lower_bound;
    to = from;
    to.lower_bound = bound;
  }

  /// Raises lower bounds: a lower bound of a budget also holds for each smaller budget.
  template <class Result>
  static void raise_bounds(std::vector<std::size_t> const& order, std::vector<Result>& results) {
    for (std::size_t k = order.size(); k-- != 0;) {
      auto& one = results[order[k]];
      if (one.status == solve_status::infeasible) break;
      if (k + 1 != order.size()) {
        one.lower_bound = std::max(one.lower_bound, results[order[k + 1]].lower_bound);
      }
      one.lower_bound = std::min(one.lower_bound, one.added_time);
      one.proven = one.lower_bound == one.added_time;
    }
  }
};

/// Selects choices for several budgets, with times and peaks that are monotone in the budget; see
/// `activation_frontier_fn`.
inline constexpr activation_frontier_fn activation_frontier{};

}  // namespace omnibal::inline v0
