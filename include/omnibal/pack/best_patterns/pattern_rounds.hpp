// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Whole groups from linear programs over patterns.

#include <omnibal/detail/column_generation.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/pattern_master.hpp>
#include <omnibal/pack/best_patterns/counted_patterns.hpp>
#include <omnibal/pack/detail/scalar_pricing.hpp>
#include <omnibal/pack/detail/vector_pricing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Packs most samples that are left by the patterns of a linear program, rounded to whole groups,
/// and repeats this with the others. Returns the larger of `bound` and the bound of the samples
/// that were left at the start. `types` are the indices of demands that are not zero.
template <class Layout>
[[nodiscard]] std::size_t pack_by_prices(measured<Layout> const& input, counted_patterns& packed,
                                         std::size_t bound, std::size_t steps) {
  // The last rounds pack few groups.
  constexpr int max_rounds = 8;
  std::size_t const most = max_pattern_types(steps);
  auto const nothing = input.layout.encode({});
  for (int round = 0; round != max_rounds; ++round) {
    std::vector<std::uint32_t> types;
    std::vector<std::uint64_t> counts;
    for (std::uint32_t type = 0; type != packed.left.size(); ++type) {
      if (packed.left[type] == 0 || input.demands[type] == nothing) continue;
      types.push_back(type);
      counts.push_back(packed.left[type]);
    }
    if (types.empty() || types.size() > most) break;
    auto const pack = [&](auto& pricing) {
      column_generation generation(counts, pricing);
      std::size_t const found = generation.run(round == 0 ? bound : 0, steps);
      if (round == 0) bound = found;
      return generation.master() && packed.add(*generation.master(), types, counts);
    };
    bool has_packed = false;
    if constexpr (Layout::amounts_type::size() == 1) {
      std::vector<std::uint64_t> values;
      for (std::uint32_t const type : types) {
        values.push_back(static_cast<std::uint64_t>(input.amounts(type)[0]));
      }
      scalar_pricing pricing(values, counts, static_cast<std::uint64_t>(input.capacity[0]));
      has_packed = pack(pricing);
    } else {
      std::vector<typename Layout::demand_type> demands;
      for (std::uint32_t const type : types) demands.push_back(input.demands[type]);
      vector_pricing<Layout> pricing(input, demands, counts);
      has_packed = pack(pricing);
    }
    if (!has_packed) break;
  }
  return bound;
}

}  // namespace omnibal::inline v0::detail
