// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit decreasing packing.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/measured_bound.hpp>
#include <omnibal/pack/detail/sample_size.hpp>
#include <omnibal/pack/detail/scalar_best_fit.hpp>
#include <omnibal/pack/detail/vector_best_fit.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>

#include <cmath>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

struct best_fit_decreasing_options {
  size_measure measure = size_measure::sum_of_shares;
};

struct best_fit_decreasing_fn {
  /// Packs the samples from the largest to the smallest, each into the group that it fits best. A
  /// sample that fits no group opens a new group. `options.measure` defines the size of a sample;
  /// with one resource both measures give the same order. The best group is the group with the
  /// least `score(left, demand)`. Equal samples are packed by ascending index; among equal groups
  /// the group that changed last is chosen.
  ///
  /// `demand` maps a sample to resources or to one weight, and `capacity` has the same number of
  /// kinds. Integers are at most 2^63 - 1 each, and their sums may exceed 2^63 - 1. For one
  /// resource the result has at most 11/9 of the fewest groups plus four. For several resources,
  /// the groups are looked up by their room in at most 64 cells, and within a cell by the resource
  /// whose demands vary most. The lookup is exact for common capacities (images below 64, tokens
  /// below 32768 / images). If it is not exact, up to 16 groups of a cell are tried, and a group
  /// that fits may be missed.
  ///
  /// `best_packing` finds fewer groups, because it tries several orders.
  ///
  /// Neighbors among the groups resemble each other: apply `deal` or a shuffle to the groups before
  /// training. Complexity: linear for one integer resource, except for comparisons among sizes or
  /// rooms with equal leading bits; for several, linear for the sort and at most 64 cells for each
  /// sample. Memory: at most 24 + 8R bytes per sample, including the result, and 256 KiB.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` if a capacity is not
  /// positive, if a demand is negative or not finite, or if a score is not a number;
  /// `std::length_error` if there are more than 2^32 - 1 samples. Sources: Johnson, 1973;
  /// Panigrahy, Talwar, Uyeda, Wieder, "Heuristics for vector bin packing", 2011.
  template <class Samples, class Demand, class Capacity, class Score>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        fit_score<Score, resources<detail::kinds_of<Capacity>,
                                   detail::working_weight_of<Samples, Demand, Capacity>>>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity,
                                   best_fit_decreasing_options const& options,
                                   Score const& score) const {
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using input_type = std::remove_cvref_t<decltype(input)>;
      auto const user_score = [&](auto const& left, auto const& amounts) {
        auto value = score(input_type::in_user_units(left, input.units),
                           input_type::in_user_units(amounts, input.units));
        if constexpr (std::floating_point<decltype(value)>) {
          if (std::isnan(value)) {
            detail::throw_invalid(name, "the score of a group is not a number");
          }
        }
        return value;
      };
      return pack(input, options, user_score);
    });
  }

  /// Packs with the score `min_slack`, the remaining shares of the capacity.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity,
                                   best_fit_decreasing_options const& options = {}) const {
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using amounts_type = typename std::remove_cvref_t<decltype(input)>::amounts_type;
      if constexpr (amounts_type::size() == 1 && std::integral<typename amounts_type::value_type>) {
        return detail::pack_scalars(std::forward<decltype(input)>(input));
      } else {
        return pack(input, options, min_slack(input.capacity));
      }
    });
  }

 private:
  static constexpr std::string_view name = "best_fit_decreasing";

  template <class Layout, class Score>
  [[nodiscard]] static packing pack(detail::measured<Layout>& input,
                                    best_fit_decreasing_options const& options,
                                    Score const& score) {
    packing result;
    result.report.lower_bound = detail::measured_bound(input);
    result.report.rounds = 1;
    result.report.item_rounds = input.size();
    detail::sample_size const size(input.capacity, options.measure);
    result.groups = detail::vector_best_fit(input, detail::demands_after::freed, size, score);
    result.oversized = std::move(input.oversized);
    return result;
  }
};

/// Packs by best-fit decreasing; see `best_fit_decreasing_fn`.
inline constexpr best_fit_decreasing_fn best_fit_decreasing{};

}  // namespace omnibal::inline v0
