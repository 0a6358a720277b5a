#pragma once

/// \file
/// Rooms at a limited resolution.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Maps the room in one resource to levels 0 .. count() - 1, which rise with it.
template <class T>
class room_levels {
 public:
  room_levels() = default;
  room_levels(T capacity, std::size_t most) {
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

  /// A room that is not above any room of this level.
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
