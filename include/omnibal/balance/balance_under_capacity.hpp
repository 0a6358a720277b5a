// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Even costs in a given number of parts under a capacity.

#include <omnibal/balance/balance_result.hpp>
#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/balance/detail/own_groups.hpp>
#include <omnibal/balance/detail/part_limits.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The reason why there are no parts within the capacity.
enum class within_reason {
  none,
  /// `sample` by itself exceeds the capacity.
  sample_above_capacity,
  /// The samples require at least `parts_needed` parts, more than there are.
  too_few_parts,
  /// The search tried every way to place the samples.
  all_tried,
};

/// Parts within a capacity, or the reason why there are none.
template <class Load>
struct balance_under_capacity_result : balance_result<Load> {
  within_reason reason = within_reason::none;
  /// A lower bound on the number of parts within the capacity.
  std::size_t parts_needed = 0;
  /// The first sample that exceeds the capacity.
  std::uint32_t sample = 0;

  [[nodiscard]] friend bool operator==(balance_under_capacity_result const&,
                                       balance_under_capacity_result const&) = default;
};

struct balance_under_capacity_options {
  /// The tolerance of the search for even costs, as a share of a lower bound. The search ends when
  /// the largest cost exceeds the bound by at most this share.
  double max_overload = 0.01;
  /// The effort of the search. A limit below that is set takes precedence over the effort. `fast`
  /// and `thorough` differ from `normal` only if samples hardly fit or their costs are hard to
  /// balance.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of moves, swaps and splits: 10,000, 1,000,000 or 10,000,000, by effort.
  std::optional<std::size_t> exchanges = {};
  /// The maximum number of splits without success, as in `refine_parts`: 64, 2048 or 16,384, by
  /// effort. The search makes no splits if there are more parts than exchanges.
  std::optional<std::size_t> splits = {};
  /// The maximum number of passes of `improve_packing`, which run if the first packing has more
  /// groups than there are parts: 8, 64 or 512, by effort. For few samples the default is larger:
  /// all passes together then look at up to 2^17, 2^22 or 2^26 samples.
  std::optional<std::size_t> passes = {};
  /// The maximum number of placements in the exhaustive search, which runs if the packing has too
  /// many groups and there are at most 64 samples: 20,000, 200,000 or 10,000,000, by effort. The
  /// limit also holds for the search for the smallest largest time of at most 16 samples.
  std::optional<std::uint64_t> nodes = {};
  /// The seed of the search; other seeds find other groups.
  std::uint64_t seed = 0;
  /// The treatment of samples that exceed the capacity by themselves: `reject`, no parts with the
  /// status `infeasible`, or `own_group`, a part for each of them. `list` is not available.
  oversize_policy oversized = oversize_policy::reject;
  /// The speed of each part, or one value for all; empty for equal speeds. The array must outlive
  /// the option.
  detail::speed_list speeds = {};
};

