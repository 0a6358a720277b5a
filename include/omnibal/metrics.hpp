// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Metrics of balance (pad ratio, dist ratio, imbalance, utilization), of randomness (step overlap)
/// and of long contexts (attention balance, communication ratio).

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
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

  /// Adds a weight. The text of an error contains `index`.
  template <scalar_measure Given>
  constexpr void add(std::string_view function, std::string_view name, std::size_t index,
                     Given given) {
    T const value = checked_cost<T>(function, name, index, given);
    checked_add(function, "the sum over all of them", sum, value);
    largest = std::max(largest, value);
    ++count;
  }

  /// Returns the mean, or zero if there are no weights.
  [[nodiscard]] constexpr double mean() const {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  }

  /// Returns the idle share, `1 - mean / largest`: the mean share of the time of the largest weight
  /// for which the others are idle.
  [[nodiscard]] constexpr double idle_share() const {
    if (!(largest > T{0})) return 0.0;
    if constexpr (std::integral<T>) {
      auto const missing =
          static_cast<int128>(largest) * static_cast<int128>(count) - static_cast<int128>(sum);
      return static_cast<double>(missing) /
             (static_cast<double>(largest) * static_cast<double>(count));
    } else {
      // The product largest * count may exceed the type even if the sum does not.
      return std::max(0.0, largest - mean()) / largest;
    }
  }
};

template <class Range>
using amount_of = std::remove_cvref_t<std::ranges::range_reference_t<Range const>>;

/// The type of a ratio for each resource: `double` for weights, `resources<R, double>` for
/// resources.
template <class Amount>
using ratio_of =
    std::conditional_t<scalar_measure<Amount>, double, resources<kinds_of<Amount>, double>>;

/// Returns `ratios` as a `double` for one weight, and unchanged for resources.
template <class Amount>
[[nodiscard]] constexpr ratio_of<Amount> to_ratio(
    resources<kinds_of<Amount>, double> const& ratios) {
  if constexpr (scalar_measure<Amount>) {
    return ratios[0];
  } else {
    return ratios;
  }
}

/// Returns `ratio(spread, r)` of the amounts of each resource r in a range.
template <class Range, class Ratio>
[[nodiscard]] constexpr ratio_of<amount_of<Range>> for_each_resource(std::string_view function,
                                                                     std::string_view name,
                                                                     Range const& range,
                                                                     Ratio const& ratio) {
  using working = working_weight<amount_of<Range>>;
  constexpr std::size_t kinds = kinds_of<amount_of<Range>>;
  spread<working> all[kinds];
  std::size_t index = 0;
  for (auto const& element : range) {
    auto const amounts = to_resources<working>({function, name, index}, element);
    for (std::size_t r = 0; r != kinds; ++r) all[r].add(function, name, index, amounts[r]);
    ++index;
  }
  resources<kinds, double> result{};
  for (std::size_t r = 0; r != kinds; ++r) result[r] = ratio(all[r], r);
  return to_ratio<amount_of<Range>>(result);
}

/// Returns the mean of the idle shares of all steps. `load_of(group)` returns resources for each of
/// `groups` groups.
template <class Working, std::size_t R, class LoadOf>
[[nodiscard]] constexpr resources<R, double> mean_idle_share(std::string_view function,
                                                             steps const& schedule,
                                                             std::size_t groups,
                                                             LoadOf const& load_of) {
  resources<R, double> sum{};
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    spread<Working> ranks[R];
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      resources<R, Working> total{};
      for (std::uint32_t const group : schedule(step, rank)) {
        if (group >= groups) {
          throw_invalid(function, "step ", step, " names group ", group, " of ", groups);
        }
        resources<R, Working> const load = load_of(group);
        for (std::size_t r = 0; r != R; ++r) {
          checked_add(function, "the total of a rank", total[r], load[r]);
        }
      }
      for (std::size_t r = 0; r != R; ++r) ranks[r].add(function, "total", rank, total[r]);
    }
    for (std::size_t r = 0; r != R; ++r) sum[r] += ranks[r].idle_share();
  }
  if (schedule.empty()) return sum;
  for (double& value : sum.amounts) value /= static_cast<double>(schedule.size());
  return sum;
}

/// Returns the number of tokens of a sample. Throws if the number is negative.
template <class Samples, class Length>
[[nodiscard]] std::int64_t tokens_at(std::string_view function, Samples const& samples,
                                     Length const& length, std::size_t group, std::uint32_t item) {
  return checked_cost<std::int64_t>(function, "length", item,
                                    std::invoke(length, sample_at(function, samples, group, item)));
}

