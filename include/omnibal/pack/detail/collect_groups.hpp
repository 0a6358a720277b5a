// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Collection of groups by packers: one after the other, or by the group of each sample.

#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/unset_array.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Frees the memory of a vector, which an assignment of `{}` does not free.
template <class T>
void release(std::vector<T>& values) noexcept {
  std::vector<T>().swap(values);
}

/// A writer of groups into arrays that are allocated once.
class group_writer {
 public:
  /// Allocates memory for at most `item_count` items. No group may be empty.
  explicit group_writer(std::size_t item_count)
      : offsets_(item_count + 2), items_(item_count + 1) {}

  /// A position that writes items and the ends of groups without branches: the next write replaces
  /// a write that does not advance. Items and ends are independent. In the end, the sizes of the
  /// groups must add up to the number of items.
  class cursor {
   public:
    cursor(std::uint32_t* last_offset, std::uint32_t* next_item)
        : last_offset_(last_offset), next_item_(next_item), end_(*last_offset) {}

    /// Writes an item and advances by `advance`, zero or one.
    void write(std::uint32_t item, std::size_t advance) {
      *next_item_ = item;
      next_item_ += advance;
    }

    /// Ends a group of `size` items and advances by `advance`, zero or one.
    void close(std::size_t size, std::size_t advance) {
      auto const end = static_cast<std::uint32_t>(end_ + size);
      last_offset_[1] = end;
      last_offset_ += advance;
      end_ = advance != 0 ? end : end_;
    }

   private:
    friend group_writer;
    std::uint32_t* last_offset_;
    std::uint32_t* next_item_;
    std::uint32_t end_;
  };

  /// Returns a cursor at the end. `set_end` sets the end to this cursor; only one cursor may be in
  /// use.
  [[nodiscard]] cursor end() {
    return {offsets_.data() + group_count_, items_.data() + item_count_};
  }
  void set_end(cursor const& end) {
    group_count_ = static_cast<std::size_t>(end.last_offset_ - offsets_.data());
    item_count_ = static_cast<std::size_t>(end.next_item_ - items_.data());
  }

  [[nodiscard]] grouping take() && {
    offsets_.resize(group_count_ + 1);
    offsets_.shrink_to_fit();
    items_.resize(item_count_);
    return grouping(std::move(offsets_), std::move(items_));
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> items_;
  std::size_t group_count_ = 0;
  std::size_t item_count_ = 0;
};

/// A run of groups whose indices are consecutive, ascending or descending.
struct group_run {
  std::uint32_t first;
  std::uint32_t last;

  [[nodiscard]] std::size_t size() const {
    return std::size_t{1} + (first < last ? last - first : first - last);
  }
  [[nodiscard]] std::uint32_t operator[](std::size_t k) const {
    auto const distance = static_cast<std::uint32_t>(k);
    return first < last ? first + distance : first - distance;
  }
  [[nodiscard]] group_run reversed() const { return {last, first}; }
};

/// The group of each sample, in the order in which they are packed, and the size of each group.
class group_assignment {
 public:
  explicit group_assignment(std::size_t sample_count)
      : count_(sample_count), group_of_(sample_count) {
    sizes_.reserve(sample_count + 1);
  }

  /// Opens groups without samples. Precondition: `count` is positive.
  group_run open(std::size_t count) {
    auto const first = static_cast<std::uint32_t>(sizes_.size());
    sizes_.resize(sizes_.size() + count);
    return {first, static_cast<std::uint32_t>(sizes_.size() - 1)};
  }

  /// Assigns the next `count` samples to the first of the groups, the following `count` samples to
  /// the second, and so on.
  void assign(group_run groups, std::size_t count) {
    std::uint32_t* next = group_of_.data() + assigned_;
    assigned_ += groups.size() * count;
    for (std::size_t k = 0; k != groups.size(); ++k) {
      for (std::size_t i = 0; i != count; ++i) *next++ = groups[k];
      sizes_[groups[k]] += static_cast<std::uint32_t>(count);
    }
  }

  /// Assigns the next sample to a group.
  void assign(std::uint32_t group) {
    group_of_[assigned_++] = group;
    ++sizes_[group];
  }

  /// Returns the groups; `items` contains the samples in the order of packing. Precondition: all
  /// samples are assigned.
  [[nodiscard]] grouping collect(std::vector<std::uint32_t> const& items) && {
    sizes_.push_back(0);
    std::vector<std::uint32_t> grouped(count_);
    sort_by_part({group_of_.data(), count_}, sizes_, grouped,
                 [&items](std::size_t k) { return items[k]; });
    group_of_.release();
    sizes_.shrink_to_fit();
    return grouping(std::move(sizes_), std::move(grouped));
  }

 private:
  std::size_t count_;
  std::size_t assigned_ = 0;
  unset_array<std::uint32_t> group_of_;
  std::vector<std::uint32_t> sizes_;
};

}  // namespace omnibal::inline v0::detail
