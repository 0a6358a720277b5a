// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bound on the number of groups from conflicts between two integer resources.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the largest number of conflicts over all thresholds. `counts[k]` is the number of
/// samples with b in bucket k and a large a, `counts[buckets + k]` with b in bucket k and a small
/// a. A bucket is 2^shift wide.
template <class Count>
[[nodiscard]] std::size_t max_conflicts(std::vector<Count> const& counts, std::int64_t capacity_b,
                                        unsigned shift) {
  std::size_t const buckets = counts.size() / 2;
  std::size_t conflicting = std::accumulate(counts.data(), counts.data() + buckets, std::size_t{0});
  std::size_t bound = conflicting;
  std::size_t next_small = buckets;
  for (std::size_t k = 1; k != buckets; ++k) {
    // At threshold x = k << shift the samples with a large a in bucket k - 1 leave. Samples with a
    // small a enter from all buckets that are entirely above capacity - x.
    auto const threshold = static_cast<std::int64_t>(k << shift);
    if (threshold > capacity_b - threshold + 1) break;
    conflicting -= counts[k - 1];
    std::int64_t const above = capacity_b - threshold;
    while (next_small != 0 && static_cast<std::int64_t>((next_small - 1) << shift) > above) {
      conflicting += counts[buckets + --next_small];
    }
    bound = std::max(bound, conflicting);
  }
  return bound;
}

/// Returns the bound from conflicts between two resources. For a threshold x up to half of the
/// capacity of b, consider the samples with a above half of its capacity and b >= x, and the
/// samples with b > capacity - x. Any two of these samples exceed a capacity. Thresholds are
/// multiples of a power of two, which is 1 if the capacity of b is small. The sample with index i
/// occurs `times(i)` times.
template <class ValueA, class ValueB, class Times>
[[nodiscard]] std::size_t conflict_bound(std::size_t count, ValueA const& a,
                                         std::int64_t capacity_a, ValueB const& b,
                                         std::int64_t capacity_b, Times const& times) {
  using count_type = std::remove_cvref_t<std::invoke_result_t<Times const&, std::size_t>>;
  std::size_t const max_buckets = std::clamp<std::size_t>(count / 4, 1024, 65536);
  unsigned shift = 0;
  while ((static_cast<std::uint64_t>(capacity_b) >> shift) >= max_buckets) ++shift;
  auto const bucket_of = [shift](std::int64_t value) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(value) >> shift);
  };
  std::size_t const buckets = bucket_of(capacity_b) + 1;
  std::vector<count_type> counts(2 * buckets, 0);
  for (std::size_t i = 0; i != count; ++i) {
    // The loop has no branch, because a branch would be hard to predict.
    auto const is_small = static_cast<std::size_t>(a(i) <= capacity_a - a(i));
    counts[is_small * buckets + bucket_of(b(i))] += times(i);
  }
  return max_conflicts(counts, capacity_b, shift);
}

/// Returns the bound from conflicts between two resources of samples that occur once each.
template <class ValueA, class ValueB>
[[nodiscard]] std::size_t conflict_bound(std::size_t count, ValueA const& a,
                                         std::int64_t capacity_a, ValueB const& b,
                                         std::int64_t capacity_b) {
  return conflict_bound(count, a, capacity_a, b, capacity_b,
                        [](std::size_t) { return std::uint32_t{1}; });
}

}  // namespace omnibal::inline v0::detail