struct balance_under_capacity_fn {
  /// Balances costs over parts, none of which exceeds `capacity` in any resource. The functor
  /// `demand` maps a sample to resources or to one weight. `capacity` has the same number of kinds,
  /// and `cost` maps a sample to a weight. `capacity` may also be a range of capacities, one for
  /// each part.
  ///
  /// The function places the samples from the largest to the smallest cost, as `lpt` does, into
  /// parts with room. If this fails or exceeds `max_overload`, the function places the samples by
  /// shares of the cost and of the capacity. If neither finds room for all samples, it packs them
  /// by `best_packing` and `improve_packing` into at most `parts` groups. If this fails too, it
  /// tries all ways to place up to 64 samples. In each placement, samples then move or are swapped,
  /// and pairs of parts are split again under the capacity, as in `refine_parts`.
  ///
  /// `improve_packing` calls `go_on` after each pass. If `go_on` returns false, the search for
  /// fewer groups ends.
  ///
  /// With different capacities, a part that has room for a sample is found in the same way, but no
  /// packing replaces placements that fail: the samples then go to the parts by best fit, and at
  /// last by the exhaustive search. Equal capacities of a range give the result of one capacity.
  /// With different speeds or capacities, at most 16 samples and integer demands, a branch and
  /// bound then looks for the smallest largest time.
  ///
  /// With `options.speeds`, the function minimizes the largest cost of a part over its speed; the
  /// capacities of the parts stay the same. A sample goes to the part with room that finishes the
  /// sample first. The group with the largest cost becomes the fastest part, and so on. Each load
  /// of the result is the load that the fastest part has at the same time. Integers are rounded up
  /// and are at most 2^63 - 1. Speeds are rounded as in `lpt`.
  ///
  /// With `oversize_policy::own_group`, each sample that exceeds the capacity has a part of its
  /// own, and no other part exceeds the capacity. With different capacities, these are the samples
  /// that fit no part, and their parts have the largest capacity in each resource.
  ///
  /// The status is `infeasible` only if this is proven, by a sample that exceeds the capacity, by
  /// `packing_bound`, by the sum of the capacities or by an exhaustive search. If the search fails
  /// without a proof, the status is `not_found`. The samples of a part have ascending indices;
  /// fewer samples than parts are legal. No resource of a part exceeds the capacity, with
  /// floating-point demands summed by ascending index. Integers are at most 2^63 - 1 each. The sum
  /// of the demands may exceed that number, but not the sum of the costs. `demand` is called once
  /// or twice for each sample, `cost` once.
  ///
  /// Complexity: for each sample, a small multiple of log2(parts) comparisons. If parts are nearly
  /// full in different resources, or if the first placement with different speeds or capacities
  /// ends above `max_overload`, up to one comparison for each sample and part. A pass costs the
  /// same as in `improve_packing`. Memory for R kinds of demand: about 150 + 32R bytes per sample
  /// and 200 + 50R per part, 80 more with different speeds or capacities. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` if there are no parts, if a capacity is not
  /// positive, or if a range does not have one capacity for each part. It is thrown as well if a
  /// demand or cost is negative or not finite, or if `max_overload` is negative or not finite. It
  /// is also thrown if `options.oversized` is `list`, or if a speed is not positive, not finite or
  /// below 2^-31 of the largest. Further errors: `std::overflow_error` if the sum of all costs
  /// exceeds its type; `std::length_error` above 2^32 - 1 samples or parts.
  template <class Samples, class Cost, class Demand, class Capacity,
            class GoOn = detail::never_ends>
    requires detail::limited_samples<Samples, Demand, Capacity> &&
        cost_function<Cost, sample_reference<Samples>> && progress_predicate<GoOn>
  [[nodiscard]] auto operator()(Samples const& samples, std::size_t parts, Cost const& cost,
                                Demand const& demand, Capacity const& capacity,
                                balance_under_capacity_options const& options = {},
                                GoOn go_on = {}) const {
    detail::check_parts(name, parts);
    detail::check_max_overload(name, options.max_overload);
    detail::check_oversized(name, options.oversized);
    detail::part_speeds const speeds(name, options.speeds, parts);
    detail::part_capacities_of<Samples, Demand, Capacity> const capacities(name, capacity, parts);
    auto const given = detail::given_costs(name, "cost", samples, cost);
    auto const costs = detail::measure_costs(name, given, std::identity{});
    return detail::with_measured(name, samples, demand, capacities.largest(), [&](auto&& input) {
      auto const limits = capacities.limits(input);
      detail::separate_unplaceable(input, limits);
      balance_under_capacity_result<detail::measured_weight<Samples, Cost>> result;
      if (!input.oversized.empty() && options.oversized == oversize_policy::reject) {
        result.status = solve_status::infeasible;
        result.reason = within_reason::sample_above_capacity;
        result.sample = input.oversized.front();
        return result;
      }
      detail::own_groups const own(input);
      result.parts_needed = own.bound();
      if (!limits.are_equal()) {
        result.parts_needed = std::max(own.bound(), detail::fewest_parts(input, limits));
      }
      if (result.parts_needed > parts) {
        result.status = solve_status::infeasible;
        result.reason = within_reason::too_few_parts;
        return result;
      }
      if (!speeds.are_equal() || !limits.are_equal()) {
        balance_at_speeds(input, costs, given, speeds, limits, own, options, go_on, result);
        return result;
      }
      detail::capped_balancer balancer(input, costs, detail::effort_of(options, levels));
      std::int64_t const bound = balancer.lower_bound(parts);
      result.lower_bound = detail::given_bound(bound, costs, given);
      auto part_of = find_parts(balancer, parts, go_on, result);
      if (!part_of) return result;
      own.separate(*part_of, parts, costs);
      result.proven = balancer.largest_of(*part_of, parts) == bound;
      result.parts = detail::collect_parts(*part_of, parts);
      result.largest_load = detail::largest_given_load(result.parts, given);
      return result;
    });
  }

