#pragma once

/// \file
/// Longest processing time first.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

struct lpt_fn {
  /// Parts with even loads: takes the samples from the largest cost to the smallest, equal ones by
  /// index, and puts each into the part with the least load, of equal ones the lowest. Samples
  /// without cost go to the part with the fewest samples. Where `options.count` limits the counts,
  /// parts that have as many samples as they may get no more.
  ///
  /// The parts have their samples by ascending index; where there are fewer samples than parts,
  /// some are empty. Without limits on the counts the largest load is at most 4/3 - 1/(3 parts)
  /// times the smallest possible. `cost` is called once for each sample, in order.
  ///
  /// A cost may also be resources, such as one for each phase of a step. They count as shares of
  /// their sums over all samples: a sample is as large as the sum of its shares, and goes where the
  /// largest of the shares that the part then has is least.
  ///
  /// Complexity: linear for the sort, and a comparison for each doubling of the parts for each
  /// sample; for several resources one for each of up to 256 parts, and of more one for every 64
  /// and some blocks of 64. Memory: 24 + 16R bytes per sample and 80 + 8R per part at most, result
  /// included. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for no parts, a cost that is negative, not finite or above 2^63 - 1
  /// and equal counts where the parts do not divide the samples; `std::overflow_error` where the
  /// sum of all costs leaves its type; `std::length_error` above 2^32 - 1 samples or parts. Source:
  /// Graham, "Bounds on multiprocessing timing anomalies", 1969.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts,
                                    Cost const& cost = {}, lpt_options const& options = {}) const {
    detail::check_parts(name, parts);
    auto const costs = detail::measure_costs(name, samples, cost);
    detail::count_limits room(name, options.count, costs.size(), parts);
    return detail::collect_parts(detail::place_longest_first(costs, std::move(room)), parts);
  }

 private:
  static constexpr std::string_view name = "lpt";
};

/// Longest processing time first; see `lpt_fn`.
inline constexpr lpt_fn lpt{};

}  // namespace omnibal::inline v0
