// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The groups of the samples of a shard.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/pattern_plan.hpp>
#include <omnibal/pack/place_samples/sample_places.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The number in place of a group for samples that exceed the capacity by themselves.
inline constexpr std::uint64_t no_group = std::numeric_limits<std::uint64_t>::max();

struct place_samples_fn {
  /// Returns the number of the group of each sample of a shard, or `no_group` for a sample that
  /// exceeds the capacity. The argument `before` is the histogram of all samples of the shards
  /// before this one. Besides the plan, a shard knows nothing else of the other shards. The groups
  /// of all shards together contain each sample of the plan exactly once, as the patterns say.
  ///
  /// Samples with equal demands take the places of their entry in order: shard by shard, and within
  /// a shard by ascending index. If shards are consecutive parts of one data set, the groups
  /// therefore do not depend on the number of shards or their limits. A group contains samples of
  /// several shards: send each sample to the shard of its group, `group % shards`, as a shuffle of
  /// a data pipeline does.
  ///
  /// `demand` maps a sample to resources or to one weight, as for `count_samples`. Complexity: a
  /// binary search among the entries for each sample; linear in the parts of the plan. Memory: the
  /// result, 24 bytes for each entry and 32 bytes for each part of the plan. Determinism: portable.
  /// Errors: `std::invalid_argument` if the plan has no samples with a demand, or fewer samples
  /// with the demand than `before` and the shard together, `std::length_error` if there are more
  /// than 2^32 - 1 samples.
  template <std::size_t R, class Samples, class Demand>
    requires detail::measured_samples<Samples, Demand, resources<R>> &&
        std::integral<detail::measured_weight<Samples, Demand>>
  [[nodiscard]] std::vector<std::uint64_t> operator()(pattern_plan<R> const& plan,
                                                      sample_histogram<R> const& before,
                                                      Samples const& samples,
                                                      Demand const& demand) const {
    detail::check_index_count(name, "samples", std::ranges::size(samples));
    auto const entries = plan.histogram.entries();
    detail::sample_places places(plan.offsets, plan.parts, plan.multiplicities, entries.size());
    for (std::size_t i = 0; i != before.entries().size(); ++i) {
      demand_count<R> const& passed = before.entries()[i];
      std::size_t const entry = plan.histogram.find(passed.demand);
      if (entry == entries.size() || passed.count > entries[entry].count) {
        std::uint64_t const known = entry == entries.size() ? 0 : entries[entry].count;
        detail::throw_invalid(name, "before.entries()[", i, "] has ", passed.count,
                              " samples, must be at most ", known, ", the number in the plan");
      }
      places.skip(entry, passed.count);
    }
    std::vector<std::uint64_t> result;
    result.reserve(std::ranges::size(samples));
    detail::for_each_demand<resources<R>>(
        name, samples, demand, [&](std::uint32_t index, resources<R> const& amounts) {
          std::size_t const entry = plan.histogram.find(amounts);
          if (entry == entries.size() || places.passed(entry) == entries[entry].count) {
            detail::throw_invalid(name, "demand of sample ", index, " is ",
                                  detail::list_text(amounts.amounts),
                                  ", but the plan has no further sample with this demand");
          }
          result.push_back(places.next(entry, no_group));
        });
    return result;
  }

 private:
  static constexpr std::string_view name = "place_samples";
};

/// Returns the groups of the samples of a shard; see `place_samples_fn`.
inline constexpr place_samples_fn place_samples{};

}  // namespace omnibal::inline v0