 private:
  static constexpr std::string_view name = "balance_under_capacity";
  // The limits of each effort: `fast`, `normal`, `thorough`.
  static constexpr detail::by_effort<detail::capped_effort> levels{
      .fast = {10'000, 64, 8, 1u << 17, 20'000},
      .normal = {1'000'000, 2048, 64, 1u << 22, 200'000},
      .thorough = {10'000'000, 16'384, 512, 1u << 26, 10'000'000}};

  /// Returns the part of each sample and sets the status. Returns `std::nullopt` if the search
  /// found no parts, and sets the reason if there are none.
  template <class Balancer, class GoOn, class Load>
  [[nodiscard]] static std::optional<std::vector<std::uint32_t>> find_parts(
      Balancer& balancer, std::size_t parts, GoOn& go_on,
      balance_under_capacity_result<Load>& result) {
    auto part_of = balancer.balance(parts, go_on);
    if (!part_of) {
      result.status = balancer.search(parts);
      if (result.status == solve_status::infeasible) result.reason = within_reason::all_tried;
      if (result.status == solve_status::solved) part_of = balancer.balance(parts, go_on);
    }
    if (part_of) result.status = solve_status::solved;
    return part_of;
  }

  /// Minimizes the largest load over speed if parts have different speeds or capacities, and sets
  /// the result.
  template <class Layout, class Load, class GoOn>
  static void balance_at_speeds(detail::measured<Layout> const& input,
                                detail::integer_costs<1> const& costs,
                                std::vector<Load> const& given, detail::part_speeds const& speeds,
                                detail::part_limits<typename Layout::amounts_type> const& limits,
                                detail::own_groups const& own,
                                balance_under_capacity_options const& options, GoOn& go_on,
                                balance_under_capacity_result<Load>& result) {
    std::size_t const parts = speeds.size();
    // The balancer requires parts in descending order of speed.
    std::vector<std::uint32_t> const numbers = detail::fastest_first(speeds);
    detail::part_speeds ordered = speeds;
    ordered.reorder([&](std::size_t part) { return numbers[part]; });
    detail::capped_balancer balancer(
        input, costs, detail::effort_of(options, levels), std::move(ordered),
        limits.selected(parts, [&](std::size_t part) { return numbers[part]; }));
    detail::part_time const bound = balancer.lower_bound(parts);
    result.lower_bound = detail::given_bound(bound, speeds, costs, given);
    auto part_of = find_parts(balancer, parts, go_on, result);
    if (!part_of) return;
    own.separate(*part_of, parts, costs);
    result.proven = balancer.largest_of(*part_of, parts) == bound;
    for (std::uint32_t& part : *part_of) part = numbers[part];
    result.parts = detail::collect_parts(*part_of, parts);
    result.largest_load = detail::largest_given_load(result.parts, given, speeds);
    result.lower_bound = std::min(result.lower_bound, result.largest_load);
  }
};

/// Balances costs over parts under a capacity; see `balance_under_capacity_fn`.
inline constexpr balance_under_capacity_fn balance_under_capacity{};

}  // namespace omnibal::inline v0
