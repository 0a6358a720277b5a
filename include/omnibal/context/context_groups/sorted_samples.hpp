// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples of an instance by descending length, with the least degree on which each fits.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The largest degree that a plan names for a sample that fits on no allowed degree.
inline constexpr std::uint32_t max_named_degree = 65536;

/// Words with a key in the upper half and an index in the lower half, and the memory of their sort.
struct keyed_words {
  std::vector<std::uint64_t> values{};
  std::vector<std::uint64_t> spare{};

  /// Sorts by key. Equal keys keep their order.
  void sort(std::uint64_t max_key) {
    radix_sort(values, spare, 32, static_cast<unsigned>(std::bit_width(max_key)));
  }
};

/// Writes samples by descending length, and by index if lengths are equal. The words are the
/// lengths, and are overwritten.
inline void sort_samples(keyed_words& lengths, std::vector<context_sample>& samples) {
  auto& words = lengths.values;
  std::uint64_t const longest = words.empty() ? 0 : *std::max_element(words.begin(), words.end());
  for (std::size_t i = 0; i != words.size(); ++i) words[i] = (longest - words[i]) << 32 | i;
  lengths.sort(longest);
  samples.clear();
  samples.reserve(words.size());
  for (std::uint64_t const word : words) {
    auto const length = static_cast<std::int64_t>(longest - (word >> 32));
    auto const tokens = static_cast<double>(length);
    samples.push_back({.length = length,
                       .tokens = tokens,
                       .squares = tokens * tokens,
                       .index = static_cast<std::uint32_t>(word)});
  }
}

/// Sets the least degree on which a sample fits. Returns false if it fits on no degree.
inline bool set_least_degree(context_instance const& instance, context_memory memory,
                             context_sample& sample) {
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t d = 0; d != instance.degrees.size(); ++d) {
    std::uint32_t const degree = instance.degrees[d].ranks;
    std::int64_t const bytes = memory(sample.length, degree);
    if (bytes > before) {
      throw_memory(sample.length, degree, bytes,
                   "must not be above that with fewer ranks, which is " + to_text(before));
    }
    if (bytes <= instance.capacity) {
      sample.least = d;
      return true;
    }
    before = bytes;
  }
  return false;
}

/// The least degree, allowed or not, on which a length fits; 0 if it fits on none.
[[nodiscard]] inline std::uint32_t min_named_degree(context_instance const& instance,
                                                    context_memory memory, std::int64_t length) {
  for (std::uint32_t degree = 1; degree <= max_named_degree; ++degree) {
    if (memory(length, degree) <= instance.capacity) return degree;
  }
  return 0;
}

/// Sets the least degrees of all samples. If some fit on no degree, the plan names the first one by
/// index and becomes infeasible.
inline void set_least_degrees(context_instance& instance, context_memory memory,
                              context_plan& plan) {
  for (context_sample& sample : instance.samples) {
    if (set_least_degree(instance, memory, sample)) continue;
    if (plan.status == solve_status::solved || sample.index < plan.sample) {
      plan.sample = sample.index;
      plan.min_degree = min_named_degree(instance, memory, sample.length);
    }
    plan.status = solve_status::infeasible;
  }
}

}  // namespace omnibal::inline v0::detail
