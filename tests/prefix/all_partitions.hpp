// SPDX-License-Identifier: Apache-2.0
#pragma once

// The best packings of a small forest, by trying all.

#include "prefix_faults.hpp"

#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace test {

/// The least tokens, the fewest groups, and the least sum of tokens and a price for each group.
struct least_of {
  std::uint64_t tokens = std::numeric_limits<std::uint64_t>::max();
  std::size_t groups = std::numeric_limits<std::size_t>::max();
  std::uint64_t priced = std::numeric_limits<std::uint64_t>::max();
};

/// Tries all partitions of the sequences that fit.
class all_partitions {
 public:
  all_partitions(omnibal::prefix_forest const& forest, std::uint64_t capacity, std::uint64_t price)
      : forest_(forest), capacity_(capacity), price_(price) {
    for (std::uint32_t i = 0; i != forest.sequence_count(); ++i) {
      if (forest.sequence_tokens(i) <= capacity) sequences_.push_back(i);
    }
    place(0);
  }

  [[nodiscard]] least_of const& least() const { return least_; }

 private:
  void place(std::size_t next) {
    if (next == sequences_.size()) {
      std::uint64_t tokens = 0;
      for (auto const& group : groups_) tokens += union_tokens(forest_, group);
      least_.tokens = std::min(least_.tokens, tokens);
      least_.groups = std::min(least_.groups, groups_.size());
      least_.priced = std::min(least_.priced, tokens + price_ * groups_.size());
      return;
    }
    for (std::size_t g = 0; g != groups_.size(); ++g) {
      groups_[g].push_back(sequences_[next]);
      if (union_tokens(forest_, groups_[g]) <= capacity_) place(next + 1);
      groups_[g].pop_back();
    }
    groups_.push_back({sequences_[next]});
    place(next + 1);
    groups_.pop_back();
  }

  omnibal::prefix_forest const& forest_;
  std::uint64_t capacity_;
  std::uint64_t price_;
  std::vector<std::uint32_t> sequences_;
  std::vector<std::vector<std::uint32_t>> groups_;
  least_of least_;
};

}  // namespace test
