// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The packing with the fewest groups of many packings.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/portfolio.hpp>
#include <omnibal/pack/detail/scalar_best_fit.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/solve_status.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

struct best_packing_options {
  /// The effort: the maximum number of orders, and of samples in all orders together. `fast`
  /// permits 16 orders and 4096 samples, `normal` 256 and 16,384, `thorough` 4096 and 2^20.
  omnibal::effort effort = omnibal::effort::normal;
  /// The measure of the first order.
  size_measure measure = size_measure::sum_of_shares;
  /// The maximum number of orders; takes precedence over the effort. With one order, the result is
  /// the result of `best_fit_decreasing`.
  std::optional<std::size_t> orders{};
};

struct best_packing_fn {
  /// Packs the samples in several ways and returns the packing with the fewest groups. The ways are
  /// best-fit decreasing of the samples in many orders, and random full groups followed by best fit
  /// of the rest. The random groups are better if sizes are similar and only a mixture of them
  /// fills a group.
  ///
  /// The first order is the order of `best_fit_decreasing`, the second the order of the other
  /// measure. Further orders vary these two orders by random numbers that are the same in every
  /// call. Orders are tried until the lower bound is reached, and as long as orders times samples
  /// are at most the samples of the effort. If this permits only one order, a test with a part of
  /// the samples decides between this order and the random groups. One integer resource needs no
  /// second order: the result is `best_fit_decreasing`. More effort never returns more groups.
  /// `improve_packing` reduces the number of groups of this packing in more time.
  ///
  /// `demand`, `capacity`, the order of the groups, memory, determinism and errors are the same as
  /// in `best_fit_decreasing`. Zero orders are a further error, `std::invalid_argument`. The effort
  /// `thorough` requires at most 16 + 8R bytes per sample more. The report counts the attempts as
  /// rounds. Complexity: the complexity of `best_fit_decreasing` for each attempt. If there are
  /// more samples than the effort permits, one attempt and a test of 1024 to 8192 samples.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity,
                                   best_packing_options const& options = {}) const {
    detail::check_positive(name, "options.orders", options.orders.value_or(1));
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using amounts_type = typename std::remove_cvref_t<decltype(input)>::amounts_type;
      if constexpr (amounts_type::size() == 1 && std::integral<typename amounts_type::value_type>) {
        return detail::pack_scalars(std::forward<decltype(input)>(input));
      } else {
        return detail::pack_portfolio(std::forward<decltype(input)>(input), options.measure,
                                      limits_of(options));
      }
    });
  }

 private:
  static constexpr std::string_view name = "best_packing";

  [[nodiscard]] static constexpr detail::portfolio_limits limits_of(
      best_packing_options const& options) {
    constexpr detail::by_effort<detail::portfolio_limits> levels{
        .fast = {16, 4096},
        .normal = detail::normal_portfolio,
        .thorough = {4096, std::size_t{1} << 20}};
    detail::portfolio_limits limits = levels[options.effort];
    limits.orders = options.orders.value_or(limits.orders);
    return limits;
  }
};

/// Packs in several ways and returns the packing with the fewest groups; see `best_packing_fn`.
inline constexpr best_packing_fn best_packing{};

}  // namespace omnibal::inline v0
