// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moves, swaps and splits that balance parts.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/pair_repartition.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Checks and measures samples in given parts, and collects the parts after a search.
/// `search(costs, order, part_of, limit, put, speeds)` may stop when the largest load, or load over
/// speed, is at most the limit. It calls `put(place, part)` for each place of the order.
template <class Samples, class Cost, class Search>
[[nodiscard]] grouping refined_parts(std::string_view function, Samples const& samples,
                                     grouping_view parts, Cost const& cost, double max_overload,
                                     speed_list given, Search const& search) {
  check_max_overload(function, max_overload);
  auto const costs = measure_costs(function, samples, cost);
  std::vector<std::uint32_t> part_of;
  part_of_samples(function, "part", parts, costs.size(), part_of);
  part_speeds const speeds(function, given, parts.size());
  if (parts.empty()) return {};
  auto const order = largest_first(costs);
  auto const put = [&](std::uint32_t place, std::uint32_t part) { part_of[order[place]] = part; };
  if (speeds.are_equal()) {
    std::int64_t const bound = min_load(costs, std::span(order), parts.size());
    search(costs, order, part_of, with_overload(bound, max_overload), put, equal_speeds{});
  } else {
    part_time const bound = min_time(costs, std::span(order), speeds);
    search(costs, order, part_of, with_overload(bound, max_overload), put, speeds);
  }
  return collect_parts(part_of, parts.size());
}

}  // namespace detail

struct refine_parts_options {
  /// The tolerance of the search, as a share of a lower bound. The search ends when the largest
  /// load exceeds the bound by at most this share.
  double max_overload = 0.0;
  /// Whether the counts of parts may change: with `kept` samples are only swapped, otherwise also
  /// moved.
  part_counts counts = part_counts::free;
  /// The maximum number of moves, swaps and splits.
  std::size_t exchanges = 1'000'000;
  /// The maximum number of splits without success, for costs of one kind. The search ends when this
  /// number of splits, and four more for each part, have not halved the excess of the largest load.
  /// Zero disables splits.
  std::size_t splits = 2048;
  /// The seed of the search; other seeds split other samples.
  std::uint64_t seed = 0;
  /// The speed of each part, or one value for all; empty for equal speeds. The array must outlive
  /// the option.
  detail::speed_list speeds = {};
};

struct refine_parts_fn {
  /// Balances the loads of given parts further; the largest load never increases. The search ends
  /// when the largest load exceeds a lower bound by at most the share `options.max_overload`, after
  /// `options.exchanges` exchanges, or when it finds no improvement. The lower bound is the largest
  /// of three loads: the mean load, the largest cost and, with one kind of cost, the sum of the two
  /// smallest among the `parts + 1` largest costs.
  ///
  /// Samples move or are swapped between the part with the largest load and the part with the
  /// smallest. Each exchange minimizes the larger load of the two parts. If the exchanges end above
  /// the bound, the search splits pairs of parts again, often with the part of the largest load. A
  /// split draws up to 16 of their samples at random and divides them between the two parts in the
  /// best possible way. With splits, parts can reach a bound that no exchange of two samples can
  /// reach. Finally, up to 64 exchanges are made between the part with the largest load and any
  /// other. With several kinds of cost, the search makes only these last exchanges, until none
  /// lowers the largest load.
  ///
  /// With `options.speeds`, the load of a part is its load over its speed, and an exchange
  /// minimizes the larger of these times. The bound is then the largest of three times. The first
  /// is the total over the sum of all speeds, and the second is the k largest costs over the k
  /// largest speeds. The third is two costs that share a part over the largest speed. Speeds are
  /// rounded as in `lpt`.
  ///
  /// The parts keep their order, and the samples of a part have ascending indices. Costs may be
  /// resources as in `lpt`. The load of a part is then its largest share, and the search looks at
  /// no more than 64 evenly spaced samples of a part. Floating-point costs are compared as whole
  /// multiples of 2^-62 of their sum, shares as whole multiples of 2^-52. `cost` is called once for
  /// each sample, in order.
  ///
  /// An exchange moves few samples. If one part contains nearly all samples, the time is therefore
  /// quadratic in the samples. For such parts, pass the result of `lpt` or `deal` instead.
  ///
  /// Complexity: a linear sort. Each exchange looks at the samples of two parts, and each split
  /// costs about 1000 comparisons. With several resources, each exchange compares up to 64^2 pairs
  /// of samples for each part that it tries. Memory: 40 + 16R bytes per sample and 200 + 8R per
  /// part at most, including the result. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` if a cost is negative, not finite or above 2^63 - 1, or if
  /// `max_overload` is negative or not finite. It is also thrown if a speed is not positive, not
  /// finite or below 2^-31 of the largest, or if parts name an index twice, not at all or above the
  /// samples. Further errors: `std::overflow_error` if the sum of all costs exceeds its type;
  /// `std::length_error` above 2^32 - 1 samples.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, groups_argument parts,
                                    Cost const& cost = {},
                                    refine_parts_options const& options = {}) const {
    auto const search = [&](auto const& costs, auto const& order, auto& part_of, auto limit,
                            auto const& put, auto const& speeds) {
      detail::search_budget budget(options.exchanges);
      if constexpr (detail::cost_kinds<Samples, Cost> == 1) {
        auto const largest = detail::even_parts(costs, order, part_of, parts.size(), limit,
                                                {budget, options.splits, options.seed},
                                                options.counts, detail::free_exchanges{}, speeds);
        if (largest <= limit) return;
        budget = detail::search_budget(std::min(options.exchanges, max_last_exchanges));
      }
      detail::part_refiner refiner(costs, order, part_of, parts.size(), detail::free_exchanges{},
                                   speeds);
      refiner.run(limit, budget, options.counts);
      refiner.for_each_sample(put);
    };
    return detail::refined_parts(name, samples, parts, cost, options.max_overload, options.speeds,
                                 search);
  }

 private:
  static constexpr std::string_view name = "refine_parts";
  /// The maximum number of exchanges after splits; few of them lower the largest load.
  static constexpr std::size_t max_last_exchanges = 64;
};

/// Balances the loads of given parts by moves, swaps and splits; see `refine_parts_fn`.
inline constexpr refine_parts_fn refine_parts{};

}  // namespace omnibal::inline v0
