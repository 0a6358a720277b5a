// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The indices of an array that are not removed yet.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace omnibal::inline v0::detail {

/// The remaining indices of an array in ascending order: a union-find structure in which each
/// removed index links to a later one.
class remaining_indices {
 public:
  /// Contains all indices of [0, count).
  void reset(std::size_t count) {
    next_.resize(count + 1);
    std::iota(next_.begin(), next_.end(), std::uint32_t{0});
    size_ = count;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Returns the first remaining index from `i` on, by path halving; the number of all indices if
  /// there is none.
  [[nodiscard]] std::uint32_t first_from(std::uint32_t i) {
    while (next_[i] != i) {
      next_[i] = next_[next_[i]];
      i = next_[i];
    }
    return i;
  }

  /// Removes a remaining index.
  void remove(std::uint32_t i) {
    next_[i] = i + 1;
    --size_;
  }

 private:
  std::vector<std::uint32_t> next_;
  std::size_t size_ = 0;
};

}  // namespace omnibal::inline v0::detail
