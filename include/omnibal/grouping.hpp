// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of sample indices in compressed sparse row form: offsets and items.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/place_iterator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A view of groups in arrays of another owner. `offsets` has one more element than there are
/// groups, and `items` contains the indices of group g at [offsets[g], offsets[g + 1]). The view is
/// trivially copyable, so that it can be passed to a kernel. Members that do not name `std::span`
/// can be called from device code. The view is a random-access range of groups, each the span of
/// its indices. Its iterators stay valid as long as the arrays, even if the view no longer exists.
class grouping_view {
 public:
  using iterator = detail::place_iterator<grouping_view>;

  /// Creates a view of no groups.
  grouping_view() = default;

  /// Creates a view of the arrays of a grouping. Precondition: `offsets` has `group_count + 1`
  /// elements, starts with zero and does not decrease.
  OMNIBAL_HOST_DEVICE constexpr grouping_view(std::uint32_t const* offsets,
                                              std::uint32_t const* items, std::size_t group_count)
      : offsets_(offsets), items_(items), group_count_(group_count) {}

  /// Returns the number of groups.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t size() const { return group_count_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool empty() const { return group_count_ == 0; }

  /// Returns the number of indices in all groups.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t item_count() const {
    return group_count_ == 0 ? 0 : offsets_[group_count_];
  }
  /// Returns the position in the items at which group `group` starts; `offset(size())` is the end.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t offset(std::size_t group) const {
    return offsets_[group];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t item(std::size_t position) const {
    return items_[position];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t group_size(std::size_t group) const {
    return offsets_[group + 1] - offsets_[group];
  }

  // g++ 13 warns of dangling references, because it treats the spans that a temporary view returns
  // as references into the view.
#if defined(__GNUC__) && __GNUC__ == 13
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-reference"
#endif

  /// Returns the indices of one group. Precondition: `group < size()`.
  [[nodiscard]] constexpr std::span<std::uint32_t const> operator[](std::size_t group) const {
    return {items_ + offsets_[group], group_size(group)};
  }
  [[nodiscard]] constexpr iterator begin() const { return {*this, 0}; }
  [[nodiscard]] constexpr iterator end() const { return {*this, group_count_}; }

  [[nodiscard]] constexpr std::span<std::uint32_t const> offsets() const {
    return {offsets_, offsets_ == nullptr ? 0 : group_count_ + 1};
  }
  [[nodiscard]] constexpr std::span<std::uint32_t const> items() const {
    return {items_, item_count()};
  }

#if defined(__GNUC__) && __GNUC__ == 13
#pragma GCC diagnostic pop
#endif

 private:
  std::uint32_t const* offsets_ = nullptr;
  std::uint32_t const* items_ = nullptr;
  std::size_t group_count_ = 0;
};

/// A container of groups of sample indices. Indices are appended to one open group, which `close`
/// adds to the groups; before that the open group is not part of them. Empty groups are legal (a
/// rank without samples). The container is a random-access range of groups, each the span of its
/// indices. An object that has been moved from may only be assigned to or destroyed.
class grouping {
 public:
  using iterator = grouping_view::iterator;

  /// Creates an object without groups.
  grouping() : offsets_(1, 0) {}

  /// Creates groups from complete arrays, which the object then owns. Errors:
  /// `std::invalid_argument` unless `offsets` starts with zero, does not decrease and ends with the
  /// number of items; `std::length_error` above 2^32 - 1 items. Complexity: linear in the number of
  /// groups.
  grouping(std::vector<std::uint32_t> offsets, std::vector<std::uint32_t> items)
      : offsets_(std::move(offsets)), items_(std::move(items)) {
    detail::check_index_count("grouping", "items", items_.size());
    if (offsets_.empty() || offsets_.front() != 0) {
      detail::throw_invalid("grouping", "offsets must start with 0");
    }
    for (std::size_t g = 1; g < offsets_.size(); ++g) {
      if (offsets_[g] < offsets_[g - 1]) {
        detail::throw_invalid("grouping", "offsets[", g, "] is ", offsets_[g],
                              ", below the offset before it");
      }
    }
    if (offsets_.back() != items_.size()) {
      detail::throw_invalid("grouping", "the last offset is ", offsets_.back(),
                            ", must be the number of items, ", items_.size());
    }
  }

  /// Returns the number of groups without the open group.
  [[nodiscard]] std::size_t size() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Returns the number of indices in all groups without the open group.
  [[nodiscard]] std::size_t item_count() const noexcept { return offsets_.back(); }

  /// Returns the indices of one group. Precondition: `group < size()`. Spans, views and iterators
  /// are valid until this object changes or is destroyed. A temporary has no such members.
  [[nodiscard]] std::span<std::uint32_t const> operator[](std::size_t group) const& {
    return view()[group];
  }
  void operator[](std::size_t group) const&& = delete;

  [[nodiscard]] iterator begin() const& noexcept { return view().begin(); }
  [[nodiscard]] iterator end() const& noexcept { return view().end(); }
  void begin() const&& = delete;
  void end() const&& = delete;

  [[nodiscard]] std::span<std::uint32_t const> offsets() const& noexcept { return offsets_; }
  [[nodiscard]] std::span<std::uint32_t const> items() const& noexcept {
    return {items_.data(), item_count()};
  }
  void offsets() const&& = delete;
  void items() const&& = delete;

  /// Returns the indices that were pushed after the last `close`.
  [[nodiscard]] std::span<std::uint32_t const> open_group() const& noexcept {
    return std::span(items_).subspan(item_count());
  }
  void open_group() const&& = delete;

  /// Returns the same groups as a view.
  [[nodiscard]] grouping_view view() const& noexcept {
    return {offsets_.data(), items_.data(), size()};
  }
  operator grouping_view() const& noexcept { return view(); }
  void view() const&& = delete;
  operator grouping_view() const&& = delete;

  /// Appends an index to the open group. Errors: `std::length_error` at 2^32 - 1 items.
  void push(std::uint32_t item) {
    if (items_.size() == max_index_count) {
      detail::throw_length("grouping::push", "items", items_.size() + 1);
    }
    items_.push_back(item);
  }

  /// Closes the open group, empty or not: it becomes the last group.
  void close() { offsets_.push_back(static_cast<std::uint32_t>(items_.size())); }

  /// Removes all groups and the open group, and keeps the memory.
  void clear() noexcept {
    offsets_.resize(1);
    items_.clear();
  }

  /// Allocates memory for `groups` groups and `items` items. Later calls up to these numbers
  /// allocate nothing.
  void reserve(std::size_t groups, std::size_t items) {
    offsets_.reserve(groups + 1);
    items_.reserve(items);
  }

  [[nodiscard]] friend bool operator==(grouping const&, grouping const&) = default;

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> items_;
};

/// The type of a parameter for groups: it accepts a view or a grouping. The grouping may be a
/// temporary, because it lives until the call ends. Therefore the function must not store the
/// argument.
class groups_argument : public grouping_view {
 public:
  constexpr groups_argument(grouping_view groups) : grouping_view(groups) {}
  groups_argument(grouping const& groups) : grouping_view(groups.view()) {}
};

}  // namespace omnibal::inline v0
