#pragma once

/// \file
/// Resources with the finest first.

#include <omnibal/resources.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The order in which the resource with the largest capacity, of equal ones the last, comes first
/// and the others follow as they are.
template <std::size_t R, class T>
class resource_order {
 public:
  using amounts_type = resources<R, T>;

  explicit constexpr resource_order(amounts_type const& capacity) {
    for (std::uint32_t r = 1; r != R; ++r) {
      kinds_[0] = capacity[r] >= capacity[kinds_[0]] ? r : kinds_[0];
    }
    for (std::uint32_t r = 1; r != R; ++r) kinds_[r] = r <= kinds_[0] ? r - 1 : r;
  }

  [[nodiscard]] constexpr amounts_type ordered(amounts_type const& amounts) const {
    amounts_type result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = amounts[kinds_[r]];
    return result;
  }

  /// The inverse.
  [[nodiscard]] constexpr amounts_type restored(amounts_type const& amounts) const {
    amounts_type result{};
    for (std::size_t r = 0; r != R; ++r) result[kinds_[r]] = amounts[r];
    return result;
  }

 private:
  std::array<std::uint32_t, R> kinds_{};
};

}  // namespace omnibal::inline v0::detail
