// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Next-fit packing.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/detail/measured_bound.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <utility>

namespace omnibal::inline v0 {

struct next_fit_fn {
  /// Packs the samples in their order into one group after the other. A sample that does not fit
  /// the open group closes this group and opens the next one.
  ///
  /// `demand` maps a sample to resources or to one weight, and `capacity` has the same number of
  /// kinds. Integers are at most 2^63 - 1 each, and their sums may exceed 2^63 - 1. For one
  /// resource the result has at most twice the fewest groups. Complexity: linear. Memory: one
  /// record of 8 to 8R + 8 bytes and 8 bytes of result per sample. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` if the capacity is not positive or a demand is
  /// negative or not finite, `std::length_error` if there are more than 2^32 - 1 samples. Source:
  /// Johnson, 1973.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity) const {
    return detail::with_measured("next_fit", samples, demand, capacity, [](auto&& input) {
      packing result;
      result.report.lower_bound = detail::measured_bound(input);
      result.report.rounds = 1;
      result.report.item_rounds = input.size();
      detail::group_writer groups(input.size());
      auto output = groups.end();
      detail::fitting_indices indices(input.oversized);
      std::size_t begin = 0;
      auto room = input.layout.empty_room();
      for (std::size_t i = 0; i != input.size(); ++i) {
        bool const fitted = input.layout.take_or_renew(room, input.demands[i]);
        output.close(i - begin, fitted ? 0 : 1);
        begin = fitted ? begin : i;
        output.write(indices.next(), 1);
      }
      if (input.size() != 0) output.close(input.size() - begin, 1);
      groups.set_end(output);
      result.groups = std::move(groups).take();
      result.oversized = std::move(input.oversized);
      return result;
    });
  }
};

/// Packs by next-fit; see `next_fit_fn`.
inline constexpr next_fit_fn next_fit{};

}  // namespace omnibal::inline v0
