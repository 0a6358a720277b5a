// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bundles of steps in descending order of their loads, while `step_mixer` exchanges them.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/detail/radix_sort.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The distance of the load of a bundle from the mean of all bundles, in each kind.
template <std::size_t R>
using load_distances = std::array<std::int32_t, R>;

/// The bundles of all steps, sorted within each step by descending load of each kind.
template <std::size_t R>
class step_bundles {
 public:
  /// The limit on a distance.
  static constexpr double max_distance = 0x1p29;

  /// Sorts the bundles of each step. `order` assigns the bundles to steps.
  step_bundles(std::span<load_levels<R> const> levels, step_grid const& grid,
               std::span<std::uint32_t const> order)
      : ranks_(grid.ranks), loads_(grid.size()), merged_(2 * ranks_) {
    std::vector<std::uint32_t> step_of(loads_.size());
    for (std::size_t place = 0; place != order.size(); ++place) {
      step_of[order[place]] = static_cast<std::uint32_t>(place / ranks_);
    }
    for (std::size_t r = 0; r != R; ++r) {
      auto const descending =
          order_descending(loads_.size(), [&](std::size_t bundle) { return levels[bundle][r]; });
      std::vector<std::uint32_t> count(grid.steps, 0);
      sorted_[r].resize(loads_.size());
      for (std::uint32_t position = 0; position != descending.size(); ++position) {
        std::uint32_t const bundle = descending[position];
        loads_[bundle].position[r] = position;
        mutable_step(step_of[bundle], r)[count[step_of[bundle]]++] = bundle;
      }
    }
  }

  /// Computes the distances of a kind: the levels minus `mean`, times `scale`.
  void measure_distances(std::span<load_levels<R> const> levels, std::size_t kind, double mean,
                         double scale) {
    for (std::size_t bundle = 0; bundle != loads_.size(); ++bundle) {
      double const distance = (static_cast<double>(levels[bundle][kind]) - mean) * scale;
      loads_[bundle].from_mean[kind] =
          static_cast<std::int32_t>(std::clamp(distance, -max_distance, max_distance));
    }
  }

  [[nodiscard]] load_distances<R> const& distance(std::uint32_t bundle) const {
    return loads_[bundle].from_mean;
  }

  /// Returns the bundles of a step by descending load of a kind.
  [[nodiscard]] std::span<std::uint32_t const> of_step(std::size_t step, std::size_t kind) const {
    return std::span(sorted_[kind]).subspan(step * ranks_, ranks_);
  }
  /// Returns the bundles of a step in some order.
  [[nodiscard]] std::span<std::uint32_t const> of_step(std::size_t step) const {
    return of_step(step, 0);
  }

  /// Returns the bundles of two steps in descending order of a kind, in memory that the next merge
  /// overwrites.
  [[nodiscard]] std::span<std::uint32_t const> merge(std::size_t first_step,
                                                     std::size_t second_step, std::size_t kind) {
    auto const left = of_step(first_step, kind);
    auto const right = of_step(second_step, kind);
    std::merge(left.begin(), left.end(), right.begin(), right.end(), merged_.begin(),
               [&](std::uint32_t a, std::uint32_t b) {
                 return loads_[a].position[kind] < loads_[b].position[kind];
               });
    return merged_;
  }

  /// Divides the bundles of two steps: step `first_step` gets the bundles from `first` to `last` in
  /// descending order of a kind, and step `second_step` the rest. Overwrites the merged bundles.
  void split(std::size_t first_step, std::size_t second_step, std::size_t kind, std::uint32_t first,
             std::uint32_t last) {
    std::uint32_t const first_position = loads_[first].position[kind];
    std::uint32_t const last_position = loads_[last].position[kind];
    for (std::size_t r = 0; r != R; ++r) {
      auto to_first = mutable_step(first_step, r).begin();
      auto to_second = mutable_step(second_step, r).begin();
      for (std::uint32_t const bundle : merge(first_step, second_step, r)) {
        std::uint32_t const position = loads_[bundle].position[kind];
        bool const is_in_first = position >= first_position && position <= last_position;
        (is_in_first ? *to_first++ : *to_second++) = bundle;
      }
    }
  }

  /// Returns the bundles step by step, in each step by ascending number. The order of these numbers
  /// is random.
  [[nodiscard]] std::vector<std::uint32_t> order() const {
    std::vector<std::uint32_t> result = sorted_[0];
    for (auto first = result.begin(); first != result.end();) {
      auto const last = first + static_cast<std::ptrdiff_t>(ranks_);
      std::sort(first, last);
      first = last;
    }
    return result;
  }

 private:
  struct bundle_load {
    load_distances<R> from_mean;
    /// The position among all bundles in descending order of each kind.
    std::array<std::uint32_t, R> position;
  };

  [[nodiscard]] std::span<std::uint32_t> mutable_step(std::size_t step, std::size_t kind) {
    return std::span(sorted_[kind]).subspan(step * ranks_, ranks_);
  }

  std::size_t ranks_;
  std::vector<bundle_load> loads_;
  /// The bundles of all steps, step by step: within each step in descending order of each kind.
  std::array<std::vector<std::uint32_t>, R> sorted_;
  /// The bundles of two steps in descending order of a kind.
  std::vector<std::uint32_t> merged_;
};

}  // namespace omnibal::inline v0::detail
