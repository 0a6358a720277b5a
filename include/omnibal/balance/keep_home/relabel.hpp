#pragma once

/// \file
/// Which rank takes which part, so that few bytes move.

#include <omnibal/detail/integer_costs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Gives parts to ranks, greedily: the pair of a part and a rank that saves the most bytes first,
/// then the other parts to the other ranks in order. Keeps its memory.
class part_relabeller {
 public:
  /// Replaces the part of each sample by the rank that takes it. `home_of` is the rank where each
  /// sample is; there are as many ranks as parts.
  void run(whole_costs<1> const& bytes, std::span<std::uint32_t const> home_of, std::size_t ranks,
           std::vector<std::uint32_t>& part_of) {
    collect_pairs(bytes, home_of, ranks, part_of);
    rank_of_.assign(ranks, none);
    is_taken_.assign(ranks, 0);
    for (pair const& saved : pairs_) {
      auto const part = static_cast<std::size_t>(saved.key / ranks);
      auto const rank = static_cast<std::size_t>(saved.key % ranks);
      if (rank_of_[part] != none || is_taken_[rank] != 0) continue;
      rank_of_[part] = static_cast<std::uint32_t>(rank);
      is_taken_[rank] = 1;
    }
    std::uint32_t free = 0;
    for (std::uint32_t& rank : rank_of_) {
      if (rank != none) continue;
      while (is_taken_[free] != 0) ++free;
      rank = free++;
    }
    for (std::uint32_t& part : part_of) part = rank_of_[part];
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// The bytes of a part that are on a rank; the key names both.
  struct pair {
    std::uint64_t key;
    std::int64_t bytes;
  };

  /// The pairs with any samples, by descending bytes.
  void collect_pairs(whole_costs<1> const& bytes, std::span<std::uint32_t const> home_of,
                     std::size_t ranks, std::vector<std::uint32_t> const& part_of) {
    pairs_.clear();
    for (std::size_t i = 0; i != part_of.size(); ++i) {
      pairs_.push_back({part_of[i] * std::uint64_t{ranks} + home_of[i], bytes[i][0]});
    }
    std::sort(pairs_.begin(), pairs_.end(),
              [](pair const& a, pair const& b) { return a.key < b.key; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < pairs_.size(); ++i) {
      if (pairs_[i].key == pairs_[last].key) {
        pairs_[last].bytes += pairs_[i].bytes;
      } else {
        pairs_[++last] = pairs_[i];
      }
    }
    if (!pairs_.empty()) pairs_.resize(last + 1);
    std::sort(pairs_.begin(), pairs_.end(), [](pair const& a, pair const& b) {
      return a.bytes > b.bytes || (a.bytes == b.bytes && a.key < b.key);
    });
  }

  std::vector<pair> pairs_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::uint8_t> is_taken_;
};

}  // namespace omnibal::inline v0::detail
