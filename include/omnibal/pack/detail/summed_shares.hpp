// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One kind of demand in place of several.

#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The sum of the shares that amounts require of all capacities, each rounded down to 2^-24.
/// Amounts that fit together have sums that fit `whole()` together. The method is surrogate
/// relaxation (Glover, 1968).
template <std::size_t R>
class summed_shares {
 public:
  explicit constexpr summed_shares(resources<R> const& capacity) {
    for (std::size_t r = 0; r != R; ++r) scales_[r] = share_scale<std::int64_t>(capacity[r]);
    whole_ = (*this)(capacity);
  }

  [[nodiscard]] constexpr std::int64_t whole() const { return whole_; }

  [[nodiscard]] constexpr std::int64_t operator()(resources<R> const& amounts) const {
    std::int64_t sum = 0;
    for (std::size_t r = 0; r != R; ++r) sum += scales_[r](amounts[r]);
    return sum;
  }

 private:
  share_scale<std::int64_t> scales_[R];
  std::int64_t whole_ = 0;
};

}  // namespace omnibal::inline v0::detail
