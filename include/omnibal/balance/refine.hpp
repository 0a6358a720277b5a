#pragma once

/// \file
/// Moves and swaps that even parts.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Checks and measures samples in given parts and collects the parts that a search leaves.
/// `search(costs, order, part_of, limit, put)` may stop where the largest load is at most the
/// limit, and calls `put(place, part)` for each place of the order.
template <class Samples, class Cost, class Search>
[[nodiscard]] grouping refine_parts(std::string_view function, Samples const& samples,
                                    grouping_view parts, Cost const& cost, double max_overload,
                                    Search const& search) {
  check_max_overload(function, max_overload);
  auto const costs = measure_costs(function, samples, cost);
  std::vector<std::uint32_t> part_of;
  part_of_samples(function, "part", parts, costs.size(), part_of);
  if (parts.empty()) return {};
  auto const order = largest_first(costs);
  std::int64_t const bound = least_load(costs, std::span(order), parts.size());
  search(costs, order, part_of, with_overload(bound, max_overload),
         [&](std::uint32_t place, std::uint32_t part) { part_of[order[place]] = part; });
  return collect_parts(part_of, parts.size());
}

}  // namespace detail

struct refine_options {
  /// The search ends where the largest load exceeds a lower bound by at most this share of it.
  double max_overload = 0.0;
  /// With `kept` samples are only swapped, else moved too.
  part_counts counts = part_counts::free;
  /// The most moves and swaps.
  std::size_t exchanges = 1'000'000;
};

struct refine_fn {
  /// Evens the loads of given parts: samples move or are swapped between the part with the largest
  /// load and another one, the least loaded that helps, each time those after which the larger load
  /// of the two is least. The largest load never rises. The search ends within
  /// `options.max_overload` of a lower bound (the mean load, the largest cost, two of the `parts +
  /// 1` largest), after `options.exchanges`, or where no exchange with any part lowers the largest
  /// load.
  ///
  /// The parts keep their order and have their samples by ascending index. Costs may be resources
  /// as in `lpt`; the largest share of a part is its load then, and at most 64 samples of a part,
  /// evenly spaced, are looked at. Floating-point costs and shares are compared as whole numbers of
  /// 2^-62 and 2^-52 of their sum. `cost` is called once for each sample, in order.
  ///
  /// Complexity: linear for the sort; then, for each part that is tried, the samples of two parts,
  /// or 64^2 pairs for several resources. Memory: 40 + 16R bytes per sample and 160 + 8R per part
  /// at most, result included. Determinism: portable for integers. Errors: `std::invalid_argument`
  /// for a cost that is negative, not finite or above 2^63 - 1, a `max_overload` that is negative
  /// or not finite, and parts that name an index twice, not at all or above the samples;
  /// `std::overflow_error` where the sum of all costs leaves its type; `std::length_error` above
  /// 2^32 - 1 samples.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, groups_argument parts,
                                    Cost const& cost = {},
                                    refine_options const& options = {}) const {
    return detail::refine_parts(name, samples, parts, cost, options.max_overload,
                                [&](auto const& costs, auto const& order, auto const& part_of,
                                    std::int64_t limit, auto const& put) {
                                  detail::part_refiner refiner(costs, order, part_of, parts.size());
                                  refiner.run(limit, options.exchanges,
                                              options.counts == part_counts::free);
                                  refiner.for_each_sample(put);
                                });
  }

 private:
  static constexpr std::string_view name = "refine";
};

/// Moves and swaps that even parts; see `refine_fn`.
inline constexpr refine_fn refine{};

}  // namespace omnibal::inline v0
