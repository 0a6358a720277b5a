#pragma once

/// \file
/// What all searches for better parts begin and end with.

#include <omnibal/balance/detail/least_load.hpp>
#include <omnibal/balance/detail/place_longest_first.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/overload.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Checks and measures samples in given parts and collects the parts that a search leaves.
/// `search(costs, order, part_of, limit, put)` may stop where the largest load is at most the limit,
/// and calls `put(place, part)` for each place of the order.
template <class Samples, class Cost, class Search>
[[nodiscard]] grouping refine_parts(std::string_view function, Samples const& samples,
                                    grouping_view parts, Cost const& cost, double max_overload,
                                    Search const& search) {
  check_max_overload(function, max_overload);
  auto const costs = measure_costs(function, samples, cost);
  std::vector<std::uint32_t> part_of;
  part_of_samples(function, "part", parts, costs.size(), part_of);
  if (parts.empty()) return {};
  auto const order = largest_first(costs);
  std::int64_t const bound = least_load(costs, std::span(order), parts.size());
  search(costs, order, part_of, with_overload(bound, max_overload),
         [&](std::uint32_t place, std::uint32_t part) { part_of[order[place]] = part; });
  return collect_parts(part_of, parts.size());
}

}  // namespace omnibal::inline v0::detail
