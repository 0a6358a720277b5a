#pragma once

/// \file
/// Lower bounds on the number of groups.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/bounds.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>

namespace omnibal::inline v0 {

namespace detail {

/// The largest of the bounds for samples that all fit an empty group.
template <class Layout>
[[nodiscard]] std::size_t measured_bound(measured<Layout> const& input) {
  using amounts_type = typename Layout::amounts_type;
  std::size_t bound = input.demands.empty() ? 0 : 1;
  for (std::size_t r = 0; r != amounts_type::size(); ++r) {
    bound = std::max(bound, resource_bound(input.size(), input.amounts_of(r), input.capacity[r]));
    if constexpr (std::integral<typename amounts_type::value_type>) {
      for (std::size_t s = 0; s != amounts_type::size(); ++s) {
        if (r == s) continue;
        bound = std::max(bound, conflict_bound(input.size(), input.amounts_of(r), input.capacity[r],
                                               input.amounts_of(s), input.capacity[s]));
      }
    }
  }
  return bound;
}

}  // namespace detail

struct packing_bound_fn {
  /// A number of groups below which no packing of the samples under the capacity can go: the
  /// largest of four bounds. Oversized samples, which no group holds, do not count.
  ///
  /// - Volume and Martello-Toth L2 of each resource: samples above half of the capacity take a
  ///   group each, and the smaller ones must find room beside them or in further groups. Exact
  ///   maximum over all thresholds. Source: Martello, Toth, Knapsack Problems, 1990, chapter 8.
  /// - Patterns of each resource with a capacity below 256, such as images: prices of the amounts,
  ///   of which no group can hold more than 1, add up to a bound. Where 12 images are the capacity,
  ///   two samples of 5 leave room for two more images, and samples of 5, 3 and 1 images are worth
  ///   1/2, 1/4 and nothing. Sources: Gilmore, Gomory, 1961; Plotkin, Shmoys, Tardos, 1995.
  /// - Pairwise conflicts of two resources a and b: for each threshold x the samples with a above
  ///   half and b >= x, together with those with b > capacity - x, cannot share a group in pairs.
  ///
  /// Integers are at most 2^63 - 1 each; their sums may exceed that.
  ///
  /// For floating-point amounts it is the volume, less an allowance for rounding, and the number of
  /// samples above half of the capacity. Complexity: linear where a capacity is below the number of
  /// samples, else that of a radix sort; times R^2. Memory: 8 to 8R + 8 bytes per sample for the
  /// demands and at most 16 bytes more. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a capacity that is not positive and for a demand that is negative
  /// or not finite, `std::length_error` above 2^32 - 1 samples.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] std::size_t operator()(Samples const& samples, Demand const& demand,
                                       Capacity const& capacity) const {
    return detail::with_measured("packing_bound", samples, demand, capacity,
                                 [](auto&& input) { return detail::measured_bound(input); });
  }
};

/// A lower bound on the number of groups; see `packing_bound_fn`.
inline constexpr packing_bound_fn packing_bound{};

}  // namespace omnibal::inline v0
