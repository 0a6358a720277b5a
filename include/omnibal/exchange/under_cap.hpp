// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balancers of plans for strict caps: one for all ranks, or one for each rank.

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// The cost of a sample under a cap: the first amount of its resources.
struct capped_cost {
  template <std::size_t R>
  [[nodiscard]] constexpr auto operator()(resources<R> const& amounts) const {
    return amounts[0];
  }
};

/// The demand of a sample under a cap: the amounts after the first.
struct capped_demand {
  template <std::size_t R>
  [[nodiscard]] constexpr resources<R - 1> operator()(resources<R> const& amounts) const {
    resources<R - 1> result;
    std::copy_n(amounts.amounts + 1, R - 1, result.amounts);
    return result;
  }
};

/// Returns parts under `capacity`, one for each rank. `too_large(sample)` returns the end of the
/// text of a sample that exceeds the capacity. Errors: `capacity_error` if there are no parts.
template <class Amounts, class Capacity, class TooLarge>
[[nodiscard]] grouping parts_under_cap(std::string_view function, grouping_view home,
                                       Amounts const& amounts, Capacity const& capacity,
                                       balance_under_capacity_options const& options,
                                       TooLarge const& too_large) {
  auto found = balance_under_capacity(amounts, home.size(), capped_cost{}, capped_demand{},
                                      capacity, options);
  if (found.status == solve_status::solved) return std::move(found.parts);
  std::string why = "no parts within the capacity were found, but there may be some";
  if (found.reason == within_reason::sample_above_capacity) {
    std::size_t rank = 0;
    std::size_t sample = found.sample;
    while (sample >= home[rank].size()) sample -= home[rank++].size();
    why = "sample " + to_text(sample) + " of rank " + to_text(rank) + " " +
          too_large(capped_demand{}(amounts[found.sample]));
  } else if (found.status == solve_status::infeasible) {
    why = "the samples do not fit into so many parts as there are ranks, which are " +
          to_text(home.size());
    if (found.parts_needed > home.size()) why += "; they take " + to_text(found.parts_needed);
  }
  throw capacity_error(message(function, why));
}

}  // namespace detail

/// A balancer that computes parts by `balance_under_capacity`; no part exceeds `capacity`. A
/// typical capacity is a cap on the tokens of a rank because memory is limited. The cost of a
/// sample is resources: its cost, and then an amount for each kind of the capacity. The resources
/// are integers; for floating-point resources this class is not a balancer. The balancer ignores
/// the present ranks of samples, and accepts only equal `options.speeds`, because any rank can
/// receive each part; `under_caps` accepts different ones. Errors: `std::invalid_argument` for
/// different speeds; `capacity_error` on all ranks, because they decide on equal numbers. Its text
/// contains the reason and the rank of a sample that exceeds the capacity by itself. Further
/// errors: the errors of `balance_under_capacity`.
template <std::size_t R>
struct under_cap {
  resources<R> capacity;
  balance_under_capacity_options options = {};
  static constexpr bool needs_integers = true;
  static constexpr bool is_relabeled = true;

  template <sample_range Amounts, class Bytes>
    requires std::same_as<std::remove_cvref_t<sample_reference<Amounts>>, resources<R + 1>>
  [[nodiscard]] grouping operator()(grouping_view home, Amounts const& amounts, Bytes const&,
                                    rebalance_options const&) const {
    if (!detail::part_speeds("under_cap", options.speeds, home.size(), "ranks").are_equal()) {
      detail::throw_invalid("under_cap",
                            "options.speeds has different speeds, but any rank can receive each "
                            "part; use under_caps with speeds instead");
    }
    return detail::parts_under_cap(
        "under_cap", home, amounts, capacity, options, [this](resources<R> const& demand) {
          std::size_t kind = 0;
          while (demand[kind] <= capacity[kind]) ++kind;
          return "needs " + detail::to_text(demand[kind]) + " of capacity[" +
                 detail::to_text(kind) + "], which is " + detail::to_text(capacity[kind]);
        });
  }
};
template <std::integral Capacity>
under_cap(Capacity, balance_under_capacity_options = {}) -> under_cap<1>;
template <std::size_t R>
under_cap(resources<R>, balance_under_capacity_options = {}) -> under_cap<R>;

/// A balancer like `under_cap` for ranks with different capacities, different speeds, or both. Part
/// r never exceeds `capacities[r]` and is for rank r. Without `options.speeds`, the speeds of the
/// plan apply. Errors: `capacity_error` on all ranks, with the reason, and the errors of
/// `balance_under_capacity`, such as `std::invalid_argument` if there is not one capacity for each
/// rank.
template <std::size_t R>
struct under_caps {
  std::vector<resources<R>> capacities;
  balance_under_capacity_options options = {};
  static constexpr bool needs_integers = true;

  template <sample_range Amounts, class Bytes>
    requires std::same_as<std::remove_cvref_t<sample_reference<Amounts>>, resources<R + 1>>
  [[nodiscard]] grouping operator()(grouping_view home, Amounts const& amounts, Bytes const&,
                                    rebalance_options const& of_plan) const {
    balance_under_capacity_options with_speeds = options;
    if (options.speeds.empty()) with_speeds.speeds = of_plan.speeds;
    return detail::parts_under_cap(
        "under_caps", home, amounts, capacities, with_speeds, [](resources<R> const& demand) {
          return "needs " + detail::list_text(demand.amounts) + ", which fits no rank";
        });
  }
};
template <std::size_t R>
under_caps(std::vector<resources<R>>, balance_under_capacity_options = {}) -> under_caps<R>;

}  // namespace omnibal::inline v0
