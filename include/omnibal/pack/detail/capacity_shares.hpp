#pragma once

/// \file
/// Amounts of different resources made comparable.

#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// Shares of a capacity in fixed point: the shares of all resources add up to at most 2^63.
template <std::size_t R, class T>
class capacity_shares {
 public:
  explicit constexpr capacity_shares(resources<R, T> const& capacity) {
    for (std::size_t r = 0; r != R; ++r) {
      if constexpr (std::floating_point<T>) {
        scale_[r] = capacity[r];
      } else {
        scale_[r] = whole / static_cast<std::uint64_t>(capacity[r]);
      }
    }
  }

  /// The share of the capacity that `amount`, at most the capacity, is of resource `kind`.
  [[nodiscard]] constexpr std::uint64_t operator()(T amount, std::size_t kind) const {
    if constexpr (std::floating_point<T>) {
      // Divided and not multiplied: the reciprocal of a tiny capacity is not finite.
      return static_cast<std::uint64_t>(amount / scale_[kind] * static_cast<double>(half));
    } else {
      return static_cast<std::uint64_t>(amount) * scale_[kind];
    }
  }

 private:
  using scale_type = std::conditional_t<std::floating_point<T>, double, std::uint64_t>;

  static constexpr std::uint64_t whole = (std::uint64_t{1} << 63) / R;
  static constexpr std::uint64_t half = whole / 2;

  /// The capacity itself for floating-point amounts, else the share of one.
  scale_type scale_[R] = {};
};

}  // namespace omnibal::inline v0::detail
