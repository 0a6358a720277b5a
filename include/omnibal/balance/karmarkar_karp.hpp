#pragma once

/// \file
/// The largest differencing method.

#include <omnibal/balance/detail/differencing.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <functional>
#include <string_view>

namespace omnibal::inline v0 {

struct karmarkar_karp_fn {
  /// Parts with even loads by differencing: keeps tuples of the loads of all parts, one for each
  /// sample at first, and combines the two whose loads differ most, the largest load of the one
  /// with the smallest of the other, until one tuple is left. Of equal differences those that were
  /// combined before go first, then samples by index. Samples without cost go to the part with the
  /// fewest samples.
  ///
  /// Evener than `lpt` where parts are few or have few samples each; it cannot limit counts. The
  /// parts are numbered by their least samples, empty ones last, and have their samples by
  /// ascending index. `cost` is called once for each sample, in order.
  ///
  /// Empty parts take neither time nor memory in a tuple. Complexity: n (log n)^2 for n samples at
  /// most, n log(parts) on most data. Memory: 136 bytes per sample and 16 per part at
  /// most, result included. Determinism: portable for integers. Errors: those of
  /// `deal`. Source: Karmarkar, Karp, "The differencing method of set partitioning", 1982.
  template <sample_range Samples, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts,
                                    Cost const& cost = {}) const {
    detail::check_parts(name, parts);
    auto const costs = detail::measure_costs(name, samples, cost);
    return detail::collect_parts(detail::difference_largest(costs, parts), parts);
  }

 private:
  static constexpr std::string_view name = "karmarkar_karp";
};

/// The largest differencing method; see `karmarkar_karp_fn`.
inline constexpr karmarkar_karp_fn karmarkar_karp{};

}  // namespace omnibal::inline v0
