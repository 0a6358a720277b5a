// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Choice of activations to keep, to recompute and to offload under a peak of memory.

#include <omnibal/check.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/activations_result.hpp>
#include <omnibal/recompute/detail/activation_table.hpp>
#include <omnibal/recompute/select_activations/saving_search.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

struct select_activations_fn {
  /// Selects for each module whether its activations are kept, recomputed or offloaded, so that
  /// recomputation adds the least time within a budget of bytes. The bytes on the device, as
  /// `measure_activations` computes them, never exceed the budget during any pass of any layer.
  ///
  /// Required modules are kept or offloaded. Other traffic of the link precedes activations.
  ///
  /// An offloaded module never requires more bytes than the same module if it is kept. Therefore
  /// the search first selects the saved modules, as if all of them were offloaded. The limits of
  /// both queues limit the saved bytes of consecutive layers, which are called windows. The linear
  /// relaxation by cutting planes finds the windows that limit the solution, and yields a bound.
  /// The window with the largest value is a knapsack problem, which `select_recompute` solves. If
  /// its solution exceeds another window, label search over both queues finds a solution of the
  /// whole problem. Finally, the search keeps saved modules instead of offloading them if they fit,
  /// the last layers first.
  ///
  /// In the end no further module fits. Let g be `in_flight` times the bytes of the largest module
  /// that is not kept: the peak is at least the budget minus g. If two budgets differ by more than
  /// g, the larger one has the larger peak. If both results are proven, the larger budget never has
  /// the larger time. A bound is never above the time of a smaller budget. The results of
  /// `activation_frontier` are in the order of the budgets without these conditions.
  ///
  /// If several micro-batches are in flight, each also holds the bytes that are in the queues at
  /// the end of the forward pass. Branch and bound divides the range of these bytes. The efforts
  /// `fast`, `normal` and `thorough` solve at most 1, 8 and 64 ranges.
  ///
  /// Floating-point times are rounded to whole numbers of a unit of at most 2^-61 of their sum. The
  /// bound and the proof are exact except for one unit for each module and for the rounding of
  /// sums. They are exact for whole numbers that add up to less than 2^53, and for all integers.
  ///
  /// Complexity: layers * modules steps and a call of `select_recompute` for all modules; if its
  /// solution exceeds another window, also labels * modules steps. All of this is repeated for each
  /// range. Memory: 200 bytes for each module and 8 bytes for each module and label. Determinism:
  /// the same result for the same program; the prices of windows are floating-point numbers.
  /// Errors: `std::invalid_argument` if a number is negative or not finite, and if in_flight or
  /// labels is below 1. Further errors: `std::overflow_error` if the bytes of all micro-batches or
  /// the sum of the times exceed their type; `std::length_error` if there are more than 2^32 - 1
  /// layers or modules. If the budget is too small or negative, the function does not throw; the
  /// status is infeasible. Sources: Bitran and Yanasse, "Computational complexity of the
  /// capacitated lot size problem", 1982; Wagner, "The dual simplex algorithm for bounded
  /// variables", 1958.
  template <activation_layer_range Layers>
  [[nodiscard]] activations_result<detail::activation_time<Layers>> operator()(
      Layers const& layers, std::int64_t budget, offload_link const& link,
      select_activations_options const& options = {}) const {
    using time_type = detail::activation_time<Layers>;
    if (options.labels == std::size_t{0}) {
      detail::throw_invalid(name, "options.labels is 0, must be at least 1");
    }
    detail::activation_table<time_type> table(name, link, options.in_flight);
    table.assign(layers);
    detail::saving_search<time_type> search(table, budget, options);
    return search.run();
  }

 private:
  static constexpr std::string_view name = "select_activations";
};

/// Selects the activations to keep, to recompute and to offload; see `select_activations_fn`.
inline constexpr select_activations_fn select_activations{};

}  // namespace omnibal::inline v0
