#pragma once

/// \file
/// How even and how full: pad ratio, dist ratio, imbalance, utilisation. How random: step overlap.
/// What long contexts cost: attention balance, communication ratio.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/sample_at.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/hierarchy_metrics.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/step_overlap.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// The largest, the sum and the number of some weights.
template <class T>
struct spread {
  T largest{};
  T sum{};
  std::size_t count = 0;

  constexpr void add(std::string_view function, std::string_view name, T value) {
    check_weight(function, name, count, value);
    checked_add(function, "the sum over all of them", sum, value);
    largest = std::max(largest, value);
    ++count;
  }

  /// Zero for no weights.
  [[nodiscard]] constexpr double mean() const {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  }

  /// 1 - mean / largest, the share of time in which the others wait for the largest.
  [[nodiscard]] constexpr double idle_share() const {
    if (!(largest > T{0})) return 0.0;
    if constexpr (std::integral<T>) {
      auto const missing =
          static_cast<int128>(largest) * static_cast<int128>(count) - static_cast<int128>(sum);
      return static_cast<double>(missing) /
             (static_cast<double>(largest) * static_cast<double>(count));
    } else {
      // Not by largest * count, which may exceed the type where the sum does not.
      return std::max(0.0, largest - mean()) / largest;
    }
  }
};

template <class Range>
using amount_of = std::remove_cvref_t<std::ranges::range_reference_t<Range const>>;

/// A ratio per resource: `double` for weights, `resources<R, double>` for resources.
template <class Amount>
struct ratio {
  using type = double;
};
template <std::size_t R, class T>
struct ratio<resources<R, T>> {
  using type = resources<R, double>;
};
template <class Amount>
using ratio_of = typename ratio<Amount>::type;

template <class Amount>
using working_of = working_weight<typename weight_of<Amount>::type>;

/// `ratios` as a `double` for one weight, as they are for resources.
template <class Amount>
[[nodiscard]] constexpr ratio_of<Amount> to_ratio(
    resources<kinds_of<Amount>, double> const& ratios) {
  if constexpr (weight<Amount>) {
    return ratios[0];
  } else {
    return ratios;
  }
}

/// `ratio(spread, r)` of the amounts of each resource r in a range.
template <class Range, class Ratio>
[[nodiscard]] constexpr ratio_of<amount_of<Range>> for_each_resource(std::string_view function,
                                                                     std::string_view name,
                                                                     Range const& range,
                                                                     Ratio const& ratio) {
  using working = working_of<amount_of<Range>>;
  constexpr std::size_t kinds = kinds_of<amount_of<Range>>;
  spread<working> all[kinds];
  std::size_t index = 0;
  for (auto const& element : range) {
    auto const amounts = to_resources<working>({function, name, index++}, element);
    for (std::size_t r = 0; r != kinds; ++r) all[r].add(function, name, amounts[r]);
  }
  resources<kinds, double> result{};
  for (std::size_t r = 0; r != kinds; ++r) result[r] = ratio(all[r], r);
  return to_ratio<amount_of<Range>>(result);
}

}  // namespace detail

/// A range of weights or of resources.
template <class Range>
concept amount_range = std::ranges::input_range<Range const> && amount<detail::amount_of<Range>>;

struct pad_ratio_fn {
  /// The share of a padded batch that is padding: sum(longest - length_i) / (longest * count).
  /// Zero for no samples and where all lengths are zero.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a length that is negative or not finite, `std::overflow_error` for
  /// a sum above its type. Source: Yao et al., OmniBal, ICML 2025.
  template <amount_range Lengths>
    requires weight<detail::amount_of<Lengths>>
  [[nodiscard]] constexpr double operator()(Lengths const& lengths) const {
    detail::spread<detail::working_of<detail::amount_of<Lengths>>> batch;
    std::size_t index = 0;
    for (auto const& length : lengths) {
      batch.add("pad_ratio", "length",
                detail::to_working<detail::working_of<detail::amount_of<Lengths>>>(
                    {"pad_ratio", "length", index++}, length));
    }
    return batch.idle_share();
  }

  /// The mean of the pad ratio over the groups that have samples, each padded to its longest
  /// sample. `length` measures a sample. Errors as above, and `std::invalid_argument` for an index
  /// that is not in `samples`. Complexity: linear. Allocates nothing.
  template <sample_range Samples, class Length = std::identity>
    requires cost_function<Length, sample_reference<Samples>>
  [[nodiscard]] constexpr double operator()(groups_argument groups, Samples const& samples,
                                            Length const& length = {}) const {
    using working = detail::working_of<demand_result<Length, sample_reference<Samples>>>;
    double sum = 0.0;
    std::size_t batches = 0;
    for (std::size_t g = 0; g != groups.size(); ++g) {
      detail::spread<working> batch;
      for (std::uint32_t const item : groups[g]) {
        auto&& sample = detail::sample_at("pad_ratio", samples, g, item);
        batch.add("pad_ratio", "length",
                  detail::to_working<working>({"pad_ratio", "length", item},
                                              std::invoke(length, sample)));
      }
      if (batch.count == 0) continue;
      sum += batch.idle_share();
      ++batches;
    }
    return batches == 0 ? 0.0 : sum / static_cast<double>(batches);
  }
};

