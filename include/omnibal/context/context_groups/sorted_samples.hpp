// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples of an instance by descending length, with the least degree on which each fits.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/keyed_indices.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The largest degree that a plan names for a sample that fits on no allowed degree.
inline constexpr std::uint32_t max_named_degree = 65536;

/// The sample of a length. `set_min_degrees` sets its least degree later.
[[nodiscard]] inline context_sample sample_of_length(std::uint64_t length, std::uint32_t index) {
  auto const tokens = static_cast<double>(length);
  return {.length = static_cast<std::int64_t>(length),
          .tokens = tokens,
          .squares = tokens * tokens,
          .index = index};
}

/// Sorts samples, which ascend by index, by descending length. Samples of equal length keep their
/// order. `memory` has no content between calls.
inline void sort_by_length(std::vector<context_sample>& samples, keyed_indices& memory) {
  std::int64_t longest = 0;
  for (context_sample const& sample : samples) longest = std::max(longest, sample.length);
  auto const max_key = static_cast<std::uint64_t>(longest);
  auto& words = memory.words;
  words.clear();
  words.reserve(samples.size());
  for (context_sample const& sample : samples) {
    words.push_back((max_key - static_cast<std::uint64_t>(sample.length)) << 32 | sample.index);
  }
  memory.sort(max_key);
  for (std::size_t i = 0; i != words.size(); ++i) {
    samples[i] = sample_of_length(max_key - (words[i] >> 32), static_cast<std::uint32_t>(words[i]));
  }
}

/// Sets the least degree on which a sample fits. Returns false if it fits on no degree.
inline bool set_min_degree(context_instance const& instance, context_memory memory,
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
      sample.min_degree_index = d;
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
inline void set_min_degrees(context_instance& instance, context_memory memory, context_plan& plan) {
  for (context_sample& sample : instance.samples) {
    if (set_min_degree(instance, memory, sample)) continue;
    if (plan.status == solve_status::solved || sample.index < plan.sample) {
      plan.sample = sample.index;
      plan.min_degree = min_named_degree(instance, memory, sample.length);
    }
    plan.status = solve_status::infeasible;
  }
}

}  // namespace omnibal::inline v0::detail
