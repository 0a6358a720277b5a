// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bound of Martello and Toth on the number of groups for one integer resource.

#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the bound L2 of Martello and Toth over values in ascending order, of which `value(k)`
/// occurs `count(k)` times. Let alpha <= capacity / 2 be a threshold. A value above capacity -
/// alpha shares its group with no value from alpha on. Every other value above capacity / 2 needs a
/// group and leaves room in it. The values from alpha to capacity / 2 fill these rooms, and the
/// excess needs further groups. The bound is the maximum over all thresholds that are values,
/// because other thresholds have no larger bounds. The lowest threshold yields at least the volume
/// bound.
template <class Value, class Count>
[[nodiscard]] std::size_t martello_toth_bound(std::size_t entries, Value const& value,
                                              Count const& count, std::int64_t capacity) {
  auto const size = static_cast<uint128>(capacity);
  auto const room = [&](std::size_t k) {
    return (size - static_cast<uint128>(value(k))) * static_cast<uint128>(count(k));
  };
  auto const volume = [&](std::size_t k) {
    return static_cast<uint128>(value(k)) * static_cast<uint128>(count(k));
  };
  std::size_t first_large = 0;
  uint128 small_sum = 0;
  while (first_large != entries && value(first_large) <= capacity - value(first_large)) {
    small_sum += volume(first_large++);
  }
  std::size_t large_count = 0;
  uint128 large_room = 0;
  for (std::size_t k = first_large; k != entries; ++k) {
    large_count += count(k);
    large_room += room(k);
  }

  // The largest volume that needs further groups.
  uint128 most = 0;
  std::size_t alone = entries;
  for (std::size_t k = 0; k != first_large; ++k) {
    while (alone != first_large && value(alone - 1) > capacity - value(k)) {
      large_room -= room(--alone);
    }
    if (small_sum > large_room) most = std::max(most, small_sum - large_room);
    small_sum -= volume(k);
  }
  return large_count + static_cast<std::size_t>((most + size - 1) / size);
}

/// The bound L2 of Martello and Toth for values in any order, of which only few are sorted.
///
/// Small values are values up to half of the capacity. Let f(alpha) be the sum of the small values
/// of at least alpha, less the rooms of at least alpha next to large values. The bound is the
/// number of large values plus the largest ceil(f / capacity). The values of f between buckets of
/// small values and rooms are known. The contents of a bucket are sorted only if f might be larger
/// within it.
class bucketed_martello_toth {
 public:
  bucketed_martello_toth(std::size_t count, std::int64_t capacity) : capacity_(capacity) {
    std::size_t const max_buckets = std::clamp<std::size_t>(count / 16, 16, 4096);
    auto const half = static_cast<std::uint64_t>(capacity) / 2;
    while ((half >> shift_) >= max_buckets) ++shift_;
    buckets_.resize((half >> shift_) + 1);
  }

  /// Adds a value, which is at least zero and at most the capacity. Must be called for each value.
  void add(std::int64_t value) {
    part const own = part_of(value);
    bucket& around = buckets_[bucket_of(own)];
    (own.is_room ? around.rooms : around.values) += own.size;
    large_count_ += own.is_room ? 1 : 0;
  }

  /// Returns true if all values must also be given to `add_within`. Must be called once, after all
  /// values.
  [[nodiscard]] bool needs_values() {
    int128 above = 0;
    for (std::size_t k = buckets_.size(); k-- != 0;) {
      buckets_[k].above = above;
      above += buckets_[k].values - buckets_[k].rooms;
      max_excess_ = std::max(max_excess_, above);
    }
    return std::any_of(buckets_.begin(), buckets_.end(),
                       [&](bucket const& around) { return may_raise(around); });
  }

  void add_within(std::int64_t value) {
    part const own = part_of(value);
    if (!may_raise(buckets_[bucket_of(own)])) return;
    // If a room and a value are equal, the room precedes the value from above.
    words_.push_back(own.size << 1 | (own.is_room ? 1 : 0));
  }

  /// Returns the bound. Must be called last, and once.
  [[nodiscard]] std::size_t bound() {
    std::vector<std::uint64_t> spare;
    auto const half = static_cast<std::uint64_t>(capacity_) / 2;
    radix_sort(words_, spare, 0, static_cast<unsigned>(std::bit_width(half << 1 | 1)));
    std::size_t around = buckets_.size();
    int128 sum = 0;
    for (std::size_t k = words_.size(); k-- != 0;) {
      part const own{words_[k] >> 1, (words_[k] & 1) != 0};
      if (bucket_of(own) != around) {
        around = bucket_of(own);
        sum = buckets_[around].above;
      }
      auto const size = static_cast<int128>(own.size);
      sum += own.is_room ? -size : size;
      max_excess_ = std::max(max_excess_, sum);
    }
    auto const size = static_cast<int128>(capacity_);
    return large_count_ + static_cast<std::size_t>((max_excess_ + size - 1) / size);
  }

 private:
  /// A small value, or the room next to a large value.
  struct part {
    std::uint64_t size;
    bool is_room;
  };

  /// The sums of the values and of the rooms of a bucket, and f from the next higher bucket on.
  struct bucket {
    int128 values = 0;
    int128 rooms = 0;
    int128 above = 0;
  };

  [[nodiscard]] part part_of(std::int64_t value) const {
    bool const is_large = value > capacity_ - value;
    return {static_cast<std::uint64_t>(is_large ? capacity_ - value : value), is_large};
  }

  [[nodiscard]] std::size_t bucket_of(part const& own) const {
    return static_cast<std::size_t>(own.size >> shift_);
  }

  /// Returns true if a threshold within the bucket may require more groups than the thresholds
  /// between buckets.
  [[nodiscard]] bool may_raise(bucket const& around) const {
    auto const size = static_cast<int128>(capacity_);
    return around.above + around.values > (max_excess_ + size - 1) / size * size;
  }

  std::int64_t capacity_;
  unsigned shift_ = 0;
  std::vector<bucket> buckets_;
  std::size_t large_count_ = 0;
  /// The largest f so far.
  int128 max_excess_ = 0;
  /// Twice the size of each part in buckets that may raise the bound, plus one for rooms.
  std::vector<std::uint64_t> words_;
};

}  // namespace omnibal::inline v0::detail
