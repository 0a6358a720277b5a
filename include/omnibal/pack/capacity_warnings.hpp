// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Warnings for capacities that are inefficient for the commonest demand.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// A warning that no two samples with the commonest demand of a resource fit one group.
template <scalar_measure T = std::int64_t>
struct capacity_warning {
  /// The index of the resource.
  std::size_t kind = 0;
  T capacity{};
  /// The commonest demand above zero of the resource, and the number of samples with this demand.
  T commonest{};
  std::size_t samples = 0;
  /// The nearest capacity of this resource that fits two such samples; the largest value of the
  /// type if no such capacity exists.
  T enough{};

  [[nodiscard]] friend bool operator==(capacity_warning const&, capacity_warning const&) = default;
};

namespace detail {

/// The properties of the demands of one resource that warnings and the choice of a capacity
/// require.
template <class T>
struct amount_profile {
  /// The commonest amount above zero, the largest among equally common amounts, and its number of
  /// samples; zero if there is none.
  T commonest{};
  std::size_t commonest_count = 0;
  /// The smallest capacity that excludes at most the permitted share of oversized samples.
  T reach{};
  /// The mean of the amounts up to `reach`.
  double mean = 0.0;
};

/// Returns the bit patterns of the amounts of resource `kind`, ascending. Precondition: no amount
/// is negative.
template <std::size_t R, class T>
[[nodiscard]] std::vector<std::uint64_t> sorted_words(std::span<resources<R, T> const> demands,
                                                      std::size_t kind) {
  std::vector<std::uint64_t> words(demands.size());
  std::vector<std::uint64_t> spare;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i != words.size(); ++i) {
    // Bit patterns of floating-point numbers increase with the numbers. The sum turns both zeros
    // into one pattern.
    words[i] = std::bit_cast<std::uint64_t>(static_cast<T>(demands[i][kind] + T{}));
    all |= words[i];
  }
  radix_sort(words, spare, 0, static_cast<unsigned>(std::bit_width(all)));
  return words;
}

/// Returns the profile of one resource. Precondition: there are demands, none of them negative;
/// `max_oversized` is in [0, 1].
template <std::size_t R, class T>
[[nodiscard]] amount_profile<T> profile_of(std::span<resources<R, T> const> demands,
                                           std::size_t kind, double max_oversized) {
  auto const words = sorted_words(demands, kind);
  auto const amount = [&words](std::size_t k) { return std::bit_cast<T>(words[k]); };
  amount_profile<T> result;
  for (std::size_t first = 0; first != words.size();) {
    T const value = amount(first);
    std::size_t last = first + 1;
    while (last != words.size() && words[last] == words[first]) ++last;
    if (value > T{} && last - first >= result.commonest_count) {
      result.commonest = value;
      result.commonest_count = last - first;
    }
    first = last;
  }
  auto const may_exceed =
      static_cast<std::size_t>(max_oversized * static_cast<double>(words.size()));
  std::size_t const within = std::max<std::size_t>(1, words.size() - may_exceed);
  result.reach = amount(within - 1);
  using sum_type = std::conditional_t<std::floating_point<T>, double, uint128>;
  sum_type sum{};
  for (std::size_t i = 0; i != within; ++i) sum += static_cast<sum_type>(amount(i));
  result.mean = static_cast<double>(sum) / static_cast<double>(within);
  return result;
}

/// Rounds `value` up to a multiple of `granularity`; returns `value` if `granularity` is zero. If
/// the next multiple exceeds the type, returns the largest multiple, which is below `value`.
template <class T>
[[nodiscard]] T next_multiple(T value, T granularity) {
  if (!(granularity > T{})) return value;
  if constexpr (std::floating_point<T>) {
    T const count = std::ceil(value / granularity);
    // From this count on, neighboring floating-point numbers are about a granularity or more apart.
    constexpr T exact_counts = T{1} / std::numeric_limits<T>::epsilon();
    if (!(count < exact_counts)) return value;
    // The quotient may have been rounded down to a whole number.
    return count * granularity < value ? (count + 1) * granularity : count * granularity;
  } else {
    T const rest = value % granularity;
    if (rest == 0) return value;
    T const missing = granularity - rest;
    return value > std::numeric_limits<T>::max() - missing ? value - rest : value + missing;
  }
}

