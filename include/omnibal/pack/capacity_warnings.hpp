#pragma once

/// \file
/// Capacities that the commonest demand makes hopeless.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
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

/// No two samples with the commonest demand of a resource fit one group.
template <weight T = std::int64_t>
struct capacity_warning {
  /// Which resource.
  std::size_t kind = 0;
  T capacity{};
  /// The commonest demand of it above zero, and how many samples have it.
  T commonest{};
  std::size_t samples = 0;
  /// The nearest capacity of this resource at which two of them fit; the largest value of the type
  /// where there is none.
  T enough{};

  [[nodiscard]] friend bool operator==(capacity_warning const&, capacity_warning const&) = default;
};

namespace detail {

/// What warnings and the choice of a capacity need to know of the demands of one resource.
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

/// The words of the amounts of resource `kind`, ascending. Precondition: none is negative.
template <std::size_t R, class T>
[[nodiscard]] std::vector<std::uint64_t> sorted_words(std::span<resources<R, T> const> demands,
                                                      std::size_t kind) {
  std::vector<std::uint64_t> words(demands.size());
  std::vector<std::uint64_t> spare;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i != words.size(); ++i) {
    // The words of floating-point numbers rise with them. Of the two zeros the sum is one.
    words[i] = std::bit_cast<std::uint64_t>(static_cast<T>(demands[i][kind] + T{}));
    all |= words[i];
  }
  radix_sort(words, spare, 0, static_cast<unsigned>(std::bit_width(all)));
  return words;
}

/// Precondition: there are demands, none of them negative; `most_oversized` is in [0, 1].
template <std::size_t R, class T>
[[nodiscard]] amount_profile<T> profile_of(std::span<resources<R, T> const> demands,
                                           std::size_t kind, double most_oversized) {
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
      static_cast<std::size_t>(most_oversized * static_cast<double>(words.size()));
  std::size_t const within = std::max<std::size_t>(1, words.size() - may_exceed);
  result.reach = amount(within - 1);
  using sum_type = std::conditional_t<std::floating_point<T>, double, uint128>;
  sum_type sum{};
  for (std::size_t i = 0; i != within; ++i) sum += static_cast<sum_type>(amount(i));
  result.mean = static_cast<double>(sum) / static_cast<double>(within);
  return result;
}

/// `value` as the next multiple of `granularity`, or as it is where that is zero; the largest
/// multiple, which is below the value, where the next leaves the type.
template <class T>
[[nodiscard]] T next_multiple(T value, T granularity) {
  if (!(granularity > T{})) return value;
  if constexpr (std::floating_point<T>) {
    T const count = std::ceil(value / granularity);
    // From there on every amount is as good as a multiple.
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

/// The sum of two demands, at most the largest value of the type.
template <class T>
[[nodiscard]] constexpr T twice(T value) {
  constexpr T most = std::numeric_limits<T>::max();
  return value > most / 2 ? most : value + value;
}

/// The warnings for a capacity; a demand is common where at least `common_share` of the samples
/// have it.
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

/// The demands of all samples. Errors: those that every packer documents for demand and samples.
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
  /// A warning for each resource of which the capacity holds no two samples with the commonest
  /// demand: half of the groups stay below any threshold then, whatever the packer. With 9 images
  /// and mostly samples of 5 the warning says that 10 would hold two.
  ///
  /// A demand counts as common where at least `common_share` of the samples have it; demands of
  /// zero do not count. Complexity: that of a radix sort for each resource. Memory: 8R + 16 bytes
  /// per sample. Determinism: portable. Errors: `std::invalid_argument` for a capacity that is not
  /// positive, a demand that is negative or not finite and a share that is not in [0, 1];
  /// `std::length_error` above 2^32 - 1 samples.
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

/// Capacities that the commonest demand makes hopeless; see `capacity_warnings_fn`.
inline constexpr capacity_warnings_fn capacity_warnings{};

}  // namespace omnibal::inline v0
