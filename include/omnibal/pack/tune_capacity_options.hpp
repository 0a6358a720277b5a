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

/// Which capacities are tried.
enum class capacity_walk {
  each_alone,  ///< every resource varies by itself
  together,    ///< all resources grow in proportion to their mean demands, as OmniBal walks
};

template <std::size_t R, weight T = std::int64_t>
struct tune_capacity_options {
  /// Accepted are mean group sizes from the target to this much above it.
  double width = 1.0;
  /// Capacities are multiples of this. Zero: whole numbers, or any amount of a floating-point
  /// resource.
  resources<R, T> granularity{};
  /// The largest share of the samples that may exceed the capacity alone.
  double most_oversized = 0.01;
  capacity_walk walk = capacity_walk::each_alone;
  /// The largest number of capacities to begin with.
  std::size_t candidates = 128;
  /// The number of samples on which these are tried; more where groups are large.
  std::size_t first_samples = 4096;
  /// The number of capacities that are tried on all samples.
  std::size_t finalists = 6;
  /// From this share of the samples on a demand is common enough for a warning.
  double common_share = 0.1;
  /// Decides which samples are tried first.
  std::uint64_t seed = 0;
};

/// A capacity and the packing of all samples under it.
template <std::size_t R, weight T = std::int64_t>
struct tuned_capacity {
  resources<R, T> capacity{};
  std::size_t groups = 0;
  /// Samples that exceed the capacity alone.
  std::size_t oversized = 0;
  /// Samples in groups over groups; zero where there is no group.
  double mean_group_size = 0.0;
  /// The share of the capacity that is used.
  resources<R, double> fill{};
  /// Infinite where there is no group.
  double objective = 0.0;

  [[nodiscard]] friend bool operator==(tuned_capacity const&, tuned_capacity const&) = default;
};

/// The result of `tune_capacity`.
template <std::size_t R, weight T = std::int64_t>
struct tuned {
  /// Not found where no capacity has a mean group size as wanted and few enough oversized samples:
  /// the rest is the nearest that was found. Infeasible, and no capacity, where there is nothing to
  /// pack.
  solve_status status = solve_status::infeasible;
  /// The best of the finalists.
  tuned_capacity<R, T> best{};
  /// All capacities that were tried on all samples, from the best to the worst.
  std::vector<tuned_capacity<R, T>> finalists;
  /// What is hopeless about the best capacity; empty for most.
  std::vector<capacity_warning<T>> warnings;
  /// The number of calls of the packer.
  std::size_t packings = 0;

  [[nodiscard]] friend bool operator==(tuned const&, tuned const&) = default;
};

}  // namespace omnibal::inline v0