/// Returns the sum of two equal demands, at most the largest value of the type.
template <class T>
[[nodiscard]] constexpr T twice(T value) {
  constexpr T most = std::numeric_limits<T>::max();
  return value > most / 2 ? most : value + value;
}

/// Returns the warnings for a capacity. A demand is common if at least `common_share` of the
/// samples have this demand.
template <std::size_t R, class T>
[[nodiscard]] std::vector<capacity_warning<T>> warnings_of(resources<R, T> const& capacity,
                                                           amount_profile<T> const (&profiles)[R],
                                                           std::size_t samples, double common_share,
                                                           resources<R, T> const& granularity) {
  std::vector<capacity_warning<T>> result;
  for (std::size_t r = 0; r != R; ++r) {
    T const commonest = profiles[r].commonest;
    std::size_t const count = profiles[r].commonest_count;
    bool const is_common =
        count != 0 && static_cast<double>(count) >= common_share * static_cast<double>(samples);
    if (!is_common || commonest <= capacity[r] - commonest) continue;
    T const two = twice(commonest);
    T const enough = next_multiple(two, granularity[r]);
    result.push_back(
        {r, capacity[r], commonest, count, enough < two ? std::numeric_limits<T>::max() : enough});
  }
  return result;
}

/// Returns the demands of all samples. Errors: the errors that every packer documents for demand
/// and samples.
template <std::size_t R, class T, class Samples, class Demand>
[[nodiscard]] std::vector<resources<R, T>> demands_of(std::string_view function,
                                                      Samples const& samples,
                                                      Demand const& demand) {
  check_index_count(function, "samples", std::ranges::size(samples));
  std::vector<resources<R, T>> demands(std::ranges::size(samples));
  for_each_demand<resources<R, T>>(function, samples, demand,
                                   [&](std::uint32_t index, resources<R, T> const& amounts) {
                                     check_demand(function, index, amounts);
                                     demands[index] = amounts;
                                   });
  return demands;
}

}  // namespace detail

struct capacity_warnings_fn {
  /// Returns a warning for each resource whose capacity does not fit two samples with the commonest
  /// demand. With such a capacity half of the groups stay below any threshold, with any packer. For
  /// example, under a capacity of 9 images and mostly samples of 5 the warning reports that 10
  /// would fit two.
  ///
  /// A demand is common if at least `common_share` of the samples have this demand; demands of zero
  /// do not count. Complexity: a radix sort for each resource. Memory: 8R + 16 bytes per sample.
  /// Determinism: portable. Errors: `std::invalid_argument` if a capacity is not positive, if a
  /// demand is negative or not finite, or if the share is not in [0, 1]; `std::length_error` if
  /// there are more than 2^32 - 1 samples.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] auto operator()(Samples const& samples, Demand const& demand,
                                Capacity const& capacity, double common_share = 0.1) const {
    constexpr std::size_t kinds = detail::kinds_of<Capacity>;
    using working = detail::working_weight_of<Samples, Demand, Capacity>;
    auto const limits =
        detail::checked_capacity<Samples, Demand, Capacity>("capacity_warnings", capacity);
    detail::check_share("capacity_warnings", "common_share", common_share);
    auto const demands = detail::demands_of<kinds, working>("capacity_warnings", samples, demand);
    detail::amount_profile<working> profiles[kinds];
    for (std::size_t r = 0; r != kinds && !demands.empty(); ++r) {
      profiles[r] = detail::profile_of(std::span<resources<kinds, working> const>(demands), r, 0.0);
    }
    return detail::warnings_of(limits, profiles, demands.size(), common_share, {});
  }
};

/// Returns warnings for capacities that are inefficient for the commonest demand; see
/// `capacity_warnings_fn`.
inline constexpr capacity_warnings_fn capacity_warnings{};

}  // namespace omnibal::inline v0
