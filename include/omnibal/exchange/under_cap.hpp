// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A balancer of plans for strict caps.

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
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

/// A balancer that computes parts by `balance_under_capacity`; no part exceeds `capacity`. A
/// typical capacity is a cap on the tokens of a rank because memory is limited. The cost of a
/// sample is resources: its cost, and then an amount for each kind of the capacity. The resources
/// are integers; for floating-point resources this class is not a balancer. The balancer ignores
/// the present ranks of samples, and accepts only equal `options.speeds`, because any rank can
/// receive each part. Errors: `std::invalid_argument` for different speeds; `capacity_error` on all
/// ranks, because they decide on equal numbers. Its text contains the reason and the rank of a
/// sample that exceeds the capacity by itself. Further errors: the errors of
/// `balance_under_capacity`.
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
    auto const cost = [](resources<R + 1> const& amount) { return amount[0]; };
    auto const demand = [](resources<R + 1> const& amount) {
      resources<R> result;
      std::copy_n(amount.amounts + 1, R, result.amounts);
      return result;
    };
    if (!detail::part_speeds("under_cap", options.speeds, home.size(), "ranks").are_equal()) {
      detail::throw_invalid("under_cap",
                            "options.speeds has different speeds, but any rank can receive each "
                            "part; use rebalance with speeds instead");
    }
    auto found = balance_under_capacity(amounts, home.size(), cost, demand, capacity, options);
    if (found.status == solve_status::solved) return std::move(found.parts);
    std::string why = "no parts within the capacity were found, but there may be some";
    if (found.reason == within_reason::sample_above_capacity) {
      why = too_large(home, found.sample, demand(amounts[found.sample]));
    } else if (found.status == solve_status::infeasible) {
      why = "the samples do not fit into so many parts as there are ranks, which are " +
            detail::to_text(home.size());
      if (found.parts_needed > home.size()) {
        why += "; they take " + detail::to_text(found.parts_needed);
      }
    }
    throw capacity_error(detail::message("under_cap", why));
  }

 private:
  [[nodiscard]] std::string too_large(grouping_view home, std::size_t sample,
                                      resources<R> const& demand) const {
    std::size_t rank = 0;
    while (sample >= home[rank].size()) sample -= home[rank++].size();
    std::size_t kind = 0;
    while (demand[kind] <= capacity[kind]) ++kind;
    return "sample " + detail::to_text(sample) + " of rank " + detail::to_text(rank) + " needs " +
           detail::to_text(demand[kind]) + " of capacity[" + detail::to_text(kind) +
           "], which is " + detail::to_text(capacity[kind]);
  }
};
template <std::integral Capacity>
under_cap(Capacity, balance_under_capacity_options = {}) -> under_cap<1>;
template <std::size_t R>
under_cap(resources<R>, balance_under_capacity_options = {}) -> under_cap<R>;

}  // namespace omnibal::inline v0
