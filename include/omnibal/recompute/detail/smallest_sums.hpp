#pragma once

/// \file
/// Sums of the smallest of some numbers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Numbers that are sorted when the first sum is asked for, from the order that they had before: the
/// same numbers after a small change are sorted in nearly linear time.
class smallest_sums {
 public:
  /// Takes the numbers `value(index)` for all indices below `count`.
  template <class Value>
  void assign(std::uint32_t count, Value const& value) {
    if (entries_.size() != count) {
      entries_.clear();
      for (std::uint32_t i = 0; i != count; ++i) entries_.push_back({0, i});
    }
    sums_.clear();
    least_ = 0;
    for (entry& one : entries_) {
      one.value = value(one.index);
      least_ += std::min<std::int64_t>(one.value, 0);
    }
  }

  /// The least sum of any of the numbers, or of none.
  [[nodiscard]] std::int64_t least() const { return least_; }

  /// Of the `count` smallest numbers. Precondition: there are as many.
  [[nodiscard]] std::int64_t sum(std::size_t count) {
    if (sums_.empty()) sort();
    return sums_[count];
  }

 private:
  struct entry {
    std::int64_t value;
    std::uint32_t index;
  };

  void sort() {
    if (!insert_all()) {
      std::sort(entries_.begin(), entries_.end(),
                [](entry const& left, entry const& right) { return left.value < right.value; });
    }
    sums_.push_back(0);
    for (entry const& one : entries_) sums_.push_back(sums_.back() + one.value);
  }

  /// Sorts by insertion; false where that takes too many moves.
  [[nodiscard]] bool insert_all() {
    std::size_t moves = 4 * entries_.size();
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      entry const one = entries_[i];
      std::size_t place = i;
      for (; place != 0 && entries_[place - 1].value > one.value; --place) {
        entries_[place] = entries_[place - 1];
      }
      entries_[place] = one;
      if (i - place > moves) return false;
      moves -= i - place;
    }
    return true;
  }

  std::vector<entry> entries_;
  /// Empty until they are asked for.
  std::vector<std::int64_t> sums_;
  std::int64_t least_ = 0;
};

}  // namespace omnibal::inline v0::detail