/// The pad ratio of a batch or of groups; see `pad_ratio_fn`.
inline constexpr pad_ratio_fn pad_ratio{};

struct dist_ratio_fn {
  /// The share of a step in which data-parallel ranks wait for the slowest: sum(largest - total_i)
  /// / (largest * ranks) = 1 - mean / largest over the totals of the ranks, for each resource by
  /// itself. Zero where all totals are zero.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a total that is negative or not finite, `std::overflow_error` for
  /// a sum above its type. Source: Yao et al., OmniBal, ICML 2025.
  template <amount_range Totals>
  [[nodiscard]] constexpr auto operator()(Totals const& totals) const
      -> detail::ratio_of<detail::amount_of<Totals>> {
    return detail::for_each_resource(
        "dist_ratio", "total", totals,
        [](auto const& ranks, std::size_t) { return ranks.idle_share(); });
  }

  /// The mean of the dist ratio over all steps of a schedule, for each resource by itself. The
  /// total of a rank is the sum of the loads of its groups in that step; a rank without groups
  /// waits the whole step. `loads` has the load of each group that the schedule names.
  ///
  /// Complexity: linear in the cells and group indices. Allocates nothing. Errors as above, and
  /// `std::invalid_argument` for a group index without a load.
  template <amount_range GroupLoads>
    requires sample_range<GroupLoads>
  [[nodiscard]] constexpr auto operator()(steps const& schedule, GroupLoads const& loads) const
      -> detail::ratio_of<detail::amount_of<GroupLoads>> {
    using load_type = detail::amount_of<GroupLoads>;
    using working = detail::working_of<load_type>;
    constexpr std::size_t kinds = detail::kinds_of<load_type>;
    auto const first = std::ranges::begin(loads);
    resources<kinds, double> sum{};
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      detail::spread<working> ranks[kinds];
      for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
        resources<kinds, working> total{};
        for (std::uint32_t const group : schedule(step, rank)) {
          if (group >= std::ranges::size(loads)) {
            detail::throw_invalid("dist_ratio", "loads has none for group " +
                                                    detail::to_text(group) + " of step " +
                                                    detail::to_text(step));
          }
          auto const load = detail::to_resources<working>(
              {"dist_ratio", "loads", group},
              first[static_cast<std::ranges::range_difference_t<GroupLoads const>>(group)]);
          for (std::size_t r = 0; r != kinds; ++r) {
            detail::check_weight("dist_ratio", "loads", group, load[r]);
            detail::checked_add("dist_ratio", "the total of a rank", total[r], load[r]);
          }
        }
        for (std::size_t r = 0; r != kinds; ++r) ranks[r].add("dist_ratio", "total", total[r]);
      }
      for (std::size_t r = 0; r != kinds; ++r) sum[r] += ranks[r].idle_share();
    }
    if (!schedule.empty()) {
      for (double& value : sum.amounts) value /= static_cast<double>(schedule.size());
    }
    return detail::to_ratio<load_type>(sum);
  }
};

/// The dist ratio of one step or of a schedule; see `dist_ratio_fn`.
inline constexpr dist_ratio_fn dist_ratio{};

struct imbalance_fn {
  /// The largest load over the mean load, for each resource by itself: 1 where all are equal, the
  /// number of loads where one has all. One for no loads and where all are zero.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a load that is negative or not finite, `std::overflow_error` for a
  /// sum above its type.
  template <amount_range Loads>
  [[nodiscard]] constexpr auto operator()(Loads const& loads) const
      -> detail::ratio_of<detail::amount_of<Loads>> {
    return detail::for_each_resource("imbalance", "load", loads, [](auto const& all, std::size_t) {
      double const mean = all.mean();
      return mean > 0.0 ? static_cast<double>(all.largest) / mean : 1.0;
    });
  }
};

/// The largest load over the mean; see `imbalance_fn`.
inline constexpr imbalance_fn imbalance{};

struct utilisation_fn {
  /// The share of the capacity that is used: the sum of the loads over capacity * number of loads,
  /// for each resource by itself. Measured with the true demand it shows what rounding wastes. Zero
  /// for no loads.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a load that is negative or not finite and for a capacity that is
  /// not positive, `std::overflow_error` for a sum above its type.
  template <amount_range Loads, amount Capacity>
    requires detail::same_kinds<detail::amount_of<Loads>, Capacity>
  [[nodiscard]] constexpr auto operator()(Loads const& loads, Capacity const& capacity) const
      -> detail::ratio_of<detail::amount_of<Loads>> {
    auto const limits = detail::to_capacity<detail::working_of<Capacity>>("utilisation", capacity);
    detail::check_capacity("utilisation", limits);
    return detail::for_each_resource("utilisation", "load", loads,
                                     [&limits](auto const& all, std::size_t r) {
                                       return all.mean() / static_cast<double>(limits[r]);
                                     });
  }
};

/// The used share of the capacity; see `utilisation_fn`.
inline constexpr utilisation_fn utilisation{};

}  // namespace omnibal::inline v0
