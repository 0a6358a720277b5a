#pragma once

/// \file
/// Where packers write their groups.

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Collects groups in arrays that are allocated once.
class group_writer {
 public:
  /// For at most `item_count` items, and no empty groups.
  explicit group_writer(std::size_t item_count)
      : offsets_(item_count + 2), items_(item_count + 1) {}

  /// Writes items and the ends of groups without branches: a write that does not advance is
  /// overwritten. The two sides are independent; in the end the sizes of the groups must add up to
  /// the items.
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

  /// A cursor at the end; `set_end` takes it back, and only one may be in use.
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

}  // namespace omnibal::inline v0::detail
