// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Iterative sampling and filtering, OmniBal's packer.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/isf_rounds.hpp>
#include <omnibal/pack/detail/measured_bound.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <utility>

namespace omnibal::inline v0 {

struct isf_fn {
  /// Packs by iterative sampling and filtering. Each round shuffles the pool, packs it by next-fit,
  /// keeps the groups that satisfy the keep rule, and returns the other samples to the pool in
  /// their order. The last round keeps every group, and the report counts the groups below the
  /// rule. The rounds end early when the pool is empty. If a round keeps a smaller share of its
  /// samples than `options.min_gain`, the next round is the last.
  ///
  /// `demand` maps a sample to resources or to one weight, and `capacity` has the same number of
  /// kinds. Integers are at most 2^63 - 1 each, and their sums may exceed 2^63 - 1. `keep(load)`
  /// defaults to `reaches_any` of 31/32 of the capacity. `shuffle(span, round)` defaults to
  /// `rng::fisher_yates{0}`. With `rng::numpy_shuffle` and the keep rule "images equal to the
  /// capacity or tokens at least the threshold", the groups and their order are the same as in the
  /// reference implementation, if no sample is oversized.
  ///
  /// Complexity: linear in `report.item_rounds`. Memory: at most 24 + 8R bytes per sample,
  /// including the result; with `rng::feistel` or a shuffler of indices, 8 to 8R + 8 bytes per
  /// sample more. Determinism: portable for integers. Errors: `std::invalid_argument` if the
  /// capacity is not positive, a threshold is above the capacity, there are no rounds, or a gain is
  /// not in [0, 1]. It is also thrown if a demand is negative or not finite, or a shuffler does not
  /// permute. Further errors: `std::length_error` if there are more than 2^32 - 1 samples. Source:
  /// Yao et al., OmniBal, ICML 2025.
  template <class Samples, class Demand, class Capacity, class Keep,
            class Shuffle = rng::fisher_yates>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        keep_rule<Keep, resources<detail::kinds_of<Capacity>,
                                  detail::working_weight_of<Samples, Demand, Capacity>>> &&
        shuffler<Shuffle>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, isf_options const& options,
                                   Keep const& keep, Shuffle const& shuffle = {}) const {
    auto const limits = detail::checked_capacity<Samples, Demand, Capacity>("isf", capacity);
    detail::check_positive("isf", "options.rounds", options.rounds);
    detail::check_share("isf", "options.min_gain", options.min_gain);
    if constexpr (checked_keep_rule<Keep, decltype(limits)>) keep.check("isf", limits);

    return detail::with_measured("isf", samples, demand, capacity, [&](auto&& input) {
      packing result;
      result.report.lower_bound = detail::measured_bound(input);
      result.groups = detail::run_isf(input, options, keep, shuffle, result.report);
      result.oversized = std::move(input.oversized);
      return result;
    });
  }

  /// Packs with the default keep rule.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity,
                                   isf_options const& options = {}) const {
    auto const limits = detail::checked_capacity<Samples, Demand, Capacity>("isf", capacity);
    return (*this)(samples, demand, capacity, options, reaches_most(limits));
  }
};

/// Packs by iterative sampling and filtering; see `isf_fn`.
inline constexpr isf_fn isf{};

}  // namespace omnibal::inline v0
