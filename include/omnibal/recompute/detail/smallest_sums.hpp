#pragma once

/// \file
/// Sums of the smallest of some numbers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Numbers of which only the smallest few are sorted, as more of them are asked for.
class smallest_sums {
 public:
  void clear() {
    values_.clear();
    sums_.assign(1, 0);
    least_ = 0;
  }
  void push(std::int64_t value) {
    values_.push_back(value);
    least_ += std::min<std::int64_t>(value, 0);
  }

  /// The least sum of any of the numbers, or of none.
  [[nodiscard]] std::int64_t least() const { return least_; }

  /// Of the `count` smallest numbers. Precondition: there are as many.
  [[nodiscard]] std::int64_t sum(std::size_t count) {
    if (count >= sums_.size()) sort_until(count);
    return sums_[count];
  }

 private:
  void sort_until(std::size_t count) {
    std::size_t const sorted = sums_.size() - 1;
    std::size_t const wanted = std::min(values_.size(), std::max(count, 2 * sorted + 2));
    auto const at = [&](std::size_t index) {
      return values_.begin() + static_cast<std::ptrdiff_t>(index);
    };
    std::partial_sort(at(sorted), at(wanted), values_.end());
    for (std::size_t i = sorted; i != wanted; ++i) sums_.push_back(sums_.back() + values_[i]);
  }

  std::vector<std::int64_t> values_;
  std::vector<std::int64_t> sums_{0};
  std::int64_t least_ = 0;
};

}  // namespace omnibal::inline v0::detail
