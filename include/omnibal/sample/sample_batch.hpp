#pragma once

/// \file
/// The samples that a rank takes in a step.

#include <omnibal/sample/detail/epoch_order.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace omnibal::inline v0 {

class epoch_sampler;

/// The indices of the samples that a rank takes in a step: a random-access range that computes them
/// when they are asked for and allocates nothing. It depends on no sampler. Its iterators are valid
/// as long as the batch.
class sample_batch {
 public:
  class iterator;

  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }

  /// Precondition: `i < size()`.
  [[nodiscard]] constexpr std::uint64_t operator[](std::size_t i) const {
    std::uint64_t const position = first_ + i * stride_;
    return order_(position < order_.size() ? position : position % order_.size());
  }

  /// How many of the samples, the last ones, are repetitions that fill the step.
  [[nodiscard]] constexpr std::size_t repeated() const {
    if (first_ >= order_.size()) return size_;
    std::uint64_t const new_samples = (order_.size() - first_ + stride_ - 1) / stride_;
    return size_ - static_cast<std::size_t>(std::min<std::uint64_t>(size_, new_samples));
  }

  [[nodiscard]] constexpr iterator begin() const;
  [[nodiscard]] constexpr iterator end() const;

 private:
  friend class epoch_sampler;

  /// Every `stride`-th sample of the order from position `first` on, `size` of them; positions at
  /// and beyond the end of the order start again at its begin.
  constexpr sample_batch(detail::epoch_order const& order, std::uint64_t first,
                         std::uint64_t stride, std::size_t size)
      : order_(order), first_(first), stride_(stride), size_(size) {}

  detail::epoch_order order_;
  std::uint64_t first_;
  std::uint64_t stride_;
  std::size_t size_;
};

/// A random-access iterator over the samples of a batch.
class sample_batch::iterator {
 public:
  using value_type = std::uint64_t;
  using difference_type = std::ptrdiff_t;
  using reference = std::uint64_t;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::random_access_iterator_tag;

  iterator() = default;
  constexpr iterator(sample_batch const& batch, difference_type place)
      : batch_(&batch), place_(place) {}

  [[nodiscard]] constexpr std::uint64_t operator*() const { return (*this)[0]; }
  [[nodiscard]] constexpr std::uint64_t operator[](difference_type offset) const {
    return (*batch_)[static_cast<std::size_t>(place_ + offset)];
  }

  constexpr iterator& operator+=(difference_type offset) {
    place_ += offset;
    return *this;
  }
  constexpr iterator& operator-=(difference_type offset) { return *this += -offset; }
  constexpr iterator& operator++() { return *this += 1; }
  constexpr iterator& operator--() { return *this -= 1; }
  constexpr iterator operator++(int) {
    iterator const before = *this;
    ++*this;
    return before;
  }
  constexpr iterator operator--(int) {
    iterator const before = *this;
    --*this;
    return before;
  }

  [[nodiscard]] friend constexpr iterator operator+(iterator left, difference_type offset) {
    return left += offset;
  }
  [[nodiscard]] friend constexpr iterator operator+(difference_type offset, iterator right) {
    return right += offset;
  }
  [[nodiscard]] friend constexpr iterator operator-(iterator left, difference_type offset) {
    return left -= offset;
  }
  [[nodiscard]] friend constexpr difference_type operator-(iterator const& left,
                                                           iterator const& right) {
    return left.place_ - right.place_;
  }
  [[nodiscard]] friend constexpr bool operator==(iterator const& left, iterator const& right) {
    return left.place_ == right.place_;
  }
  [[nodiscard]] friend constexpr std::strong_ordering operator<=>(iterator const& left,
                                                                  iterator const& right) {
    return left.place_ <=> right.place_;
  }

 private:
  sample_batch const* batch_ = nullptr;
  difference_type place_ = 0;
};

constexpr sample_batch::iterator sample_batch::begin() const { return {*this, 0}; }
constexpr sample_batch::iterator sample_batch::end() const {
  return {*this, static_cast<std::ptrdiff_t>(size_)};
}

}  // namespace omnibal::inline v0
