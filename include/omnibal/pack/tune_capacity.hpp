#pragma once

/// \file
/// Capacities for a wanted mean batch.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
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

/// True where `Packer` packs the demands of the samples, and `Objective` judges the result.
template <class Samples, class Demand, class Packer, class Objective>
concept tunable = demand_function<Demand, sample_reference<Samples>> &&
    tunes<Packer, Objective, measured_amounts<Samples, Demand>>;

}  // namespace detail

struct tune_capacity_fn {
  /// Searches the capacity at which the groups of `packer` have the wanted mean number of samples,
  /// from `target` to `target + options.width`, and the least `objective`; several resources
  /// together.
  ///
  /// `demand` maps a sample to resources or to one weight. The packer is called like those of
  /// pack/, with a span of demands as samples and `std::identity` as demand; the objective with
  /// `packed_samples`. The capacities begin with the least that suits the target and go on to twice
  /// the need of the largest wanted groups: evenly spread ones, multiples of the commonest demand,
  /// and what lies between the best of these. They are tried on a random part of the samples, the
  /// best eighth on a part four times as large, and so on; `options.finalists` of them, up to four
  /// times as many where none is accepted, on all samples. With fewer samples than the first part
  /// has, all capacities are. The result has a warning where two samples with the commonest demand
  /// never fit one group; see `capacity_warnings`.
  ///
  /// The reference's rule is: `packer` an `isf` that keeps groups with all images or with tokens up
  /// to 128 below the capacity, `published_rule` as the objective, granularity 16 for tokens, and
  /// `capacity_walk::together`.
  ///
  /// Complexity: some 200 packings of the first part, and as many samples again in each of the
  /// following, until the finalists are more; three sorts of the samples. Memory: 12R + 28 bytes
  /// per sample and what the packer takes. Determinism: portable for integers, with a portable
  /// packer and objective. Errors: `std::invalid_argument` for a target that is not positive and
  /// finite, options out of range, a demand that is negative or not finite, an objective that is
  /// not finite and a packer that loses samples; `std::length_error` above 2^32 - 1 samples.
  /// Sources: Yao et al., OmniBal, ICML 2025; Karnin, Koren, Somekh, "Almost optimal exploration in
  /// multi-armed bandits", ICML 2013 (successive halving).
  template <sample_range Samples, class Demand, class Packer, class Objective>
    requires detail::tunable<Samples, Demand, Packer, Objective>
  [[nodiscard]] auto operator()(
      Samples const& samples, Demand const& demand, double target, Packer const& pack,
      Objective const& objective,
      detail::tune_options_of<Samples, Demand> const& options = {}) const {
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
    for (std::size_t r = 0; r != kinds; ++r) {
      profiles[r] = detail::profile_of(all, r, options.most_oversized);
    }
    detail::capacity_grid<kinds, amount_type> const grid(target, options, profiles);
    detail::capacity_search(all, target, pack, objective, options, grid).run(result);
    result.warnings = detail::warnings_of(result.best.capacity, profiles, demands.size(),
                                          options.common_share, options.granularity);
    return result;
  }

  /// The same with `published_rule` for 8 ranks.
  template <sample_range Samples, class Demand, class Packer>
    requires detail::tunable<Samples, Demand, Packer, published_rule<>>
  [[nodiscard]] auto operator()(
      Samples const& samples, Demand const& demand, double target, Packer const& pack,
      detail::tune_options_of<Samples, Demand> const& options = {}) const {
    return (*this)(samples, demand, target, pack, published_rule<>{}, options);
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
    detail::check_share(name, "options.most_oversized", options.most_oversized);
    detail::check_share(name, "options.common_share", options.common_share);
    detail::check_positive(name, "options.candidates", options.candidates);
    detail::check_positive(name, "options.first_samples", options.first_samples);
    detail::check_positive(name, "options.finalists", options.finalists);
  }
};

/// Capacities for a wanted mean batch; see `tune_capacity_fn`.
inline constexpr tune_capacity_fn tune_capacity{};

}  // namespace omnibal::inline v0
