// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Counts of equal demands.

#include <omnibal/pack/demand_count.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns true if a demand is before another in a histogram.
template <std::size_t R>
[[nodiscard]] constexpr bool demand_precedes(resources<R> const& left, resources<R> const& right) {
  for (std::size_t r = 0; r != R; ++r) {
    if (left[r] != right[r]) return left[r] < right[r];
  }
  return false;
}

/// Returns the sum of two counts, at most 2^64 - 1.
[[nodiscard]] constexpr std::uint64_t saturated_sum(std::uint64_t left, std::uint64_t right) {
  return left + std::min(right, ~std::uint64_t{0} - left);
}

/// Sorts entries, adds up the counts of equal demands and drops counts of zero.
template <std::size_t R>
void sort_and_add(std::vector<demand_count<R>>& entries) {
  auto const is_before = [](demand_count<R> const& left, demand_count<R> const& right) {
    return demand_precedes(left.demand, right.demand);
  };
  if (!std::is_sorted(entries.begin(), entries.end(), is_before)) {
    std::sort(entries.begin(), entries.end(), is_before);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i != entries.size(); ++i) {
    demand_count<R> const next = entries[i];
    if (next.count == 0) continue;
    if (kept != 0 && entries[kept - 1].demand == next.demand) {
      entries[kept - 1].count = saturated_sum(entries[kept - 1].count, next.count);
    } else {
      entries[kept++] = next;
    }
  }
  entries.resize(kept);
}

/// Returns the entries of two histograms together.
template <std::size_t R>
[[nodiscard]] std::vector<demand_count<R>> merged_entries(std::span<demand_count<R> const> left,
                                                          std::span<demand_count<R> const> right) {
  std::vector<demand_count<R>> result;
  result.reserve(left.size() + right.size());
  std::size_t i = 0;
  std::size_t j = 0;
  while (i != left.size() || j != right.size()) {
    if (j == right.size() ||
        (i != left.size() && demand_precedes(left[i].demand, right[j].demand))) {
      result.push_back(left[i++]);
    } else if (i == left.size() || demand_precedes(right[j].demand, left[i].demand)) {
      result.push_back(right[j++]);
    } else {
      result.push_back({left[i].demand, saturated_sum(left[i].count, right[j].count)});
      ++i;
      ++j;
    }
  }
  return result;
}

/// Returns the index of the entry of a demand; the number of entries if there is none.
template <std::size_t R>
[[nodiscard]] std::size_t find_entry(std::span<demand_count<R> const> entries,
                                     resources<R> const& demand) {
  auto const at = std::lower_bound(entries.begin(), entries.end(), demand,
                                   [](demand_count<R> const& entry, resources<R> const& wanted) {
                                     return demand_precedes(entry.demand, wanted);
                                   });
  bool const is_found = at != entries.end() && at->demand == demand;
  return is_found ? static_cast<std::size_t>(at - entries.begin()) : entries.size();
}

/// A counter of demands in memory that does not grow with the number of samples. Small amounts of
/// one resource are counted in a table; other demands are collected, sorted and merged in blocks.
template <std::size_t R>
class demand_counter {
 public:
  void add(resources<R> const& demand) {
    if constexpr (R == 1) {
      if (demand[0] < table_size) {
        auto const at = static_cast<std::size_t>(demand[0]);
        if (at >= table_.size()) {
          table_.resize(
              std::clamp(2 * table_.size(), at + 1, static_cast<std::size_t>(table_size)));
        }
        ++table_[at];
        return;
      }
    }
    block_.push_back({demand, 1});
    if (block_.size() == block_size) merge_block();
  }

  [[nodiscard]] std::vector<demand_count<R>> entries() && {
    merge_block();
    for (std::size_t v = 0; v != table_.size(); ++v) {
      if constexpr (R == 1) {
        if (table_[v] != 0) block_.push_back({static_cast<std::int64_t>(v), table_[v]});
      }
    }
    merge_block();
    return std::move(entries_);
  }

 private:
  static constexpr std::int64_t table_size = std::int64_t{1} << 18;
  static constexpr std::size_t block_size = std::size_t{1} << 16;

  void merge_block() {
    sort_and_add(block_);
    entries_ = merged_entries<R>(entries_, block_);
    block_.clear();
  }

  std::vector<std::uint64_t> table_;
  std::vector<demand_count<R>> block_;
  std::vector<demand_count<R>> entries_;
};

}  // namespace omnibal::inline v0::detail
