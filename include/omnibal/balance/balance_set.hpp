#pragma once

/// \file
/// Consecutive runs of samples for costs that are not sums.

#include <omnibal/balance/balance_set/run_search.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// In which order samples are cut into runs.
enum class run_order {
  /// From the largest to the smallest cost of a set of the sample alone, equal ones by index.
  largest_first,
  /// As they are given.
  given,
};

struct balance_set_options {
  run_order order = run_order::largest_first;
};

struct balance_set_fn {
  /// Parts whose largest cost is the least that consecutive runs of the ordered samples can have.
  /// `empty` is the accumulator of an empty set, such as `padded_batch{&sample::tokens}`; it is
  /// copied for each set.
  ///
  /// No other parts have a smaller largest cost where a set costs what its count and its largest
  /// sample alone say, and no less for more of either: count * longest of padded batches and
  /// count * longest^2 of padded attention are such costs. Where the cost rises with the sum of
  /// some amounts, as in an unmasked pack, the largest sum is at most 2 - 1/parts times the
  /// smallest possible; `lpt` with these amounts is evener. Of other costs nothing but the
  /// best runs is promised.
  ///
  /// The parts have their samples in that order. Where there are as many samples as parts none is
  /// empty, where there are fewer the last ones are. Complexity: linear for the sort and for each
  /// probe, about 20 of them, as many as the bits of the largest value at most for integers.
  /// Memory: 40 bytes per sample at most, result included. Determinism: portable for integers.
  /// Errors: `std::invalid_argument` for no parts and for a value of a set that is negative or not
  /// finite, `std::length_error` above 2^32 - 1 samples or parts, and what the accumulator throws.
  /// Sources: Zheng et al., "OrchMLLM", 2025, for padded batches; Pinar, Aykanat, "Fast optimal
  /// load balancing algorithms for 1D partitioning", 2004, for the bisection.
  template <sample_range Samples, class Set>
    requires set_cost<Set, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts, Set const& empty,
                                    balance_set_options const& options = {}) const {
    detail::check_parts(name, parts);
    detail::check_index_count(name, "samples", std::ranges::size(samples));
    if (std::ranges::size(samples) == 0) {
      return grouping(std::vector<std::uint32_t>(parts + 1, 0), {});
    }
    detail::run_search<Samples, Set> search(name, samples, parts, empty);
    auto const values = search.single_values();
    std::vector<std::uint32_t> order = ordered(values, options.order);
    std::vector<std::uint32_t> offsets =
        search.best_cuts(order, *std::max_element(values.begin(), values.end()));
    offsets.insert(offsets.begin(), 0);
    offsets.resize(parts + 1, static_cast<std::uint32_t>(order.size()));
    return grouping(std::move(offsets), std::move(order));
  }

 private:
  static constexpr std::string_view name = "balance_set";

  template <class Value>
  [[nodiscard]] static std::vector<std::uint32_t> ordered(std::vector<Value> const& values,
                                                          run_order order) {
    if (order == run_order::given) {
      std::vector<std::uint32_t> result(values.size());
      std::iota(result.begin(), result.end(), 0u);
      return result;
    }
    return detail::order_descending(values.size(), [&values](std::size_t i) {
      if constexpr (std::floating_point<Value>) {
        // Numbers that are not negative are ordered as their bits are; the zero removes a sign.
        return std::bit_cast<std::uint64_t>(static_cast<double>(values[i]) + 0.0);
      } else {
        return values[i];
      }
    });
  }
};

/// Consecutive runs for costs that are not sums; see `balance_set_fn`.
inline constexpr balance_set_fn balance_set{};

}  // namespace omnibal::inline v0
