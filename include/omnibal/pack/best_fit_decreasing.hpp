#pragma once

/// \file
/// Best-fit decreasing packing.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/release.hpp>
#include <omnibal/pack/detail/assignment.hpp>
#include <omnibal/pack/detail/best_fit_cells.hpp>
#include <omnibal/pack/detail/best_fit_line.hpp>
#include <omnibal/pack/detail/bounds.hpp>
#include <omnibal/pack/detail/capacity_shares.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/lower_bound.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// What makes one sample larger than another.
enum class size_measure {
  sum_of_shares,  ///< the shares of the capacity that it takes, summed over the resources
  largest_share,  ///< the largest of these shares
};

struct best_fit_options {
  size_measure measure = size_measure::sum_of_shares;
  /// For several resources: the largest number of orders to try, of which the fewest groups are
  /// kept. Orders after the first vary the measure at random, always in the same way. They are
  /// tried until the lower bound is reached, and as long as attempts times samples are at most
  /// 16384.
  std::size_t attempts = 256;
};

namespace detail {

/// The size of a sample in units of 2^-32, and variations of it: attempt 0 is `measure` itself,
/// attempt 1 the other measure, and the further ones take them in turn but give every resource a
/// weight and every sample a factor, both random and in [1/2, 1).
template <std::size_t R, class T>
class sample_size {
 public:
  sample_size(resources<R, T> const& capacity, size_measure measure, std::size_t attempt)
      : share_(capacity),
        sums_((measure == size_measure::sum_of_shares) == (attempt % 2 == 0)),
        varies_(attempt > 1),
        words_(0, attempt) {
    for (std::uint64_t& weight : weights_) weight = half_to_one(words_());
  }

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts, std::size_t sample) const {
    std::uint64_t sum = 0;
    std::uint64_t largest = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t share = share_(amounts[r], r);
      if (varies_) share = (share >> 16) * weights_[r];
      sum += share;
      largest = std::max(largest, share);
    }
    std::uint64_t const size = sums_ ? sum : largest;
    if (!varies_) return size >> 31;
    return (size >> 16) * half_to_one(words_.word(R + sample)) >> 31;
  }

 private:
  [[nodiscard]] static std::uint64_t half_to_one(std::uint64_t word) {
    return (word >> 49) | std::uint64_t{1} << 15;
  }

  capacity_shares<R, T> share_;
  bool sums_;
  bool varies_;
  rng::engine words_;
  std::uint64_t weights_[R] = {};
};

/// Best-fit decreasing of one integer resource by counting its values. Frees the demands.
template <class Layout>
[[nodiscard]] grouping pack_counted_line(measured<Layout>& input,
                                         std::vector<std::uint32_t> counts) {
  auto const capacity = static_cast<std::uint32_t>(counts.size() - 1);
  std::uint32_t smallest = 0;
  while (smallest != capacity && counts[smallest] == 0) ++smallest;
  std::uint32_t value = capacity + 1;
  auto const next_run = [&] {
    do --value;
    while (counts[value] == 0);
    return std::pair(value, counts[value]);
  };
  own_rooms<std::uint32_t> rooms(input.size());
  auto assigned = best_fit_line(input.size(), std::move(rooms), capacity, smallest, next_run);
  // Where the samples of each size begin in the order of packing.
  std::uint32_t position = 0;
  for (std::size_t v = counts.size(); v-- != 0;) position += std::exchange(counts[v], position);
  std::vector<std::uint32_t> items(input.size());
  auto const size = input.amounts_of(0);
  fitting_indices indices(input.oversized);
  for (std::size_t k = 0; k != items.size(); ++k) {
    items[counts[static_cast<std::size_t>(size(k))]++] = indices.next();
  }
  release(input.demands);
  return std::move(assigned).collect(items);
}

