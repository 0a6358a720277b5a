// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Assignment of sorted samples to parts in alternating order.

#include <omnibal/balance/deal/speed_rounds.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct deal_options {
  /// The speed of each part, or one value for all; empty for equal speeds. The array must outlive
  /// the option.
  detail::speed_list speeds = {};
};

struct deal_fn {
  /// Assigns sorted samples to parts in alternating order, such that counts differ by at most one.
  /// The samples go from the largest to the smallest cost, equal costs by index. In the first round
  /// the parts are 0, 1, and so on; in the second round the last part is first, and so on. The part
  /// of a sample depends only on its position in the order, so that separate threads can assign the
  /// samples.
  ///
  /// The samples of a part have the order of their assignment. The loads of two parts differ by at
  /// most the largest cost. `cost` is called once for each sample, in order.
  ///
  /// With `options.speeds`, a part of speed s receives its samples at the times 1 / (2s), 3 / (2s),
  /// 5 / (2s), and so on. Its number of samples is in proportion to the speed, rounded by the
  /// Sainte-Lague method of apportionment. At equal times, the odd rounds of parts precede the even
  /// rounds. In odd rounds, parts receive samples from the fastest to the slowest part, and by
  /// number if speeds are equal; in even rounds, in reverse order. With a largest cost c, the loads
  /// over speeds of two parts of speeds s and t differ by at most (c / s + c / t) / 2. Speeds are
  /// rounded as in `lpt`.
  ///
  /// Complexity: linear, except for costs whose leading 32 bits are equal. With different speeds,
  /// each sample also costs log2(d) comparisons for d different speeds. Memory: 32 bytes per sample
  /// and 4 per part, with different speeds 36 and 44. The result is included. Determinism: portable
  /// for integers. Errors: `std::invalid_argument` if there are no parts, or if a cost is negative,
  /// not finite or above 2^63 - 1. It is also thrown if a speed is not positive, not finite or
  /// below 2^-31 of the largest. Further errors: `std::overflow_error` if the sum of all costs
  /// exceeds its type; `std::length_error` above 2^32 - 1 samples or parts. Source: with speeds,
  /// Balinski, Young, "Fair Representation", 1982, for the counts.
  template <sample_range Samples, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts,
                                    Cost const& cost = {}, deal_options const& options = {}) const {
    detail::check_parts(name, parts);
    detail::part_speeds const speeds(name, options.speeds, parts);
    auto const order = detail::largest_first(detail::measure_costs(name, samples, cost));
    std::vector<std::uint32_t> offsets(parts + 1, 0);
    std::vector<std::uint32_t> items(order.size());
    if (!speeds.are_equal()) {
      auto const part_of = detail::speed_rounds(speeds).parts_of(order.size());
      for (std::uint32_t const part : part_of) ++offsets[part];
      detail::sort_by_part(part_of, offsets, items, [&](std::size_t k) { return order[k]; });
      return grouping(std::move(offsets), std::move(items));
    }
    std::uint32_t end = 0;
    for (std::size_t part = 0; part != parts; ++part) {
      offsets[part] = end;
      bool is_forth = true;
      for (std::size_t first = 0; first < order.size(); first += parts) {
        std::size_t const rank = first + (is_forth ? part : parts - 1 - part);
        if (rank < order.size()) items[end++] = order[rank];
        is_forth = !is_forth;
      }
    }
    offsets[parts] = end;
    return grouping(std::move(offsets), std::move(items));
  }

 private:
  static constexpr std::string_view name = "deal";
};

/// Assigns sorted samples to parts in alternating order; see `deal_fn`.
inline constexpr deal_fn deal{};

}  // namespace omnibal::inline v0
