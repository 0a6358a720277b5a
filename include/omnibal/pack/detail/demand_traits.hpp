#pragma once

/// \file
/// A summary of demands.

#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// What the lookup of groups needs to know of the demands.
template <std::size_t R, class T>
struct demand_traits {
  /// The smallest demand of each resource.
  resources<R, T> smallest;
  /// False for a resource of which one group has enough for all samples.
  bool binds[R];
  /// Of the resources that bind, that in which the demands differ most often, judged by at most
  /// 1024 of them; the last of those that are equal in this.
  std::size_t finest;
};

/// Precondition: there are demands.
template <std::size_t R, class T, class Layout, class Demands>
[[nodiscard]] demand_traits<R, T> traits_of(Layout const& layout, Demands const& demands,
                                            resources<R, T> const& capacity) {
  using sum_type = std::conditional_t<std::floating_point<T>, double, uint128>;
  demand_traits<R, T> result{capacity, {}, R - 1};
  sum_type sums[R] = {};
  for (auto const& demand : demands) {
    for (std::size_t r = 0; r != R; ++r) {
      T const amount = layout.amount(demand, r);
      result.smallest[r] = std::min(result.smallest[r], amount);
      sums[r] += static_cast<sum_type>(amount);
    }
  }
  std::size_t const count = std::min<std::size_t>(1024, demands.size());
  std::size_t most_values = 0;
  for (std::size_t r = R; r-- != 0;) {
    result.binds[r] = sums[r] > static_cast<sum_type>(capacity[r]);
    if (!result.binds[r]) continue;
    std::vector<T> values(count);
    for (std::size_t k = 0; k != count; ++k) {
      values[k] = layout.amount(demands[k * demands.size() / count], r);
    }
    std::sort(values.begin(), values.end());
    auto const distinct =
        static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
    if (distinct > most_values) {
      most_values = distinct;
      result.finest = r;
    }
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
