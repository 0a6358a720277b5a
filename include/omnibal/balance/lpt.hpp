// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Longest processing time first.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

struct lpt_fn {
  /// Balances samples over parts by longest processing time first. The function assigns the samples
  /// from the largest to the smallest cost, equal costs by index, each to the part with the
  /// smallest load. If loads are equal, the part with the lowest number gets the sample. Samples
  /// with zero cost go to the part with the fewest samples. If `options.count` limits the counts,
  /// parts with the maximum count get no more samples.
  ///
  /// The samples of a part have ascending indices. If there are fewer samples than parts, some
  /// parts are empty. Without limits on the counts, the largest load is at most 4/3 - 1/(3 parts)
  /// times the smallest possible. `cost` is called once for each sample, in order.
  ///
  /// A cost may also be resources, such as one for each phase of a step. Resources count as shares
  /// of their sums over all samples. The size of a sample is then the sum of its shares. Each
  /// sample goes to the part whose largest share with the sample is smallest.
  ///
  /// With `options.speeds`, each sample goes to the part whose load with the sample over the speed
  /// is smallest, and of equal parts to the lowest. Speeds are rounded to whole multiples of a
  /// power of two, with an error of at most 2^-31 of the largest; comparisons are exact. The
  /// largest load over speed is at most 1.58 times the smallest possible without limits on the
  /// counts. Parts of equal speed cost no more comparisons than without speeds. With speeds and
  /// several resources, each sample costs one comparison for each part.
  ///
  /// Complexity: a linear sort and log2(parts) comparisons per sample. Several resources without
  /// speeds cost one comparison for each sample and part up to 256 parts. Above 256 parts, a sample
  /// costs one comparison for each block of 64 parts, and one for each part of the blocks that this
  /// does not rule out. Memory: 24 + 16R bytes per sample and 80 + 8R per part at most, including
  /// the result. Determinism: portable for integers. Errors: `std::invalid_argument` if there are
  /// no parts, if a cost is negative, not finite or above 2^63 - 1, or if a speed is not positive,
  /// not finite or below 2^-31 of the largest. It is also thrown if counts must be equal and the
  /// number of parts does not divide the number of samples. Further errors: `std::overflow_error`
  /// if the sum of all costs exceeds its type; `std::length_error` above 2^32 - 1 samples or parts.
  /// Source: Graham, "Bounds on multiprocessing timing anomalies", 1969; with speeds, Kovacs, "New
  /// approximation bounds for LPT scheduling", 2010.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts,
                                    Cost const& cost = {}, lpt_options const& options = {}) const {
    detail::check_parts(name, parts);
    detail::part_speeds const speeds(name, options.speeds, parts);
    auto const costs = detail::measure_costs(name, samples, cost);
    detail::count_limits room(name, options.count, costs.size(), parts);
    if (!speeds.are_equal()) {
      return detail::collect_parts(detail::place_longest_first(costs, std::move(room), speeds),
                                   parts);
    }
    return detail::collect_parts(detail::place_longest_first(costs, std::move(room)), parts);
  }

 private:
  static constexpr std::string_view name = "lpt";
};

/// Balances samples over parts by longest processing time first; see `lpt_fn`.
inline constexpr lpt_fn lpt{};

}  // namespace omnibal::inline v0
