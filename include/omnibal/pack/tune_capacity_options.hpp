// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The options and the result of `tune_capacity`.

#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// The set of capacities that `tune_capacity` tries.
enum class capacity_walk {
  each_alone,  ///< varies every resource by itself
  together,    ///< grows all resources in proportion to their mean demands, as OmniBal does
};

template <std::size_t R, scalar_measure T = std::int64_t>
struct tune_capacity_options {
  /// The largest accepted excess of the mean group size over the target; a mean below the target is
  /// not accepted.
  double width = 1.0;
  /// The unit of which capacities are multiples. Zero: whole numbers, or any amount of a
  /// floating-point resource.
  resources<R, T> granularity{};
  /// The largest share of the samples that may exceed the capacity by themselves.
  double max_oversized = 0.01;
  capacity_walk walk = capacity_walk::each_alone;
  /// The largest number of capacities in the first round.
  std::size_t candidates = 128;
  /// The number of samples on which the first capacities are tried. The number is larger if groups
  /// are large.
  std::size_t first_samples = 4096;
  /// The number of capacities that are tried on all samples.
  std::size_t finalists = 6;
  /// The least share of the samples that makes a demand common enough for a warning.
  double common_share = 0.1;
  /// The seed of the choice of the samples that are tried first.
  std::uint64_t seed = 0;
};

/// A capacity and the packing of all samples under it.
template <std::size_t R, scalar_measure T = std::int64_t>
struct tuned_capacity {
  resources<R, T> capacity{};
  std::size_t groups = 0;
  /// The number of samples that exceed the capacity by themselves.
  std::size_t oversized = 0;
  /// The number of samples in groups divided by the number of groups; zero if there is no group.
  double mean_group_size = 0.0;
  /// The used share of the capacity of each resource.
  resources<R, double> fill{};
  /// The value of the objective; infinite if there is no group.
  double objective = 0.0;

  [[nodiscard]] friend bool operator==(tuned_capacity const&, tuned_capacity const&) = default;
};

/// The result of `tune_capacity`.
template <std::size_t R, scalar_measure T = std::int64_t>
struct tuned {
  /// Not found if no capacity has an accepted mean group size and few enough oversized samples; the
  /// other members then describe the nearest capacity that was found. Infeasible, without a
  /// capacity, if there is nothing to pack.
  solve_status status = solve_status::infeasible;
  /// The best capacity of the finalists.
  tuned_capacity<R, T> best{};
  /// All capacities that were tried on all samples, from the best to the worst.
  std::vector<tuned_capacity<R, T>> finalists;
  /// The warnings for the best capacity; usually empty.
  std::vector<capacity_warning<T>> warnings;
  /// The number of calls of the packer.
  std::size_t packings = 0;

  [[nodiscard]] friend bool operator==(tuned const&, tuned const&) = default;
};

}  // namespace omnibal::inline v0
