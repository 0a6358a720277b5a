#pragma once

/// \file
/// Best-fit packing of one resource in rounds, as a GPU can do it.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/detail/assignment.hpp>
#include <omnibal/pack/detail/bounds.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/detail/size_rounds.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct best_fit_rounds_fn {
  /// Packs one resource in rounds. Each deals with the largest samples that still wait, down to 3/4
  /// of the largest: every group takes the one that fits it best, or as many as fit where it holds
  /// two and more, and as many groups are opened as these samples cannot do without. Within 0.3 %
  /// of the groups of `best_fit_decreasing` on every generator of the benchmarks.
  ///
  /// The twin of `gpu::best_fit_rounds`, which gives the same groups; where there is no GPU take
  /// `best_fit_decreasing`. `demand` maps a sample to an integer, or to resources of one, and
  /// `capacity` is one. The groups are in the order in which they are opened, the samples of a group
  /// from the largest to the smallest, equal ones by ascending index. Complexity: a radix sort, and
  /// for each round a sort of the groups with room and a pass over its samples; 2 to 40 rounds, in
  /// which a sample takes part 1 to 4 times in the mean. Memory: 28 bytes per sample and 16 per
  /// group. Determinism: portable. Errors: `std::invalid_argument` for a capacity that is not
  /// positive and a demand that is negative, `std::length_error` above 2^32 - 1 samples.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity> && integral_amount<Capacity> &&
        integral_amount<demand_result<Demand, sample_reference<Samples>>> &&
        (detail::kinds_of<Capacity> == 1) [[nodiscard]] packing
        operator()(Samples const& samples, Demand const& demand, Capacity const& capacity) const {
      detail::check_index_count(name, "samples", std::ranges::size(samples));
      auto const limits = detail::checked_capacity<Samples, Demand, Capacity>(name, capacity);
      using amounts_type = std::remove_const_t<decltype(limits)>;
      packing result;
      std::vector<std::uint64_t> demands;
      std::vector<std::uint32_t> indices;
      demands.reserve(std::ranges::size(samples));
      indices.reserve(std::ranges::size(samples));
      detail::for_each_demand<amounts_type>(
          samples, demand, [&](std::uint32_t index, amounts_type const& amounts) {
            if (detail::is_valid_and_fits(amounts, limits)) [[likely]] {
              demands.push_back(static_cast<std::uint64_t>(amounts[0]));
              indices.push_back(index);
            } else {
              detail::check_demand(name, index, amounts);
              result.oversized.push_back(index);
            }
          });
      pack(demands, indices, limits[0], result);
      return result;
    }

   private:
    static constexpr std::string_view name = "best_fit_rounds";

    static void pack(std::vector<std::uint64_t> const& demands,
                     std::vector<std::uint32_t> const& indices, std::int64_t capacity,
                     packing& result) {
      std::size_t const count = demands.size();
      auto const order = detail::order_descending(count, [&](std::size_t k) { return demands[k]; });
      std::vector<std::uint64_t> sizes(count);
      for (std::size_t k = 0; k != count; ++k) sizes[k] = demands[order[k]];
      auto const ascending = [&](std::size_t k) {
        return static_cast<std::int64_t>(sizes[count - 1 - k]);
      };
      auto const once = [](std::size_t) { return std::uint32_t{1}; };
      std::size_t const bound = detail::martello_toth_bound(count, ascending, once, capacity);
      result.report.lower_bound = std::max<std::size_t>(bound, count == 0 ? 0 : 1);

      detail::size_rounds const packed(std::move(sizes), static_cast<std::uint64_t>(capacity));
      result.report.rounds = packed.rounds();
      result.report.item_rounds = packed.item_rounds();
      std::vector<std::uint32_t> offsets(packed.group_count() + 1, 0);
      for (std::uint32_t const group : packed.group_of()) ++offsets[group + 1];
      for (std::size_t g = 1; g != offsets.size(); ++g) offsets[g] += offsets[g - 1];
      std::vector<std::uint32_t> items(count);
      std::vector<std::uint32_t> next(offsets.begin(), offsets.end() - 1);
      for (std::size_t k = 0; k != count; ++k) {
        items[next[packed.group_of()[k]]++] = indices[order[k]];
      }
      result.groups = grouping(std::move(offsets), std::move(items));
    }
};

/// Best-fit packing of one resource in rounds; see `best_fit_rounds_fn`.
inline constexpr best_fit_rounds_fn best_fit_rounds{};

}  // namespace omnibal::inline v0
