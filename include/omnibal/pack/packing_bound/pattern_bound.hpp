// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bound on the number of groups from patterns of all resources together.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/column_generation.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/scalar_pricing.hpp>
#include <omnibal/pack/detail/vector_pricing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The different demands of samples, except for zero demands, and the number of times that each
/// occurs.
template <class Layout>
struct sample_types {
  using demand_type = typename Layout::demand_type;

  std::vector<demand_type> demands;
  std::vector<std::uint64_t> counts;

  /// Returns the types of the samples; none if there are more than `most` types.
  [[nodiscard]] static sample_types of(measured<Layout> const& input, std::size_t most) {
    std::vector<std::pair<demand_type, std::uint64_t>> found;
    auto const precedes = [](auto const& entry, demand_type const& demand) {
      if constexpr (std::integral<demand_type>) {
        return entry.first < demand;
      } else {
        return std::lexicographical_compare(std::begin(entry.first.amounts),
                                            std::end(entry.first.amounts),
                                            std::begin(demand.amounts), std::end(demand.amounts));
      }
    };
    demand_type const nothing = input.layout.encode({});
    for (demand_type const& demand : input.demands) {
      if (demand == nothing) continue;
      auto const at = std::lower_bound(found.begin(), found.end(), demand, precedes);
      if (at != found.end() && at->first == demand) {
        ++at->second;
        continue;
      }
      if (found.size() == most) return {};
      found.insert(at, {demand, 1});
    }
    sample_types result;
    for (auto const& [demand, count] : found) {
      result.demands.push_back(demand);
      result.counts.push_back(count);
    }
    return result;
  }
};

/// Returns the larger of `bound` and the bound by column generation within `steps` steps.
template <class Layout>
[[nodiscard]] std::size_t generated_bound(measured<Layout> const& input, std::size_t bound,
                                          std::size_t steps) {
  using amounts_type = typename Layout::amounts_type;
  if constexpr (std::integral<typename amounts_type::value_type>) {
    auto const types = sample_types<Layout>::of(input, max_pattern_types(steps));
    std::span<std::uint64_t const> const counts = types.counts;
    if constexpr (amounts_type::size() == 1) {
      std::vector<std::uint64_t> values;
      for (auto const& demand : types.demands) {
        values.push_back(static_cast<std::uint64_t>(input.layout.amount(demand, 0)));
      }
      scalar_pricing pricing(values, counts, static_cast<std::uint64_t>(input.capacity[0]));
      return column_generation(counts, pricing).run(bound, steps);
    } else {
      vector_pricing<Layout> pricing(input, types.demands, counts);
      return column_generation(counts, pricing).run(bound, steps);
    }
  }
  return bound;
}

}  // namespace omnibal::inline v0::detail
