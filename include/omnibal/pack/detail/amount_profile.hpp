#pragma once

/// \file
/// What the choice of a capacity needs to know of the demands of one resource.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

template <class T>
struct amount_profile {
  /// The commonest amount above zero, of equally common ones the largest, and how many have it;
  /// zero where there is none.
  T commonest{};
  std::size_t commonest_count = 0;
  /// The smallest capacity that leaves out no more than the share that may be oversized.
  T reach{};
  /// The mean of the amounts up to `reach`.
  double mean = 0.0;
};

/// The amounts of resource `kind`, ascending. Precondition: they are not negative.
template <std::size_t R, class T>
[[nodiscard]] std::vector<T> sorted_amounts(std::span<resources<R, T> const> demands,
                                            std::size_t kind) {
  std::vector<T> amounts(demands.size());
  for (std::size_t i = 0; i != amounts.size(); ++i) amounts[i] = demands[i][kind];
  if constexpr (std::floating_point<T>) {
    std::sort(amounts.begin(), amounts.end());
  } else {
    std::vector<std::uint64_t> words(amounts.begin(), amounts.end());
    std::vector<std::uint64_t> spare;
    std::uint64_t all = 0;
    for (std::uint64_t const word : words) all |= word;
    radix_sort(words, spare, 0, static_cast<unsigned>(std::bit_width(all)));
    std::copy(words.begin(), words.end(), amounts.begin());
  }
  return amounts;
}

/// Precondition: there are demands, none of them negative; `most_oversized` is in [0, 1].
template <std::size_t R, class T>
[[nodiscard]] amount_profile<T> profile_of(std::span<resources<R, T> const> demands,
                                           std::size_t kind, double most_oversized) {
  auto const amounts = sorted_amounts(demands, kind);
  amount_profile<T> result;
  for (std::size_t first = 0; first != amounts.size();) {
    auto const value = amounts[first];
    std::size_t last = first + 1;
    while (last != amounts.size() && amounts[last] == value) ++last;
    if (value > T{} && last - first >= result.commonest_count) {
      result.commonest = value;
      result.commonest_count = last - first;
    }
    first = last;
  }
  auto const may_exceed =
      static_cast<std::size_t>(most_oversized * static_cast<double>(amounts.size()));
  std::size_t const within = std::max<std::size_t>(1, amounts.size() - may_exceed);
  result.reach = amounts[within - 1];
  using sum_type = std::conditional_t<std::floating_point<T>, double, uint128>;
  sum_type sum{};
  for (std::size_t i = 0; i != within; ++i) sum += static_cast<sum_type>(amounts[i]);
  result.mean = static_cast<double>(sum) / static_cast<double>(within);
  return result;
}

}  // namespace omnibal::inline v0::detail
