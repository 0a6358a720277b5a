// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The quantization of rooms in one resource.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The quantization of the room in one resource to levels 0 .. count() - 1, which rise with the
/// room.
template <class T>
class quantized_axis {
 public:
  quantized_axis() = default;
  quantized_axis(T capacity, std::size_t most) {
    if constexpr (std::floating_point<T>) {
      count_ = most;
      capacity_ = capacity;
    } else {
      while ((static_cast<std::uint64_t>(capacity) >> shift_) >= most) ++shift_;
      count_ = static_cast<std::size_t>(static_cast<std::uint64_t>(capacity) >> shift_) + 1;
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }

  [[nodiscard]] std::size_t operator()(T room) const {
    if constexpr (std::floating_point<T>) {
      double const level = std::max(0.0, room / capacity_) * static_cast<double>(count_);
      return std::min(count_ - 1, static_cast<std::size_t>(level));
    } else {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(room) >> shift_);
    }
  }

  /// Returns a room that is not above any room of this level.
  [[nodiscard]] T least(std::size_t level) const {
    if constexpr (std::floating_point<T>) {
      return level == 0
                 ? T{0}
                 : (static_cast<double>(level) - 0.5) / static_cast<double>(count_) * capacity_;
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(level) << shift_);
    }
  }

 private:
  std::size_t count_ = 1;
  unsigned shift_ = 0;
  double capacity_ = 1;
};

}  // namespace omnibal::inline v0::detail
