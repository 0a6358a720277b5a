// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The most even parts, by branch and bound.

#include <omnibal/balance/balance_result.hpp>
#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_search.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct balance_optimally_options {
  count_policy count = count_policy::any;
  /// The maximum number of placements of samples, including repeated placements, before the search
  /// ends without a proof.
  std::uint64_t nodes = 10'000'000;
  /// The speed of each part, or one value for all; empty for equal speeds. The array must outlive
  /// the option.
  detail::speed_list speeds = {};
};

struct balance_optimally_fn {
  /// Finds the parts with the smallest largest load, for small numbers of samples. The search is
  /// practical for about 20 samples of arbitrary costs, and for many more if a solution reaches the
  /// mean load. The results can serve as a reference for other algorithms.
  ///
  /// The search starts from the results of `lpt` and, for one resource, of `karmarkar_karp`. It
  /// places the samples from the largest to the smallest, depth first. It skips parts that are
  /// equivalent to another part, and ends a branch if the room of the parts cannot hold the
  /// remaining samples. If `proven` is false, the search used all nodes, and the parts are the best
  /// that it found. Costs may be resources as in `lpt`; the search then minimizes the largest
  /// share. Floating-point costs are compared as whole multiples of 2^-62 of their sum, shares as
  /// whole multiples of 2^-52.
  ///
  /// With `options.speeds`, the search minimizes the largest load over speed, and starts from the
  /// result of `lpt` with speeds. Each load of the result is then the load that the fastest part
  /// has at the same time. Integers are rounded up and are at most 2^63 - 1. Speeds are rounded as
  /// in `lpt`.
  ///
  /// The samples of a part have ascending indices. Complexity: up to `options.nodes` placements,
  /// each in time proportional to the square of the number of parts; without this limit,
  /// exponential in the number of samples. Memory: linear in samples and parts. Determinism:
  /// portable for integers. Errors: the errors of `lpt`.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] auto operator()(Samples const& samples, std::size_t parts, Cost const& cost = {},
                                balance_optimally_options const& options = {}) const {
    detail::check_parts(name, parts);
    detail::part_speeds const speeds(name, options.speeds, parts);
    if constexpr (detail::cost_kinds<Samples, Cost> == 1) {
      auto const given = detail::given_costs(name, "cost", samples, cost);
      auto const costs = detail::measure_costs(name, given, std::identity{});
      balance_result<detail::measured_weight<Samples, Cost>> result;
      if (!speeds.are_equal()) {
        search_with_speeds(costs, speeds, options, result, given);
        return result;
      }
      std::int64_t const bound = search(costs, parts, options, result).bound;
      result.lower_bound = detail::given_bound(bound, costs, given);
      result.largest_load = detail::largest_given_load(result.parts, given);
      return result;
    } else {
      auto const costs = detail::measure_costs(name, samples, cost);
      balance_result<double> result;
      if (!speeds.are_equal()) {
        search_with_speeds(costs, speeds, options, result, {});
        return result;
      }
      auto const [largest, bound] = search(costs, parts, options, result);
      result.lower_bound = static_cast<double>(bound) * 0x1p-52;
      result.largest_load = static_cast<double>(largest) * 0x1p-52;
      return result;
    }
  }

 private:
  static constexpr std::string_view name = "balance_optimally";

  /// The largest load and its lower bound, in whole numbers.
  struct whole_loads {
    std::int64_t largest;
    std::int64_t bound;
  };

  /// Minimizes the largest load by branch and bound. The search starts from the best solution of
  /// the heuristics.
  template <std::size_t R, class Load>
  [[nodiscard]] static whole_loads search(detail::integer_costs<R> const& costs, std::size_t parts,
                                          balance_optimally_options const& options,
                                          balance_result<Load>& result) {
    detail::count_limits const room(name, options.count, costs.size(), parts);
    auto const order = detail::largest_first(costs);
    auto best = detail::place_longest_first(costs, room);
    whole_loads loads{detail::largest_load(costs, best, parts),
                      detail::min_load(costs, std::span(order), parts)};
    if constexpr (R == 1) {
      if (options.count == count_policy::any) {
        auto other = detail::difference_largest(costs, detail::part_speeds(name, {}, parts));
        std::int64_t const largest = detail::largest_load(costs, other, parts);
        if (largest < loads.largest) best = std::move(other);
        loads.largest = std::min(loads.largest, largest);
      }
    }
    detail::integer_costs<R> ordered;
    for (std::uint32_t const sample : order) ordered.push_back(costs[sample]);
    detail::part_search<resources<R>> tried(std::move(ordered), {}, room);
    std::uint64_t nodes = options.nodes;
    auto status = solve_status::solved;
    while (loads.largest > loads.bound && status == solve_status::solved) {
      resources<R> limit;
      for (std::int64_t& amount : limit.amounts) amount = loads.largest - 1;
      tried.lower_limit(limit);
      status = tried.run(nodes);
      if (status != solve_status::solved) break;
      for (std::size_t i = 0; i != order.size(); ++i) best[order[i]] = tried.placed()[i];
      loads.largest = detail::largest_load(costs, best, parts);
    }
    result.proven = status != solve_status::not_found;
    if (result.proven) loads.bound = loads.largest;
    result.status = solve_status::solved;
    result.parts = detail::collect_parts(best, parts);
    return loads;
  }

  /// Minimizes the largest load over speed, and sets the loads of the result. `given` contains the
  /// costs in the type of the caller if there is one kind of cost; otherwise it is empty.
  template <std::size_t R, class Load>
  static void search_with_speeds(detail::integer_costs<R> const& costs,
                                 detail::part_speeds const& speeds,
                                 balance_optimally_options const& options,
                                 balance_result<Load>& result, std::vector<Load> const& given) {
    std::size_t const parts = speeds.size();
    detail::count_limits const room(name, options.count, costs.size(), parts);
    auto const order = detail::largest_first(costs);
    auto best = detail::place_longest_first(costs, room, speeds);
    detail::part_time largest = detail::largest_time(costs, std::span(std::as_const(best)), speeds);
    detail::part_time bound = detail::min_time(costs, std::span(order), speeds);
    detail::integer_costs<R> ordered;
    for (std::uint32_t const sample : order) ordered.push_back(costs[sample]);
    detail::timed_limits<resources<R>> limits(speeds);
    detail::part_search<resources<R>, detail::timed_limits<resources<R>>> tried(std::move(ordered),
                                                                                limits, room);
    std::uint64_t nodes = options.nodes;
    auto status = solve_status::solved;
    while (largest > bound) {
      limits.set_below(largest);
      tried.lower_limit(limits);
      status = tried.run(nodes);
      if (status != solve_status::solved) break;
      for (std::size_t i = 0; i != order.size(); ++i) best[order[i]] = tried.placed()[i];
      largest = detail::largest_time(costs, std::span(std::as_const(best)), speeds);
    }
    result.proven = largest <= bound || status == solve_status::infeasible;
    if (result.proven) bound = largest;
    result.status = solve_status::solved;
    result.parts = detail::collect_parts(best, parts);
    if constexpr (R > 1) {
      result.largest_load = largest.value() * static_cast<double>(speeds.largest()) * 0x1p-52;
      result.lower_bound = bound.value() * static_cast<double>(speeds.largest()) * 0x1p-52;
    } else {
      result.largest_load = detail::largest_given_load(result.parts, given, speeds);
      result.lower_bound =
          std::min(result.largest_load, detail::given_bound(bound, speeds, costs, given));
    }
  }
};

/// Finds the parts with the smallest largest load; see `balance_optimally_fn`.
inline constexpr balance_optimally_fn balance_optimally{};

}  // namespace omnibal::inline v0