/// Best-fit decreasing of one integer resource by sorting its values. Frees the demands.
template <class Layout>
[[nodiscard]] grouping pack_sorted_line(measured<Layout>& input) {
  std::size_t const count = input.size();
  std::vector<std::uint32_t> order = order_descending(count, input.amounts_of(0));
  std::vector<std::uint64_t> sizes(count);
  for (std::size_t position = 0; position != count; ++position) {
    sizes[position] =
        static_cast<std::uint64_t>(input.layout.amount(input.demands[order[position]], 0));
  }
  release(input.demands);
  std::size_t position = 0;
  auto const next_run = [&] {
    std::size_t const first = position;
    std::uint64_t const size = sizes[first];
    while (position != count && sizes[position] == size) ++position;
    return std::pair(size, position - first);
  };
  auto const capacity = static_cast<std::uint64_t>(input.capacity[0]);
  std::uint64_t const smallest = count == 0 ? 0 : sizes.back();
  auto assigned = best_fit_line(count, overlaid_rooms(sizes), capacity, smallest, next_run);
  release(sizes);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

/// Best-fit decreasing of one integer resource.
template <class Layout>
[[nodiscard]] packing pack_line(measured<Layout>&& input) {
  packing result;
  result.report.rounds = 1;
  result.report.item_rounds = input.size();
  if (is_countable(input.size(), input.capacity[0])) {
    std::vector<std::uint32_t> counts =
        count_values(input.size(), input.amounts_of(0), input.capacity[0]);
    std::size_t const fewest = input.size() == 0 ? 0 : 1;
    result.report.lower_bound = std::max(fewest, counted_martello_toth_bound(counts));
    result.groups = pack_counted_line(input, std::move(counts));
  } else {
    result.report.lower_bound = measured_bound(input);
    result.groups = pack_sorted_line(input);
  }
  result.oversized = std::move(input.oversized);
  return result;
}

/// What `pack_cells` does with the demands of its input.
enum class demands_after { kept, freed };

/// Best-fit decreasing by `score`, the largest samples by `size` first.
template <class Layout, class Size, class Score>
[[nodiscard]] grouping pack_cells(measured<Layout>& input, demands_after after, Size const& size,
                                  Score const& score) {
  std::vector<std::uint32_t> order = order_descending(
      input.size(), [&size, layout = input.layout, first = input.demands.data()](std::size_t k) {
        return size(layout.amounts(first[k]), k);
      });
  std::vector<typename Layout::demand_type> demands(input.size());
  for (std::size_t position = 0; position != order.size(); ++position) {
    demands[position] = input.demands[order[position]];
  }
  if (after == demands_after::freed) release(input.demands);
  auto assigned = best_fit_cells(input.layout, std::move(demands), input.capacity, score);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

/// The packing with the fewest groups of several attempts, as many as are cheap; one that reaches
/// the lower bound is the last.
template <class Layout, class Score>
[[nodiscard]] packing pack_attempts(measured<Layout>&& input, best_fit_options const& options,
                                    Score const& score) {
  if (options.attempts == 0) {
    throw_invalid("best_fit_decreasing", "options.attempts is 0, must be positive");
  }
  constexpr std::size_t cheap_item_rounds = 16384;
  std::size_t const count = input.size();
  std::size_t const cheap_attempts = cheap_item_rounds / std::max<std::size_t>(count, 1);
  std::size_t const most_attempts =
      std::min(options.attempts, std::max<std::size_t>(1, cheap_attempts));
  packing result;
  result.report.lower_bound = measured_bound(input);
  for (std::size_t attempt = 0; attempt != most_attempts; ++attempt) {
    auto const after = attempt + 1 == most_attempts ? demands_after::freed : demands_after::kept;
    sample_size const size(input.capacity, options.measure, attempt);
    grouping groups = pack_cells(input, after, size, score);
    if (attempt == 0 || groups.size() < result.groups.size()) result.groups = std::move(groups);
    ++result.report.rounds;
    result.report.item_rounds += count;
    if (result.groups.size() == result.report.lower_bound) break;
  }
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace detail

struct best_fit_decreasing_fn {
  /// Takes the samples from the largest to the smallest and puts each into the group that it fits
  /// best, or opens a group where it fits none. `options.measure` says what is large, and
  /// `score(left, demand)` what is best: the group with the least score. Equal samples are taken by
  /// ascending index; of equal groups the one that changed last is taken.
  ///
  /// `demand` maps a sample to resources or to one weight, `capacity` has as many kinds. For one
  /// resource it takes at most 11/9 of the fewest groups plus four. For several, the groups are
  /// looked up by their room in at most 64 cells, and within a cell by the resource whose demands
  /// vary most, at a resolution that is exact for common capacities (images below 64, tokens below
  /// 32768 / images). Where it is not, up to 16 groups of a cell are tried, and one that would fit
  /// may be passed over.
  ///
  /// Neighbours among the groups resemble each other: deal or shuffle the groups before training.
  /// Complexity: linear for one integer resource, but for comparisons among sizes or rooms that
  /// agree in their leading bits; for several, linear for the sort and at most 64 cells for each
  /// sample. Memory: at most 24 + 8R bytes per sample, result included, and 256 KiB. Determinism:
  /// portable for integers. Errors: `std::invalid_argument` for a capacity that is not positive, no
  /// attempts, a demand that is negative or not finite and a score that is not a number;
  /// `std::length_error` above 2^32 - 1 samples. Sources: Johnson, 1973; Panigrahy, Talwar, Uyeda,
  /// Wieder, "Heuristics for vector bin packing", 2011.
  template <class Samples, class Demand, class Capacity, class Score>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        fit_score<Score, resources<detail::kinds_of<Capacity>,
                                   detail::working_weight_of<Samples, Demand, Capacity>>>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, best_fit_options const& options,
                                   Score const& score) const {
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using input_type = std::remove_cvref_t<decltype(input)>;
      auto const user_score = [&](auto const& left, auto const& amounts) {
        auto const value = score(input_type::in_user_units(left, input.units),
                                 input_type::in_user_units(amounts, input.units));
        if (!(value == value)) detail::throw_invalid(name, "the score of a group is not a number");
        return value;
      };
      return detail::pack_attempts(std::move(input), options, user_score);
    });
  }

  /// The same with the score `least_slack`, the shares of the capacity that are left.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity,
                                   best_fit_options const& options = {}) const {
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using amounts_type = typename std::remove_cvref_t<decltype(input)>::amounts_type;
      if constexpr (amounts_type::size() == 1 && std::integral<typename amounts_type::value_type>) {
        return detail::pack_line(std::move(input));
      } else {
        return detail::pack_attempts(std::move(input), options, least_slack(input.capacity));
      }
    });
  }

 private:
  static constexpr std::string_view name = "best_fit_decreasing";
};

/// Best-fit decreasing packing; see `best_fit_decreasing_fn`.
inline constexpr best_fit_decreasing_fn best_fit_decreasing{};

}  // namespace omnibal::inline v0