/// True if `Length` returns a number of whole tokens for each sample of the range.
template <class Samples, class Length>
concept samples_with_length =
    sample_range<Samples> && cost_function<Length, sample_reference<Samples>> &&
    integral_measure<demand_result<Length, sample_reference<Samples>>>;

}  // namespace detail

/// A range of weights or of resources.
template <class Range>
concept amount_range = std::ranges::input_range<Range const> && measure<detail::amount_of<Range>>;

struct pad_ratio_fn {
  /// Returns the share of a padded batch that is padding, `sum(longest - length_i) / (longest *
  /// count)`. The share is zero if there are no samples or if all lengths are zero.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a length that is negative or not finite, `std::overflow_error` for
  /// a sum above its type. Source: Yao et al., OmniBal, ICML 2025.
  template <amount_range Lengths>
    requires scalar_measure<detail::amount_of<Lengths>>
  [[nodiscard]] constexpr double operator()(Lengths const& lengths) const {
    detail::spread<detail::working_weight<detail::amount_of<Lengths>>> batch;
    std::size_t index = 0;
    for (auto const& length : lengths) {
      batch.add("pad_ratio", "length", index++, length);
    }
    return batch.idle_share();
  }

  /// Returns the mean of the pad ratio over the groups that have samples, each padded to its
  /// longest sample. `length` measures a sample. Errors: as above, and `std::invalid_argument` for
  /// an index that is not in `samples`. Complexity: linear. Allocates nothing.
  template <sample_range Samples, class Length = std::identity>
    requires cost_function<Length, sample_reference<Samples>>
  [[nodiscard]] constexpr double operator()(groups_argument groups, Samples const& samples,
                                            Length const& length = {}) const {
    using working = detail::working_weight<demand_result<Length, sample_reference<Samples>>>;
    double sum = 0.0;
    std::size_t batches = 0;
    for (std::size_t g = 0; g != groups.size(); ++g) {
      detail::spread<working> batch;
      for (std::uint32_t const item : groups[g]) {
        auto&& sample = detail::sample_at("pad_ratio", samples, g, item);
        batch.add("pad_ratio", "length", item, std::invoke(length, sample));
      }
      if (batch.count == 0) continue;
      sum += batch.idle_share();
      ++batches;
    }
    return batches == 0 ? 0.0 : sum / static_cast<double>(batches);
  }
};

/// Returns the pad ratio of a batch or of groups; see `pad_ratio_fn`.
inline constexpr pad_ratio_fn pad_ratio{};

struct dist_ratio_fn {
  /// Returns the idle share of the data-parallel ranks in a step: the mean share of the step for
  /// which a rank is idle until the slowest rank ends. The share is `sum(largest - total_i) /
  /// (largest * ranks) = 1 - mean / largest` over the totals of the ranks, separately for each
  /// resource. The share is zero if all totals are zero.
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

  /// Returns the mean of the dist ratio over all steps of a schedule, separately for each resource.
  /// The total of a rank is the sum of the loads of its groups in that step; a rank without groups
  /// is idle during the whole step. The range `loads` has the load of each group that the schedule
  /// names.
  ///
  /// Complexity: linear in the cells and group indices. Allocates nothing. Errors: as above, and
  /// `std::invalid_argument` for a group index without a load.
  template <amount_range GroupLoads>
    requires sample_range<GroupLoads>
  [[nodiscard]] constexpr auto operator()(steps const& schedule, GroupLoads const& loads) const
      -> detail::ratio_of<detail::amount_of<GroupLoads>> {
    using load_type = detail::amount_of<GroupLoads>;
    using working = detail::working_weight<load_type>;
    constexpr std::size_t kinds = detail::kinds_of<load_type>;
    auto const load_of = [&](std::uint32_t group) {
      return detail::checked_costs<working>("dist_ratio", "loads", group,
                                            detail::element_at(loads, group));
    };
    return detail::to_ratio<load_type>(detail::mean_idle_share<working, kinds>(
        "dist_ratio", schedule, std::ranges::size(loads), load_of));
  }
};

/// Returns the dist ratio of one step or of a schedule; see `dist_ratio_fn`.
inline constexpr dist_ratio_fn dist_ratio{};

