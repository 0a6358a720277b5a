// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Search for capacities with a wanted mean batch.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/run_bodies.hpp>
#include <omnibal/executor.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/objective.hpp>
#include <omnibal/pack/tune_capacity/capacity_search.hpp>
#include <omnibal/pack/tune_capacity_options.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

namespace omnibal::inline v0 {

namespace detail {

template <class Amounts>
using tune_options_for = tune_capacity_options<Amounts::size(), typename Amounts::value_type>;

template <class Samples, class Demand>
using tune_options_of = tune_options_for<measured_amounts<Samples, Demand>>;

template <class Packer, class Objective, class Amounts>
concept tunes = packer<Packer, std::span<Amounts const>, std::identity, Amounts> &&
    packing_objective<Objective, packed_samples<Amounts::size(), typename Amounts::value_type>>;

/// A packer of the demands of the samples, and an objective that rates the result.
template <class Samples, class Demand, class Packer, class Objective>
concept tunable = demand_function<Demand, sample_reference<Samples>> &&
    tunes<Packer, Objective, measured_amounts<Samples, Demand>>;

}  // namespace detail

struct tune_capacity_fn {
  /// Searches the capacity with the least `objective` at which the groups of the packer `pack` have
  /// the wanted size: on average from `target` to `target + options.width` samples. Several
  /// resources are searched together.
  ///
  /// `demand` maps a sample to resources or to one weight. The packer is called as the packers of
  /// pack/ are, with a span of demands as samples and `std::identity` as demand; the objective is
  /// called with `packed_samples`. The capacities range from the smallest capacity that suits the
  /// target to twice the mean demand of the largest wanted groups. The function tries evenly spread
  /// capacities, multiples of the commonest demand, and capacities between the best of these. It
  /// tries all of them on a random part of the samples, the best eighth on a part four times as
  /// large, and so forth. At last, `options.finalists` capacities are tried on all samples, or up
  /// to four times this number if none is accepted. If there are fewer samples than the first part
  /// has, all capacities are tried on all samples. The result has a warning if two samples with the
  /// commonest demand never fit one group; see `capacity_warnings`.
  ///
  /// The rule of the reference implementation uses `isf` as the packer, which keeps groups with all
  /// images or with tokens up to 128 below the capacity. Its objective is `published_rule`, its
  /// granularity is 16 for tokens, and its walk is `capacity_walk::together`.
  ///
  /// With an executor, the capacities of each round are tried on its threads, so that several
  /// threads may call the packer and the objective at once. If none of the first
  /// `options.finalists` is accepted, further capacities are tried one after the other.
  ///
  /// Complexity: about 200 packings of the first part, and the same number of samples in each
  /// following part, until the finalists have more; three sorts of the samples. Memory: 12R + 28
  /// bytes per sample and the packer's memory, on each thread of an executor. Determinism: portable
  /// for integers, with a portable packer and objective. Errors: `std::invalid_argument` if the
  /// target is not positive and finite, or options are out of range. It is also thrown if a demand
  /// is negative or not finite, an objective is not finite, or the packer loses samples. Further
  /// errors: `std::length_error` if there are more than 2^32 - 1 samples. Sources: Yao et al.,
  /// OmniBal, ICML 2025; Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed
  /// bandits", ICML 2013 (successive halving).
  template <sample_range Samples, class Demand, class Packer, class Objective,
            executor Executor = serial_executor>
    requires detail::tunable<Samples, Demand, Packer, Objective>
  [[nodiscard]] auto operator()(Samples const& samples, Demand const& demand, double target,
                                Packer const& pack, Objective const& objective,
                                detail::tune_options_of<Samples, Demand> const& options = {},
                                Executor const& run = {}) const {
    using amounts_type = detail::measured_amounts<Samples, Demand>;
    using amount_type = typename amounts_type::value_type;
    constexpr std::size_t kinds = amounts_type::size();
    check_arguments(target, options);
    if constexpr (checked_objective<Objective>) objective.check(name);

    tuned<kinds, amount_type> result;
    auto const demands = detail::demands_of<kinds, amount_type>(name, samples, demand);
    if (demands.empty()) return result;
    std::span<amounts_type const> const all(demands);
    detail::amount_profile<amount_type> profiles[kinds];
    detail::run_bodies(name, run, kinds, [&](std::size_t r) {
      profiles[r] = detail::profile_of(all, r, options.max_oversized);
    });
    detail::capacity_grid<kinds, amount_type> const grid(target, options, profiles);
    detail::capacity_search(all, target, pack, objective, options, grid, run).run(result);
    result.warnings = detail::warnings_of(result.best.capacity, profiles, demands.size(),
                                          options.common_share, options.granularity);
    return result;
  }

  /// Searches with `published_rule` for 8 ranks as the objective.
  template <sample_range Samples, class Demand, class Packer, executor Executor = serial_executor>
    requires detail::tunable<Samples, Demand, Packer, published_rule<>>
  [[nodiscard]] auto operator()(Samples const& samples, Demand const& demand, double target,
                                Packer const& pack,
                                detail::tune_options_of<Samples, Demand> const& options = {},
                                Executor const& run = {}) const {
    return (*this)(samples, demand, target, pack, published_rule<>{}, options, run);
  }

 private:
  static constexpr std::string_view name = "tune_capacity";

  template <std::size_t R, class T>
  static void check_arguments(double target, tune_capacity_options<R, T> const& options) {
    detail::check_positive(name, "target", target);
    detail::check_weight(name, "options.width", options.width);
    for (std::size_t r = 0; r != R; ++r) {
      detail::check_weight(name, "options.granularity", r, options.granularity[r]);
    }
    detail::check_share(name, "options.max_oversized", options.max_oversized);
    detail::check_share(name, "options.common_share", options.common_share);
    detail::check_positive(name, "options.candidates", options.candidates);
    detail::check_positive(name, "options.first_samples", options.first_samples);
    detail::check_positive(name, "options.finalists", options.finalists);
  }
};

/// Searches the capacity for a wanted mean group size; see `tune_capacity_fn`.
inline constexpr tune_capacity_fn tune_capacity{};

}  // namespace omnibal::inline v0
