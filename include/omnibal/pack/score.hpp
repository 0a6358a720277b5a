#pragma once

/// \file
/// What makes a sample large, and which of the groups that it fits is the best.

#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0 {

/// What makes one sample larger than another.
enum class size_measure {
  sum_of_shares,  ///< the shares of the capacity that it takes, summed over the resources
  largest_share,  ///< the largest of these shares
};

/// A functor (left, demand) to a weight: how bad it is that a group has `left` of its capacity once
/// a sample with this demand is in it. The least score wins. Where more is left of any resource and
/// less of none, the score must not be lower.
template <class Score, class Amounts>
concept fit_score = std::regular_invocable<Score const&, Amounts const&, Amounts const&> &&
    weight<std::remove_cvref_t<std::invoke_result_t<Score const&, Amounts const&, Amounts const&>>>;

/// The default score: the shares of the capacity that are left, summed over the resources.
///
/// Determinism: portable for integers, whose shares are in fixed point.
template <std::size_t R, class T>
class least_slack {
 public:
  explicit constexpr least_slack(resources<R, T> const& capacity) : share_(capacity) {}

  [[nodiscard]] constexpr std::uint64_t operator()(resources<R, T> const& left,
                                                   resources<R, T> const& /*demand*/) const {
    return share_.sum(left);
  }

 private:
  detail::capacity_shares<R, T> share_;
};

}  // namespace omnibal::inline v0