struct imbalance_fn {
  /// Returns the largest load divided by the mean load, separately for each resource. The result is
  /// 1 if all loads are equal, and the number of loads if one load is the sum of all. The result is
  /// also 1 if there are no loads or if all loads are zero.
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

/// Returns the largest load divided by the mean load; see `imbalance_fn`.
inline constexpr imbalance_fn imbalance{};

struct utilization_fn {
  /// Returns the used share of the capacity: the sum of the loads divided by the product of the
  /// capacity and the number of loads, separately for each resource. If loads are measured without
  /// rounding, the share excludes the capacity that rounding wastes. The share is zero if there are
  /// no loads.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a load that is negative or not finite and for a capacity that is
  /// not positive, `std::overflow_error` for a sum above its type.
  template <amount_range Loads, measure Capacity>
    requires detail::same_kinds<detail::amount_of<Loads>, Capacity>
  [[nodiscard]] constexpr auto operator()(Loads const& loads, Capacity const& capacity) const
      -> detail::ratio_of<detail::amount_of<Loads>> {
    auto const limits =
        detail::to_capacity<detail::working_weight<Capacity>>("utilization", capacity);
    detail::check_capacity("utilization", limits);
    return detail::for_each_resource("utilization", "load", loads,
                                     [&limits](auto const& all, std::size_t r) {
                                       return all.mean() / static_cast<double>(limits[r]);
                                     });
  }
};

/// Returns the used share of the capacity; see `utilization_fn`.
inline constexpr utilization_fn utilization{};

struct attention_balance_fn {
  /// Returns the attention balance ratio (ABR): the mean share of the attention time of a step for
  /// which ranks are idle until the slowest rank ends. The ratio is the mean over all steps of 1 -
  /// mean / largest over the ranks. The value of a rank is the sum of the squares of the lengths of
  /// its samples. The ratio is 0 if all ranks are equal. A rank without groups is idle during the
  /// whole step. Therefore the idle ranks of a short last step count too.
  ///
  /// `schedule` names groups of `groups`, and `length` returns the tokens of a sample. A step in
  /// which several ranks share a pack has one cell for each pack; see `level_steps`.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for an index of a group or sample that does not exist and for a negative length;
  /// `std::overflow_error` if the squares of a step exceed 2^63 - 1. Source: Yao et al.,
  /// "Hierarchical balance packing", NeurIPS 2025.
  template <class Samples, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length>
  [[nodiscard]] double operator()(steps const& schedule, groups_argument groups,
                                  Samples const& samples, Length const& length = {}) const {
    auto const squares_of = [&](std::uint32_t group) {
      resources<1> sum{};
      for (std::uint32_t const item : groups[group]) {
        std::int64_t const tokens = detail::tokens_at(name, samples, length, group, item);
        std::int64_t square = 0;
        if (__builtin_mul_overflow(tokens, tokens, &square)) {
          detail::throw_overflow(name, detail::joined_text("the square of length[", item, "]"));
        }
        detail::checked_add(name, "the squares of a step", sum[0], square);
      }
      return sum;
    };
    return detail::mean_idle_share<std::int64_t, 1>(name, schedule, groups.size(), squares_of)[0];
  }

 private:
  static constexpr std::string_view name = "attention_balance";
};

/// Returns the attention balance ratio; see `attention_balance_fn`.
inline constexpr attention_balance_fn attention_balance{};

struct communication_ratio_fn {
  /// Returns the communication ratio (CR): the share of the tokens that take part in
  /// sequence-parallel communication. These are the tokens of groups that several ranks share. The
  /// ratio is 0 if there are no tokens.
  ///
  /// `degree(group)` is the number of ranks that share a group, such as
  /// `[&](std::uint32_t g) { return packed.levels[packed.level_of(g)].setting.sequence; }`.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for an index that is not in `samples`, a negative length and a degree below one;
  /// `std::overflow_error` if the sum of the lengths exceeds 2^63 - 1. Source: the same as for
  /// `attention_balance`.
  template <class Samples, class Degree, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length> && cost_function<Degree, std::uint32_t>
  [[nodiscard]] double operator()(groups_argument groups, Samples const& samples,
                                  Degree const& degree, Length const& length = {}) const {
    std::int64_t shared = 0;
    std::int64_t all = 0;
    for (std::size_t g = 0; g != groups.size(); ++g) {
      auto const ranks = std::invoke(degree, static_cast<std::uint32_t>(g));
      if (!(ranks >= 1)) {
        detail::throw_invalid(name, "the degree of group ", g, " is ", ranks,
                              ", must be at least 1");
      }
      std::int64_t const before = all;
      for (std::uint32_t const item : groups[g]) {
        detail::checked_add(name, "the sum of the lengths", all,
                            detail::tokens_at(name, samples, length, g, item));
      }
      if (ranks > 1) shared += all - before;
    }
    return all == 0 ? 0.0 : static_cast<double>(shared) / static_cast<double>(all);
  }

