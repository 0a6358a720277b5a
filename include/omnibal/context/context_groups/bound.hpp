// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of plans of groups, from the sorted samples. The search reads the results.

#include <omnibal/context/context_groups/instance.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The least makespan that areas, bytes and the longest sample allow. In any plan, the rank-seconds
/// of a sample are the rank-seconds with some degree that ends it in time. These are the canonical
/// degrees of Turek, Wolf and Yu (1992), and Ludwig and Tiwari (1994). The rank-bytes of a sample
/// are no fewer than on one rank, because the bytes of the samples of a group add up. All samples
/// together must fit into the ranks in time, and into the memory of the micro-steps. A rank
/// provides rank-seconds in proportion to its speed, and a group uses all of its ranks at the speed
/// of the slowest one. If capacities differ, a sample may have any degree from its least degree on,
/// even if the sample does not fit on some of these degrees. If the longest samples have more bytes
/// than k micro-steps hold, at least k + 1 micro-steps last as long as the shortest of these
/// samples.
class context_bound {
 public:
  /// Computes the bounds of an instance. Memory: 20 bytes for each sample, reused between calls.
  void measure(context_instance const& instance, context_memory memory) {
    measure_samples(instance);
    double const longest_steps = count_steps(instance, memory);
    double const time = std::max(min_time(instance), longest_steps);
    makespan_ = (instance.fixed_time(min_steps_) + time) * (1 - 4 * context_rounding);
  }

  /// Returns the bound: no schedule has a shorter makespan.
  [[nodiscard]] double makespan() const { return makespan_; }
  /// Returns the least number of micro-steps that holds the bytes of all samples.
  [[nodiscard]] std::uint64_t min_steps() const { return min_steps_; }

  /// Returns the index of the degree on which a sample has the least area.
  [[nodiscard]] std::uint32_t min_area_degree_index(std::size_t sample) const {
    return min_area_degrees_[sample];
  }
  /// Returns the sum of the areas of this sample and of all later samples, which are not longer.
  [[nodiscard]] double area_from(std::size_t sample) const { return areas_from_[sample]; }
  /// Returns the largest of the least times of all samples.
  [[nodiscard]] double longest() const { return longest_; }

 private:
  /// Sets the least number of micro-steps that holds all bytes. Returns the least time of these
  /// micro-steps.
  double count_steps(context_instance const& instance, context_memory memory) {
    double const step_bytes = instance.total_capacity;
    double bytes = 0;
    double seconds = 0;
    min_steps_ = 0;
    for (context_sample const& sample : instance.samples) {
      bytes += static_cast<double>(memory(sample.length, 1));
      // A sum may be rounded up.
      while (bytes * (1 - 1e-9) > step_bytes * static_cast<double>(min_steps_) &&
             min_steps_ != instance.samples.size()) {
        ++min_steps_;
        seconds += instance.min_time_of_length(sample);
      }
    }
    min_steps_ = std::max<std::uint64_t>(min_steps_, 1);
    return seconds * (1 - 4 * context_rounding);
  }

  void measure_samples(context_instance const& instance) {
    auto const& samples = instance.samples;
    std::size_t const count = samples.size();
    min_area_degrees_.resize(count);
    areas_from_.assign(count + 1, 0);
    max_time_from_.assign(count + 1, 0);
    longest_ = 0;
    for (std::size_t i = count; i-- != 0;) {
      context_sample const& sample = samples[i];
      std::uint32_t const degree_index = find_min_area_degree_index(instance, sample);
      min_area_degrees_[i] = degree_index;
      areas_from_[i] = areas_from_[i + 1] + instance.area(sample, degree_index);
      max_time_from_[i] =
          std::max(max_time_from_[i + 1], instance.time_alone(sample, degree_index));
    }
    for (std::size_t i = 0; i != count; ++i) {
      if (max_time_from_[i] <= longest_) break;
      if (instance.time_alone(samples[i], min_area_degrees_[i]) > longest_) {
        longest_ = std::max(longest_, instance.min_time(samples[i]));
      }
    }
  }

  /// Returns the index of the degree with the least area.
  [[nodiscard]] static std::uint32_t find_min_area_degree_index(context_instance const& instance,
                                                                context_sample const& sample) {
    std::uint32_t best = sample.min_degree_index;
    if (instance.areas_ascend) return best;
    for (std::uint32_t d = best + 1; d != instance.degrees.size(); ++d) {
      if (instance.area(sample, d) < instance.area(sample, best)) best = d;
    }
    return best;
  }

  /// Returns the index of the canonical degree: the degree with the least area among the degrees
  /// that end the sample by a deadline. Returns the number of degrees if there is none.
  [[nodiscard]] static std::uint32_t canonical_degree_index(context_instance const& instance,
                                                            context_sample const& sample,
                                                            double deadline) {
    std::uint32_t best = instance.first_in_time(sample, deadline);
    if (instance.areas_ascend || best == instance.degrees.size()) return best;
    double least = instance.shared_area(sample, best, deadline);
    for (std::uint32_t d = best + 1; d != instance.degrees.size(); ++d) {
      if (instance.time_alone(sample, d) > deadline) continue;
      double const area = instance.shared_area(sample, d, deadline);
      if (area >= least) continue;
      least = area;
      best = d;
    }
    return best;
  }

  /// Returns true if the areas allow all samples to end by the deadline.
  [[nodiscard]] bool can_meet(context_instance const& instance, double deadline) const {
    auto const& samples = instance.samples;
    double area = 0;
    std::size_t i = 0;
    for (; max_time_from_[i] > deadline; ++i) {
      std::uint32_t const degree_index = canonical_degree_index(instance, samples[i], deadline);
      if (degree_index == instance.degrees.size()) return false;
      area += instance.shared_area(samples[i], degree_index, deadline);
    }
    return area + areas_from_[i] <= deadline * instance.total_speed;
  }

  /// Returns a lower bound on the time in which all samples can end: the least deadline for which
  /// `can_meet` is true, or up to a ten-millionth less.
  [[nodiscard]] double min_time(context_instance const& instance) const {
    double low =
        std::max(longest_, areas_from_.front() / instance.total_speed) * (1 - 4 * context_rounding);
    if (can_meet(instance, low * (1 + 8 * context_rounding))) return low;
    double high = std::max(2 * low, max_time_from_.front());
    while (!can_meet(instance, high)) {
      low = high;
      high *= 2;
    }
    while (high - low > 1e-7 * high) {
      double const middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      (can_meet(instance, middle) ? high : low) = middle;
    }
    return low * (1 - 4 * context_rounding);
  }

  /// The index of the degree on which each sample has the least area.
  std::vector<std::uint32_t> min_area_degrees_;
  /// For each sample, the sum of the areas and the largest time of this and all later samples, on
  /// the degrees of `min_area_degrees_`.
  std::vector<double> areas_from_;
  std::vector<double> max_time_from_;
  double longest_ = 0;
  double makespan_ = 0;
  std::uint64_t min_steps_ = 1;
};

}  // namespace omnibal::inline v0::detail
