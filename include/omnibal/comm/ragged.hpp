// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Rows of different lengths in one array.

#include <omnibal/check.hpp>
#include <omnibal/detail/place_iterator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// Rows of trivially copyable values in compressed sparse row form, with 64-bit offsets: the values
/// of each rank, or payloads of different sizes. A `ragged` is a sized random-access range whose
/// elements are spans. A moved-from object may only be assigned to or destroyed.
template <class T>
class ragged {
  static_assert(std::is_trivially_copyable_v<T>, "rows are copied as bytes");

 public:
  /// An iterator over the rows. It returns a span by value instead of a reference.
  using iterator = detail::place_iterator<detail::sequence_ref<ragged>>;

  /// Creates an object without rows.
  ragged() : offsets_(1, 0) {}

  /// Creates rows from existing arrays, which the object then owns. Errors: `std::invalid_argument`
  /// unless `offsets` starts with zero, does not decrease and ends with the number of values.
  ragged(std::vector<std::uint64_t> offsets, std::vector<T> values)
      : offsets_(std::move(offsets)), values_(std::move(values)) {
    if (offsets_.empty() || offsets_.front() != 0 || offsets_.back() != values_.size() ||
        !std::is_sorted(offsets_.begin(), offsets_.end())) {
      detail::throw_invalid(
          "ragged", "offsets must start with 0, not decrease and end with the number of values");
    }
  }

  /// Returns the number of rows.
  [[nodiscard]] std::size_t size() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Returns one row. Precondition: `row < size()`. Spans and iterators are valid during the
  /// lifetime of this object; a temporary has no such members.
  [[nodiscard]] std::span<T const> operator[](std::size_t row) const& {
    return values().subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
  }
  [[nodiscard]] std::span<T> operator[](std::size_t row) & {
    return values().subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
  }
  void operator[](std::size_t row) const&& = delete;

  [[nodiscard]] iterator begin() const& { return {detail::sequence_ref(*this), 0}; }
  [[nodiscard]] iterator end() const& { return {detail::sequence_ref(*this), size()}; }
  void begin() const&& = delete;
  void end() const&& = delete;

  [[nodiscard]] std::span<std::uint64_t const> offsets() const& noexcept { return offsets_; }
  [[nodiscard]] std::span<T const> values() const& noexcept { return values_; }
  [[nodiscard]] std::span<T> values() & noexcept { return values_; }
  void offsets() const&& = delete;
  void values() const&& = delete;

  /// Appends a row.
  void push(std::span<T const> row) {
    values_.insert(values_.end(), row.begin(), row.end());
    offsets_.push_back(values_.size());
  }

  /// Removes all rows and keeps the memory.
  void clear() noexcept {
    offsets_.resize(1);
    values_.clear();
  }

  /// Replaces all rows by rows of these lengths, whose values the caller must write. Allocates only
  /// if all earlier calls had fewer rows or values. Errors: `std::overflow_error` if the sum of the
  /// lengths exceeds 64 bits.
  void shape(std::span<std::uint64_t const> lengths) {
    offsets_.resize(1);
    offsets_.reserve(lengths.size() + 1);
    std::uint64_t sum = 0;
    for (std::uint64_t const length : lengths) {
      detail::checked_add("ragged::shape", "the sum of the lengths", sum, length);
      offsets_.push_back(sum);
    }
    values_.resize(sum);
  }

  [[nodiscard]] friend bool operator==(ragged const&, ragged const&) = default;

 private:
  std::vector<std::uint64_t> offsets_;
  std::vector<T> values_;
};

}  // namespace omnibal::inline v0
