// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples of an instance by descending length, with the least degree on which each fits.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/keyed_indices.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The largest degree that a plan names for a sample that fits on no allowed degree.
inline constexpr std::uint32_t max_named_degree = 65536;

/// A sample that fits on no allowed degree: its index in the list of the caller, and the least
/// degree, allowed or not, on which the sample fits. 0 means no degree.
struct misfit_sample {
  std::uint32_t index = 0;
  std::uint32_t min_degree = 0;
};

/// Returns the sample of a length. `set_min_degrees` sets its least degree later.
[[nodiscard]] inline context_sample sample_of_length(std::uint64_t length, std::uint32_t index) {
  auto const tokens = static_cast<double>(length);
  return {.length = static_cast<std::int64_t>(length),
          .tokens = tokens,
          .squares = tokens * tokens,
          .index = index};
}

/// Writes the samples by descending length. Samples of equal length keep their order. `memory` is
/// scratch memory.
inline void write_sorted_samples(std::span<std::uint32_t const> lengths, keyed_indices& memory,
                                 std::vector<context_sample>& samples) {
  std::uint64_t max_key = 0;
  for (std::uint32_t const length : lengths) max_key = std::max<std::uint64_t>(max_key, length);
  auto& words = memory.words;
  words.clear();
  words.reserve(lengths.size());
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    words.push_back((max_key - lengths[i]) << 32 | i);
  }
  memory.sort(max_key);
  samples.clear();
  samples.reserve(lengths.size());
  for (std::uint64_t const word : words) {
    samples.push_back(sample_of_length(max_key - (word >> 32), static_cast<std::uint32_t>(word)));
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
    if (bytes <= instance.degrees[d].capacity) {
      sample.min_degree_index = d;
      return true;
    }
    before = bytes;
  }
  return false;
}

/// Returns the least degree, allowed or not, on which a length fits; 0 if it fits on none. Degrees
/// above the number of ranks have the smallest capacity of all ranks.
[[nodiscard]] inline std::uint32_t min_named_degree(context_instance const& instance,
                                                    context_memory memory, std::int64_t length) {
  std::vector<rank_window> windows;
  for (std::uint32_t degree = 1; degree <= max_named_degree; ++degree) {
    std::int64_t const bytes = memory(length, degree);
    if (bytes <= instance.min_capacity) return degree;
    if (bytes > instance.capacity || degree > instance.ranks) continue;
    list_windows(instance, degree, windows);
    if (bytes <= max_capacity(windows)) return degree;
  }
  return 0;
}

/// Sets the least degrees of all samples. Returns the first sample by index that fits on no degree.
[[nodiscard]] inline std::optional<misfit_sample> set_min_degrees(context_instance& instance,
                                                                  context_memory memory) {
  context_sample const* first = nullptr;
  for (context_sample& sample : instance.samples) {
    if (set_min_degree(instance, memory, sample)) continue;
    if (first == nullptr || first->index > sample.index) first = &sample;
  }
  if (first == nullptr) return std::nullopt;
  return misfit_sample{first->index, min_named_degree(instance, memory, first->length)};
}

}  // namespace omnibal::inline v0::detail
