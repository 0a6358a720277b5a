// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the largest load over speed, and the largest load over speed of given parts.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the smallest possible largest time of parts that share `total` in whole units. Each part
/// first has the load total * speed / (sum of speeds), rounded down. Each remaining unit goes to
/// the part that finishes one more unit first.
[[nodiscard]] inline part_time mean_time(std::int64_t total, part_speeds const& speeds) {
  std::int64_t const sum = speeds.sum();
  std::int64_t rest = total;
  std::vector<load_order<part_time>> next;
  next.reserve(speeds.size());
  for (std::uint32_t part = 0; part != speeds.size(); ++part) {
    auto const load = static_cast<std::int64_t>(int128{total} * speeds[part] / sum);
    rest -= load;
    next.push_back({speeds.time_of(part, load + 1), part});
  }
  part_time result{total, sum};
  auto const is_later = [](load_order<part_time> a, load_order<part_time> b) { return b < a; };
  std::make_heap(next.begin(), next.end(), is_later);
  for (; rest != 0; --rest) {
    std::pop_heap(next.begin(), next.end(), is_later);
    result = next.back().load;
    ++next.back().load.load;
    std::push_heap(next.begin(), next.end(), is_later);
  }
  return result;
}

/// Returns a lower bound on the largest load over speed: the largest of `mean_time` and of one
/// quotient for each k below the number of parts. The quotient is the sum of the k largest costs
/// over the sum of the k largest speeds. With several kinds, k is one. With one kind, two of the
/// `parts + 1` largest costs share a part. The sum of the two smallest of these costs over the
/// largest speed is therefore also a bound. `order` is the order of `largest_first`.
template <std::size_t R>
[[nodiscard]] part_time min_time(integer_costs<R> const& costs,
                                 std::span<std::uint32_t const> order, part_speeds const& speeds) {
  part_time result;
  for (std::int64_t const total : total_of(costs).amounts) {
    result = std::max(result, mean_time(total, speeds));
  }
  std::int64_t const fastest = speeds.largest();
  for (resources<R> const& cost : costs) {
    result = std::max(result, part_time{largest_amount(cost), fastest});
  }
  if constexpr (R == 1) {
    std::vector<std::int64_t> sorted;
    sorted.reserve(speeds.size());
    for (std::size_t part = 0; part != speeds.size(); ++part) sorted.push_back(speeds[part]);
    std::sort(sorted.begin(), sorted.end(), std::greater<>{});
    part_time largest{0, 0};
    std::size_t const most = std::min(order.size(), speeds.size() - 1);
    for (std::size_t k = 0; k != most; ++k) {
      largest.load += costs[order[k]][0];
      largest.speed += sorted[k];
      result = std::max(result, largest);
    }
    if (std::size_t const parts = speeds.size(); order.size() > parts) {
      std::int64_t const two = costs[order[parts - 1]][0] + costs[order[parts]][0];
      result = std::max(result, part_time{two, fastest});
    }
  }
  return result;
}

/// Returns bound * (1 + `max_overload`); see `with_overload` of a load.
[[nodiscard]] inline part_time with_overload(part_time bound, double max_overload) {
  return {with_overload(bound.load, max_overload), bound.speed};
}

/// Returns the largest load over speed; `part_of` contains the part of each sample.
template <std::size_t R>
[[nodiscard]] part_time largest_time(integer_costs<R> const& costs,
                                     std::span<std::uint32_t const> part_of,
                                     part_speeds const& speeds) {
  integer_costs<R> loads(speeds.size(), resources<R>{});
  for (std::size_t i = 0; i != part_of.size(); ++i) loads[part_of[i]] += costs[i];
  part_time result;
  for (std::size_t part = 0; part != loads.size(); ++part) {
    result = std::max(result, speeds.time_of(part, largest_amount(loads[part])));
  }
  return result;
}

/// Returns the load that the fastest part has at this time, rounded up.
[[nodiscard]] inline std::int64_t load_of_fastest(part_time const& time,
                                                  part_speeds const& speeds) {
  return saturate_cast<std::int64_t>(
      ceiled_quotient(int128{time.load} * speeds.largest(), time.speed));
}

/// Returns a bound on times as a load of the fastest part, in the scale of the cost functor.
template <class Load>
[[nodiscard]] Load given_bound(part_time const& bound, part_speeds const& speeds,
                               integer_costs<1> const& costs, std::vector<Load> const& given) {
  return given_bound(load_of_fastest(bound, speeds), costs, given);
}

/// Returns the largest load over speed, as the load that the fastest part has at this time. `given`
/// has the load of each item.
template <class Load>
[[nodiscard]] Load largest_given_load(grouping const& parts, std::vector<Load> const& given,
                                      part_speeds const& speeds) {
  if constexpr (std::integral<Load>) {
    part_time largest;
    for (std::size_t part = 0; part != parts.size(); ++part) {
      Load sum{};
      for (std::uint32_t const item : parts[part]) sum += given[item];
      largest = std::max(largest, speeds.time_of(part, sum));
    }
    return load_of_fastest(largest, speeds);
  } else {
    Load largest{};
    for (std::size_t part = 0; part != parts.size(); ++part) {
      Load sum{};
      for (std::uint32_t const item : parts[part]) sum += given[item];
      auto const share = static_cast<Load>(speeds[part]) / static_cast<Load>(speeds.largest());
      largest = std::max(largest, sum / share);
    }
    return largest;
  }
}

}  // namespace omnibal::inline v0::detail
