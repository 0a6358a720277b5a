// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packing of a histogram of samples.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/sample_size.hpp>
#include <omnibal/pack/pack_histogram/histogram_bound.hpp>
#include <omnibal/pack/pack_histogram/open_patterns.hpp>
#include <omnibal/pack/pack_histogram/pattern_chains.hpp>
#include <omnibal/pack/pattern_plan.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct pack_histogram_fn {
  /// Packs the samples of a histogram by best-fit decreasing into patterns with multiplicities, for
  /// data sets of which no machine sees all samples: `pack_histogram(count_samples(lengths,
  /// std::identity{}), 4096)`. The result does not depend on the shards in which the samples were
  /// counted. `share_of_shard` divides the groups among shards, and `place_samples` tells each
  /// shard the groups of its samples.
  ///
  /// With one resource, the number of groups is the number of groups of `best_fit_decreasing`. With
  /// several resources, the samples are packed in the order of `best_fit_decreasing` by the same
  /// score, and equal samples in the order of the histogram. The number of groups is the same if
  /// the lookup of groups is exact, as it is for common capacities. The samples of an entry that
  /// exceeds the capacity are in no group, and `oversized` of the plan lists the entry. The lower
  /// bound is the bound L2 of Martello and Toth, conflicts of two resources, and prices of patterns
  /// for capacities below 256, as in `packing_bound`.
  ///
  /// `capacity` is a number or resources of R integers up to 2^63 - 1. Complexity: linear in the
  /// entries of the histogram and the parts of the plan, except for comparisons among rooms with
  /// equal leading bits. With several resources, up to 64 cells for each part are added. The number
  /// of samples does not matter. Memory: about 200 bytes for each entry, with the result, 32 bytes
  /// for each part, and with several resources 1 MiB. Determinism: portable. Errors:
  /// `std::invalid_argument` if the capacity is not positive; `std::length_error` if there are 2^31
  /// entries or more. Sources: Johnson, 1973; Gilmore, Gomory, "A linear programming approach to
  /// the cutting stock problem", 1961.
  template <std::size_t R, class Capacity>
    requires measure<Capacity> && detail::same_kinds<resources<R>, Capacity> &&
        std::integral<detail::working_weight<Capacity>>
  [[nodiscard]] pattern_plan<R> operator()(sample_histogram<R> const& histogram,
                                           Capacity const& capacity) const {
    auto const entries = histogram.entries();
    detail::check_number(name, "the largest number of patterns",
                         detail::pattern_chains::max_patterns(entries.size()));
    auto const demand = [](demand_count<R> const& entry) { return entry.demand; };
    return detail::with_measured(name, entries, demand, capacity, [&](auto&& input) {
      std::vector<std::uint32_t> indices;
      std::vector<std::uint64_t> counts;
      indices.reserve(input.size());
      counts.reserve(input.size());
      detail::fitting_indices fitting(input.oversized);
      for (std::size_t k = 0; k != input.size(); ++k) {
        indices.push_back(fitting.next());
        counts.push_back(entries[indices.back()].count);
      }
      pattern_plan<R> plan;
      plan.histogram = histogram;
      plan.lower_bound = detail::histogram_bound(input, counts);
      if (input.size() != 0) best_fit(input, counts).move_to(plan, indices);
      plan.oversized = std::move(input.oversized);
      return plan;
    });
  }

 private:
  static constexpr std::string_view name = "pack_histogram";

  template <class Layout>
  [[nodiscard]] static detail::pattern_chains best_fit(detail::measured<Layout> const& input,
                                                       std::vector<std::uint64_t> const& counts) {
    if constexpr (Layout::amounts_type::size() == 1) {
      std::vector<std::uint32_t> order(input.size());
      std::iota(order.rbegin(), order.rend(), std::uint32_t{0});
      detail::line_patterns<Layout> open(input);
      return detail::best_fit_patterns(order, counts, open);
    } else {
      detail::sample_size const size(input.capacity, size_measure::sum_of_shares);
      auto const order = detail::order_descending(
          input.size(), [&](std::size_t k) { return size(input.amounts(k), k); });
      detail::vector_patterns<Layout> open(input, counts);
      return detail::best_fit_patterns(order, counts, open);
    }
  }
};

/// Packs a histogram of samples into patterns with multiplicities; see `pack_histogram_fn`.
inline constexpr pack_histogram_fn pack_histogram{};

}  // namespace omnibal::inline v0
