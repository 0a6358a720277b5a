// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packing into padded batches under a budget.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/pack_padded/padded_runs.hpp>
#include <omnibal/pack/packing.hpp>

#include <utility>

namespace omnibal::inline v0 {

struct pack_padded_fn {
  /// Packs the samples into the fewest batches whose padded amount is within the capacity: the
  /// number of samples times the largest demand, for each resource. For example,
  /// `pack_padded(lengths, std::identity{}, 8192)` returns batches of at most 8,192 tokens with
  /// their padding. Encoders and kernels that require rectangles have such batches.
  ///
  /// The number of batches is the least possible one for any number of resources. With one
  /// resource, no other packing into so few batches has a smaller padded amount in total. With
  /// several resources, the sum over the batches of the count times the largest share of the
  /// capacity is the least. For at most n samples in a batch, add a resource of which each sample
  /// needs 1, with the capacity n.
  ///
  /// Batches are runs of the samples in descending order of length, so that neighbors among the
  /// batches resemble each other: apply `deal` or a shuffle to the batches before training.
  ///
  /// `demand` maps a sample to resources or to one weight, and `capacity` has the same number of
  /// kinds. Integers are at most 2^63 - 1 each. `report.lower_bound` is the number of batches.
  /// Complexity: n log n. Memory: about 60 bytes per sample. Determinism: portable for integers.
  /// Errors: `std::invalid_argument` if the capacity is not positive or a demand is negative or not
  /// finite, `std::length_error` if there are more than 2^32 - 1 samples. Source of the divide and
  /// conquer over cuts: Galil and Park, "Dynamic programming with convexity, concavity and
  /// sparsity", 1992.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity) const {
    return detail::with_measured("pack_padded", samples, demand, capacity, [](auto&& input) {
      detail::padded_runs runs(input);
      auto cuts = runs.cuts();
      packing result;
      result.report.lower_bound = cuts.size() - 1;
      result.report.rounds = 1;
      result.report.item_rounds = input.size();
      detail::number_to_index(runs.order(), input.oversized);
      result.groups = grouping(std::move(cuts), std::move(runs.order()));
      result.oversized = std::move(input.oversized);
      return result;
    });
  }
};

/// Packs into the fewest padded batches; see `pack_padded_fn`.
inline constexpr pack_padded_fn pack_padded{};

}  // namespace omnibal::inline v0