 private:
  static constexpr std::string_view name = "communication_ratio";
};

/// Returns the share of tokens in sequence-parallel groups; see `communication_ratio_fn`.
inline constexpr communication_ratio_fn communication_ratio{};

struct step_overlap_fn {
  /// Returns the number of pairs of groups that share a step in both schedules, divided by the
  /// number expected for random order. The ratio is 1 on average for two independent schedules. It
  /// is 0 if no pair shares a step twice, and far above 1 if the same groups share steps
  /// repeatedly.
  ///
  /// With `pairs(n) = n (n - 1) / 2`, a schedule that has n groups and puts `pairs(n_s)` pairs into
  /// step s has the share `sum(pairs(n_s)) / pairs(n)` of all pairs in a common step. The expected
  /// number is the number of pairs of groups that are in both schedules, times both shares. This is
  /// the mean if each schedule is drawn uniformly and independently, with its own sizes of steps.
  /// The ratio is 1 if the expected number is zero, for example if each step has one group. Cells
  /// that repeat groups do not count. A group in several cells that are not marked as repetitions
  /// counts in its first step. Ranks and micro-batches do not matter, and the schedules may have
  /// different ranks and groups.
  ///
  /// Complexity: linear in the cells and in the largest group index. Memory: 12 bytes per group up
  /// to that index, 16 bytes per step. Determinism: portable. Errors: `std::length_error` above
  /// 2^32 - 1 steps.
  [[nodiscard]] double operator()(steps const& first, steps const& second) const {
    std::size_t const groups = std::max(end_of_groups(first), end_of_groups(second));
    steps_of_groups const in_first(first, groups);
    steps_of_groups const in_second(second, groups);
    double const expected =
        pairs(common(in_first, in_second)) * in_first.share_of_pairs() * in_second.share_of_pairs();
    if (!(expected > 0)) return 1.0;
    return static_cast<double>(meeting_twice(in_first, in_second)) / expected;
  }

 private:
  [[nodiscard]] static double pairs(std::size_t count) {
    auto const n = static_cast<double>(count);
    return n * (n - 1) / 2;
  }

  [[nodiscard]] static std::size_t end_of_groups(steps const& schedule) {
    std::size_t result = 0;
    for (std::uint32_t const group : schedule.cells().items()) {
      result = std::max(result, std::size_t{group} + 1);
    }
    return result;
  }

  /// The step in which each group counts, and the number of groups that count in each step. The
  /// value `no_step`, the number of steps, marks a group that is in no step.
  struct steps_of_groups {
    steps_of_groups(steps const& schedule, std::size_t groups) : sizes(schedule.size(), 0) {
      detail::check_index_count("step_overlap", "a schedule", schedule.size());
      no_step = static_cast<std::uint32_t>(schedule.size());
      step.assign(groups, no_step);
      for (std::size_t s = 0; s != schedule.size(); ++s) {
        for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
          if (schedule.is_repeat(s, rank)) continue;
          for (std::uint32_t const group : schedule(s, rank)) {
            if (step[group] != no_step) continue;
            step[group] = static_cast<std::uint32_t>(s);
            ++sizes[s];
          }
        }
      }
    }

    [[nodiscard]] double share_of_pairs() const {
      double together = 0;
      std::size_t count = 0;
      for (std::uint32_t const size : sizes) {
        together += pairs(size);
        count += size;
      }
      return count < 2 ? 0.0 : together / pairs(count);
    }

    [[nodiscard]] bool counts(std::size_t group) const { return step[group] != no_step; }

    std::uint32_t no_step;
    std::vector<std::uint32_t> step;
    std::vector<std::uint32_t> sizes;
  };

  [[nodiscard]] static std::size_t common(steps_of_groups const& first,
                                          steps_of_groups const& second) {
    std::size_t result = 0;
    for (std::size_t group = 0; group != first.step.size(); ++group) {
      result += first.counts(group) && second.counts(group) ? 1u : 0u;
    }
    return result;
  }

  /// Returns the number of pairs that share a step in both schedules.
  [[nodiscard]] static std::uint64_t meeting_twice(steps_of_groups const& first,
                                                   steps_of_groups const& second) {
    grouping const groups = detail::collect_parts(first.step, first.sizes.size() + 1);
    std::uint64_t result = 0;
    std::vector<std::uint32_t> met(second.sizes.size(), 0);
    auto const for_each_met = [&](std::size_t step, auto const& body) {
      for (std::uint32_t const group : groups[step]) {
        if (second.counts(group)) body(met[second.step[group]]);
      }
    };
    for (std::size_t s = 0; s != first.sizes.size(); ++s) {
      for_each_met(s, [&](std::uint32_t& count) { result += count++; });
      for_each_met(s, [](std::uint32_t& count) { count = 0; });
    }
    return result;
  }
};

/// Returns the similarity of the steps of two epochs; see `step_overlap_fn`.
inline constexpr step_overlap_fn step_overlap{};

}  // namespace omnibal::inline v0
