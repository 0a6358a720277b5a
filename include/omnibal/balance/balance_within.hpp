#pragma once

/// \file
/// Even costs in a given number of parts under a capacity.

#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/overload.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// Why there are no parts within the capacity.
enum class within_reason {
  none,
  /// `sample` alone exceeds the capacity.
  sample_above_capacity,
  /// The samples take `parts_needed` parts at least, more than there are.
  too_few_parts,
  /// Every way to place the samples was tried.
  all_tried,
};

/// Parts within a capacity, or the reason why there are none.
template <class Load>
struct balance_within_result {
  solve_status status = solve_status::not_found;
  within_reason reason = within_reason::none;
  /// Empty unless found.
  grouping parts;
  /// The largest sum of costs in a part, and what it cannot be below with so many parts.
  Load largest_load{};
  Load lower_bound{};
  /// No parts within the capacity are fewer than this.
  std::size_t parts_needed = 0;
  /// The sample that exceeds the capacity, the first of them.
  std::uint32_t sample = 0;

  [[nodiscard]] friend bool operator==(balance_within_result const&,
                                       balance_within_result const&) = default;
};

struct balance_within_options {
  /// The search for evener costs ends where the largest exceeds a lower bound by at most this share
  /// of it.
  double max_overload = 0.01;
  /// The most moves and swaps.
  std::size_t exchanges = 1'000'000;
  /// The most passes that seek fewer groups, where the samples do not fit at once.
  std::size_t passes = 64;
  /// How many times one of at most 64 samples may be placed in the search that then tries all ways.
  std::uint64_t nodes = 200'000;
  /// Other seeds find other groups.
  std::uint64_t seed = 0;
};

struct balance_within_fn {
  /// Parts of which none exceeds `capacity` in any resource, with even costs. `demand` maps a
  /// sample to resources or to one weight, `capacity` has as many kinds, `cost` maps it to a
  /// weight.
  ///
  /// Takes the samples from the largest cost to the smallest, as `lpt` does, into parts with room;
  /// then by shares of the cost and of the capacity; where neither finds room for all, packs them
  /// by `best_fit_decreasing` and `improve` into as many groups at most; at last tries all ways to
  /// place up to 64 samples. Then samples move or are swapped under the capacity, as in `refine`.
  ///
  /// The status is `impossible` only where that is proven, by a sample that exceeds the capacity,
  /// by `packing_bound` or by a search of all ways; a search that fails is `not_found`. The parts
  /// have their samples by ascending index; fewer samples than parts are legal. No resource of a
  /// part exceeds the capacity, floating-point demands being summed by ascending index. Integers are
  /// at most 2^63 - 1 each; the sum of the demands may exceed that, that of the costs is an error
  /// then. `demand` is called once or twice for each sample, `cost` once.
  ///
  /// Complexity: a few comparisons for each doubling of the parts for each sample; up to one for
  /// each sample and part where parts are nearly full in one or the other of several resources; a
  /// pass as in `improve`. Memory: about 150 + 32R bytes per sample and 200 + 50R per part.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` for no parts, a capacity
  /// that is not positive, a demand or cost that is negative or not finite and such a `max_overload`;
  /// `std::overflow_error` where the sum of all costs leaves its type; `std::length_error` above
  /// 2^32 - 1 samples or parts.
  template <class Samples, class Cost, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        cost_function<Cost, sample_reference<Samples>>
  [[nodiscard]] auto operator()(Samples const& samples, std::size_t parts, Cost const& cost,
                                Demand const& demand, Capacity const& capacity,
                                balance_within_options const& options = {}) const {
    using load_type = detail::working_weight<demand_result<Cost, sample_reference<Samples>>>;
    detail::check_parts(name, parts);
    detail::check_max_overload(name, options.max_overload);
    auto const loads = detail::costs_in_user_units<load_type>(name, samples, cost);
    auto const costs = detail::measure_costs(name, loads, std::identity{});
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      balance_within_result<load_type> result;
      if (!input.oversized.empty()) {
        result.status = solve_status::infeasible;
        result.reason = within_reason::sample_above_capacity;
        result.sample = input.oversized.front();
        return result;
      }
      result.parts_needed = detail::measured_bound(input);
      if (result.parts_needed > parts) {
        result.status = solve_status::infeasible;
        result.reason = within_reason::too_few_parts;
        return result;
      }
      detail::capped_balancer balancer(input, costs, detail::effort_of(options));
      result.lower_bound = in_user_units(balancer.lower_bound(parts), costs, loads);
      auto part_of = balancer.balance(parts);
      if (!part_of) {
        detail::search_end const end = balancer.search(parts);
        if (end == detail::search_end::exhausted) {
          result.status = solve_status::infeasible;
          result.reason = within_reason::all_tried;
        } else if (end == detail::search_end::found) {
          part_of = balancer.balance(parts);
        }
      }
      if (!part_of) return result;
      result.status = solve_status::solved;
      result.parts = detail::collect_parts(*part_of, parts);
      result.largest_load = largest_load(result.parts, loads);
      return result;
    });
  }

 private:
  static constexpr std::string_view name = "balance_within";

  /// A bound in whole numbers as the cost functor would give it, less what rounding may add.
  template <class Load>
  [[nodiscard]] static Load in_user_units(std::int64_t bound, detail::whole_costs<1> const& costs,
                                          std::vector<Load> const& loads) {
    if constexpr (std::integral<Load>) {
      return bound;
    } else {
      auto const whole = static_cast<Load>(detail::total_of(costs)[0]);
      if (whole <= 0) return Load{};
      Load total{};
      for (Load const load : loads) total += load;
      Load const rounding =
          4 * std::numeric_limits<Load>::epsilon() * static_cast<Load>(loads.size() + 4);
      return static_cast<Load>(bound) / whole * total * (1 - std::min(Load{1}, rounding));
    }
  }

  template <class Load>
  [[nodiscard]] static Load largest_load(grouping const& parts, std::vector<Load> const& loads) {
    Load largest{};
    for (std::size_t p = 0; p != parts.size(); ++p) {
      Load sum{};
      for (std::uint32_t const item : parts[p]) sum += loads[item];
      largest = std::max(largest, sum);
    }
    return largest;
  }
};

/// Even costs under a capacity; see `balance_within_fn`.
inline constexpr balance_within_fn balance_within{};

}  // namespace omnibal::inline v0
