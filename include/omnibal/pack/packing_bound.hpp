// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the number of groups.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/column_generation.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/run_bodies.hpp>
#include <omnibal/executor.hpp>
#include <omnibal/pack/detail/measured_bound.hpp>
#include <omnibal/pack/packing_bound/conflict_clique.hpp>
#include <omnibal/pack/packing_bound/dual_feasible.hpp>
#include <omnibal/pack/packing_bound/pattern_bound.hpp>
#include <omnibal/pack/packing_bound/summed_shares.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Returns the largest of `measured_bound`, the bounds by dual feasible functions, and a clique of
/// conflicts. An executor computes these bounds at once.
template <class Layout, executor Executor = serial_executor>
[[nodiscard]] std::size_t thorough_bound(measured<Layout> const& input,
                                         std::string_view function = {}, Executor const& run = {}) {
  using amounts_type = typename Layout::amounts_type;
  constexpr std::size_t kinds = amounts_type::size();
  if constexpr (!std::integral<typename amounts_type::value_type>) {
    return measured_bound(input);
  } else {
    // An executor begins with the bounds that take the most time, so that its threads end together.
    std::array<std::size_t, kinds == 1 ? 2 : kinds + 3> bounds = {};
    run_bodies(function, run, bounds.size(), [&](std::size_t k) {
      std::size_t const after = bounds.size() - 1 - k;
      if (after == 0) {
        bounds[k] = measured_bound(input);
      } else if (after <= kinds) {
        std::size_t const r = after - 1;
        bounds[k] = dual_feasible_bound(input.size(), input.amounts_of(r), input.capacity[r]);
      } else if (after == kinds + 1) {
        bounds[k] = summed_shares_bound(input);
      } else {
        bounds[k] = conflict_clique<Layout>(input).size();
      }
    });
    return *std::max_element(bounds.begin(), bounds.end());
  }
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct packing_bound_options {
  /// The effort: `thorough` also tries dual feasible functions, column generation and, with several
  /// resources, cliques of conflicts.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of steps of column generation. The default is 2^24 if the effort is
  /// `thorough`, and zero otherwise.
  std::optional<std::size_t> pattern_steps = {};
};

struct packing_bound_fn {
  /// Returns a lower bound on the number of groups of any packing of the samples under the
  /// capacity: the largest of several bounds. Oversized samples, which no group holds, do not
  /// count.
  ///
  /// - Volume and Martello-Toth L2 of each resource. Each sample above half of the capacity
  ///   requires its own group, and the smaller samples require room in these groups or in further
  ///   groups. The maximum over all thresholds is exact. Source: Martello, Toth, Knapsack Problems,
  ///   1990, chapter 8.
  /// - Patterns of each resource with a capacity below 256, such as images. If no group can hold
  ///   amounts with a total price above 1, the prices of all amounts add up to a bound. For
  ///   example, under a capacity of 12 images two samples of 5 leave room for two more images;
  ///   samples of 5, 3 and 1 images then have prices of 1/2, 1/4 and zero. Sources: Gilmore,
  ///   Gomory, 1961; Plotkin, Shmoys, Tardos, 1995.
  /// - Pairwise conflicts of two resources a and b, for each threshold x up to half of the capacity
  ///   of b. No two samples can share a group if each has a above half and b >= x, or b >
  ///   capacity - x.
  /// - With `effort::thorough`, dual feasible functions of each resource with a capacity up to
  ///   2^31. They round amounts such that no set of amounts that fits a group exceeds the group
  ///   afterwards. For example, each amount of 340 under a capacity of 1000 counts as a half,
  ///   because no three fit. With several resources the functions also apply to the sum of the
  ///   shares that samples use of all capacities. Each application costs at most a fixed number of
  ///   steps and a radix sort. Sources: Fekete, Schepers, 2001; Carlier, Clautiaux, Moukrim, 2007;
  ///   Vanderbeck, 2000; Burdett, Johnson, 1977.
  /// - With `effort::thorough` and several resources, a set of samples of which no two fit one
  ///   group. A greedy search finds the set among the 768 samples with the largest shares, after a
  ///   sort.
  /// - With `effort::thorough`, prices as above of all amounts together, for any capacities. They
  ///   come from a linear program over patterns by column generation. This bound of Gilmore and
  ///   Gomory is the optimum or one less in nearly all cases of one resource. It is computed only
  ///   if first-fit decreasing requires more groups than the other bounds. It also requires at most
  ///   406 different samples or, if `pattern_steps` is set, the cube root of `4 * pattern_steps`,
  ///   up to 4096. The search ends after `pattern_steps`, with the best bound so far. Integers are
  ///   used, so that rounding cannot make the bound too large. Sources: Gilmore, Gomory, 1961;
  ///   Farley, 1990; Nemhauser, Ullmann, 1969.
  ///
  /// With `effort::thorough`, an executor computes these bounds at once, except for column
  /// generation, whose steps depend on each other.
  ///
  /// Integers are at most 2^63 - 1 each; their sums may exceed 2^63 - 1.
  ///
  /// For floating-point amounts the bound is the larger of two numbers: the volume, reduced by an
  /// allowance for rounding, and the number of samples above half of the capacity.
  ///
  /// Complexity: linear in the samples, times R^2; at worst a radix sort if a capacity is not below
  /// the number of samples. Memory: 8 to 8R + 8 bytes per sample for the demands and at most 16
  /// bytes more. Thorough effort adds up to 64 bytes for each different amount, and column
  /// generation up to 4 bytes per step. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` if a capacity is not positive or a demand is negative or not finite,
  /// `std::length_error` if there are more than 2^32 - 1 samples.
  template <class Samples, class Demand, class Capacity, executor Executor = serial_executor>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] std::size_t operator()(Samples const& samples, Demand const& demand,
                                       Capacity const& capacity,
                                       packing_bound_options const& options = {},
                                       Executor const& run = {}) const {
    bool const is_thorough = options.effort == effort::thorough;
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      std::size_t const bound =
          is_thorough ? detail::thorough_bound(input, name, run) : detail::measured_bound(input);
      std::size_t const steps =
          options.pattern_steps.value_or(is_thorough ? detail::max_pattern_steps : 0);
      return steps == 0 ? bound : detail::generated_bound(input, bound, steps);
    });
  }

 private:
  static constexpr std::string_view name = "packing_bound";
};

/// Computes a lower bound on the number of groups; see `packing_bound_fn`.
inline constexpr packing_bound_fn packing_bound{};

}  // namespace omnibal::inline v0
