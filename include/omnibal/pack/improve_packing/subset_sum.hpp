// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Subset sums: the values that fill a room best.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/search_budget.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Solves the subset-sum problem for up to 64 positive values. The method is Bellman's dynamic
/// program, with the sums that can be reached as bits of words. If the largest room has too many
/// bits, the method is a bounded depth-first search, which may miss the best subset.
///
/// Among several best subsets, the choice depends on the order of the values. Allocates only at
/// construction. Source: Kellerer, Pferschy, Pisinger, Knapsack Problems, 2004, chapter 4.
class subset_sum {
 public:
  static constexpr std::size_t max_values = 64;

  /// Allocates memory for rooms up to `largest_room`.
  explicit subset_sum(std::int64_t largest_room) : by_bits_(largest_room < max_bits) {
    if (by_bits_) reached_.resize((max_values + 1) * words_of(largest_room));
  }

  /// Fills `room` from at most `max_values` values and returns the largest sum that is found.
  /// Precondition: the room is at most the largest room and not negative.
  std::int64_t fill(std::span<std::int64_t const> values, std::int64_t room) {
    chosen_ = 0;
    return by_bits_ ? fill_by_bits(values, room) : fill_by_search(values, room);
  }

  /// Returns true if the last subset contains the value at `position`.
  [[nodiscard]] bool has(std::size_t position) const { return (chosen_ >> position & 1) != 0; }

  /// Returns the work of the last call, in operations on a word.
  [[nodiscard]] std::size_t work() const { return work_; }

 private:
  /// The number of bits above which a search replaces the table of bits. The table grows with the
  /// room; a larger table takes longer than a search that finds equally good subsets.
  static constexpr std::int64_t max_bits = std::int64_t{1} << 14;
  /// The maximum number of nodes of a search. Nearly all searches of random values end earlier with
  /// the best subset.
  static constexpr search_budget nodes{256};
  /// The work of a node of the search, in operations on a word.
  static constexpr std::size_t words_of_node = 8;

  [[nodiscard]] static std::size_t words_of(std::int64_t room) {
    return static_cast<std::size_t>(room) / 64 + 1;
  }
  [[nodiscard]] static bool is_reached(std::uint64_t const* sums, std::int64_t sum) {
    auto const bit = static_cast<std::uint64_t>(sum);
    return (sums[bit / 64] >> bit % 64 & 1) != 0;
  }

  /// Sets `to` to the sums of `from` with and without `value`.
  static void add_value(std::uint64_t const* from, std::uint64_t* to, std::size_t words,
                        std::int64_t value) {
    std::size_t const whole = static_cast<std::size_t>(value) / 64;
    unsigned const shift = static_cast<unsigned>(value) % 64;
    std::size_t const kept = std::min(whole, words);
    std::copy(from, from + kept, to);
    if (kept == words) return;
    if (shift == 0) {
      for (std::size_t j = whole; j != words; ++j) to[j] = from[j] | from[j - whole];
      return;
    }
    to[whole] = from[whole] | from[0] << shift;
    for (std::size_t j = whole + 1; j != words; ++j) {
      to[j] = from[j] | from[j - whole] << shift | from[j - whole - 1] >> (64 - shift);
    }
  }

  std::int64_t fill_by_bits(std::span<std::int64_t const> values, std::int64_t room) {
    std::size_t const words = words_of(room);
    std::uint64_t* sums = reached_.data();
    std::fill(sums, sums + words, std::uint64_t{0});
    sums[0] = 1;
    std::size_t used = 0;
    while (used != values.size() && !is_reached(sums, room)) {
      add_value(sums, sums + words, words, values[used++]);
      sums += words;
    }
    work_ = (used + 1) * words;
    std::int64_t const best = largest_sum(sums, room);
    std::int64_t rest = best;
    while (rest != 0) {
      sums -= words;
      --used;
      if (is_reached(sums, rest)) continue;
      chosen_ |= std::uint64_t{1} << used;
      rest -= values[used];
    }
    return best;
  }

  /// Returns the largest reached sum up to `room`.
  [[nodiscard]] static std::int64_t largest_sum(std::uint64_t const* sums, std::int64_t room) {
    auto const highest = static_cast<std::uint64_t>(room);
    std::size_t word = highest / 64;
    unsigned const above = 63 - static_cast<unsigned>(highest % 64);
    std::uint64_t bits = sums[word] << above >> above;
    while (bits == 0) bits = sums[--word];
    auto const last_bit = static_cast<std::size_t>(std::bit_width(bits)) - 1;
    return static_cast<std::int64_t>(word * 64 + last_bit);
  }

  std::int64_t fill_by_search(std::span<std::int64_t const> values, std::int64_t room) {
    values_ = values;
    room_ = room;
    best_ = 0;
    budget_ = nodes;
    sum_from_[values.size()] = 0;
    for (std::size_t k = values.size(); k-- != 0;) {
      sum_from_[k] = saturated_sum(sum_from_[k + 1], values[k]);
    }
    search(0, 0, 0);
    work_ = (budget_.spent() + values.size()) * words_of_node;
    return best_;
  }

  [[nodiscard]] static std::int64_t saturated_sum(std::int64_t left, std::int64_t right) {
    return right > INT64_MAX - left ? INT64_MAX : left + right;
  }

  /// Adds values from position `first` on to `sum`, the sum of the values in `mask`.
  void search(std::size_t first, std::int64_t sum, std::uint64_t mask) {
    if (sum > best_) {
      best_ = sum;
      chosen_ = mask;
    }
    for (std::size_t k = first; k != values_.size() && best_ != room_ && !budget_.is_spent(); ++k) {
      if (sum_from_[k] <= best_ - sum) return;
      if (values_[k] > room_ - sum) continue;
      budget_.spend();
      search(k + 1, sum + values_[k], mask | std::uint64_t{1} << k);
    }
  }

  bool by_bits_;
  /// The sums of the first k values as bits, for each k.
  std::vector<std::uint64_t> reached_;
  std::uint64_t chosen_ = 0;
  std::size_t work_ = 0;

  std::span<std::int64_t const> values_;
  std::int64_t sum_from_[max_values + 1] = {};
  std::int64_t room_ = 0;
  std::int64_t best_ = 0;
  search_budget budget_ = nodes;
};

}  // namespace omnibal::inline v0::detail
