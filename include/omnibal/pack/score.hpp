// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Measures of the size of a sample, and scores of the groups that it fits.

#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
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

  /// Returns the share of the capacity of resource `kind` for `amount`, which is at most the
  /// capacity.
  [[nodiscard]] constexpr std::uint64_t operator()(T amount, std::size_t kind) const {
    if constexpr (std::floating_point<T>) {
      // A division, because the reciprocal of a tiny capacity is not finite.
      return static_cast<std::uint64_t>(amount / scale_[kind] * static_cast<double>(half));
    } else {
      return static_cast<std::uint64_t>(amount) * scale_[kind];
    }
  }

  /// Returns the sum of the shares of all resources.
  [[nodiscard]] constexpr std::uint64_t sum(resources<R, T> const& amounts) const {
    std::uint64_t result = 0;
    for (std::size_t r = 0; r != R; ++r) result += (*this)(amounts[r], r);
    return result;
  }

 private:
  using scale_type = std::conditional_t<std::floating_point<T>, double, std::uint64_t>;

  static constexpr std::uint64_t whole = (std::uint64_t{1} << 63) / R;
  static constexpr std::uint64_t half = whole / 2;

  /// The capacity itself for floating-point amounts, otherwise the share of one unit.
  scale_type scale_[R] = {};
};

/// Maps amounts from zero to a capacity proportionally to integers from zero to `whole`. Any
/// capacity is valid: with a capacity of zero, the amount is zero.
template <class T>
class share_scale {
 public:
  static constexpr std::uint32_t whole = 1u << 24;

  share_scale() = default;
  explicit constexpr share_scale(T capacity) {
    if constexpr (std::floating_point<T>) {
      scale_ = capacity > 0 ? capacity : T{1};
    } else {
      auto const limit = static_cast<std::uint64_t>(capacity);
      shift_ = std::max(kept_bits, static_cast<unsigned>(std::bit_width(limit))) - kept_bits;
      scale_ = (std::uint64_t{whole} << kept_bits) / std::max<std::uint64_t>(1, limit >> shift_);
    }
  }

  [[nodiscard]] constexpr std::uint32_t operator()(T amount) const {
    if constexpr (std::floating_point<T>) {
      return static_cast<std::uint32_t>(amount / scale_ * whole);
    } else {
      std::uint64_t const kept = static_cast<std::uint64_t>(amount) >> shift_;
      return static_cast<std::uint32_t>(kept * scale_ >> kept_bits);
    }
  }

 private:
  using scale_type = std::conditional_t<std::floating_point<T>, double, std::uint64_t>;

  static constexpr unsigned kept_bits = 31;

  scale_type scale_ = 1;
  unsigned shift_ = 0;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// The measure by which one sample is larger than another.
enum class size_measure {
  sum_of_shares,  ///< the used shares of the capacity, summed over the resources
  largest_share,  ///< the largest of these shares
};

/// A functor (left, demand) to a weight: the badness of a group that has `left` of its capacity
/// after a sample with this demand is added. The least score wins. If more is left of any resource
/// and less of none, the score must not be lower.
template <class Score, class Amounts>
concept fit_score =
    std::regular_invocable<Score const&, Amounts const&, Amounts const&> && scalar_measure<
        std::remove_cvref_t<std::invoke_result_t<Score const&, Amounts const&, Amounts const&>>>;

/// The default score: the remaining shares of the capacity, summed over the resources.
///
/// Determinism: portable for integers, because their shares are in fixed point.
template <std::size_t R, class T>
class min_slack {
 public:
  explicit constexpr min_slack(resources<R, T> const& capacity) : share_(capacity) {}

  [[nodiscard]] constexpr std::uint64_t operator()(resources<R, T> const& left,
                                                   resources<R, T> const& /*demand*/) const {
    return share_.sum(left);
  }

 private:
  detail::capacity_shares<R, T> share_;
};

}  // namespace omnibal::inline v0
