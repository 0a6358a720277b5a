#pragma once

/// \file
/// The samples that a rank takes in a step.

#include <omnibal/detail/place_iterator.hpp>
#include <omnibal/sample/detail/epoch_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

namespace detail {
class epoch_plan;
}

/// The indices of the samples that a rank takes in a step: a random-access range that computes them
/// when they are asked for and allocates nothing. It depends on no sampler. Its iterators are valid
/// as long as the batch.
class sample_batch {
 public:
  using iterator = detail::place_iterator<detail::sequence_ref<sample_batch>>;

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

  [[nodiscard]] constexpr iterator begin() const& { return {detail::sequence_ref(*this), 0}; }
  [[nodiscard]] constexpr iterator end() const& { return {detail::sequence_ref(*this), size_}; }
  void begin() const&& = delete;
  void end() const&& = delete;

 private:
  friend class detail::epoch_plan;

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

}  // namespace omnibal::inline v0
