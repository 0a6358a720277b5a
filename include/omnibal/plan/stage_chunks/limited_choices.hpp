// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices of layers within a limit on transient bytes, as steps of convex hulls.

#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The choices of all layers with transient bytes of at most a limit. A layer begins with the
/// choice of the fewest bytes. Each step leads to the next corner of the convex hull of its
/// choices, with more bytes and less time. If a layer has no choice within the limit, its times are
/// zero.
class limited_choices {
 public:
  struct step {
    std::int64_t bytes;
    std::int64_t gain;
    /// The choice to which the step leads, as in `whole_choice::index`.
    std::uint32_t choice;
  };

  limited_choices(integer_layers const& layers, std::int64_t max_transient_bytes)
      : steps_(layers.size()) {
    pareto_fronts fronts;
    for (std::size_t l = 0; l != layers.size(); ++l) {
      std::int64_t const time = push_front(layers[l], max_transient_bytes, fronts);
      first_times_.push_back(first_times_.back() + time);
      min_times_.push_back(min_times_.back() + time - fronts[l].back().gain);
    }
    std::vector<hull_step> hull;
    find_hull_steps(fronts, hull);
    for (hull_step const& one : hull) {
      steps_[one.layer].push_back({one.bytes, one.gain, fronts[one.layer][one.point].index});
    }
  }

  /// Returns the time of the layers [first, last) if each layer has its choice with the fewest
  /// bytes.
  [[nodiscard]] std::int64_t first_time(std::size_t first, std::size_t last) const {
    return first_times_[last] - first_times_[first];
  }
  /// Returns the time of the layers [first, last) if each layer has its fastest choice.
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last) const {
    return min_times_[last] - min_times_[first];
  }
  [[nodiscard]] std::span<step const> steps(std::size_t layer) const { return steps_[layer]; }
  /// Returns the index of the choice of a layer after `steps` steps.
  [[nodiscard]] std::uint32_t choice_after(std::size_t layer, std::size_t steps) const {
    return steps == 0 ? first_choices_[layer] : steps_[layer][steps - 1].choice;
  }

 private:
  /// Adds the Pareto front of a layer to `fronts`; returns the time of its first choice.
  std::int64_t push_front(std::span<whole_choice const> layer, std::int64_t max_transient_bytes,
                          pareto_fronts& fronts) {
    whole_choice const* first = nullptr;
    std::int64_t time = 0;
    for (auto const& way : layer) {
      if (way.transient_bytes > max_transient_bytes) continue;
      if (first == nullptr) {
        first = &way;
      } else if (way.time >= time) {
        continue;
      }
      time = way.time;
      fronts.push({way.bytes - first->bytes, first->time - way.time, way.index});
    }
    if (first == nullptr) fronts.push({0, 0, 0});
    fronts.close();
    first_choices_.push_back(first == nullptr ? 0 : first->index);
    return first == nullptr ? 0 : first->time;
  }

  /// The sums of the times of the first choices, and of the fastest choices, of the layers before
  /// each layer.
  std::vector<std::int64_t> first_times_{0};
  std::vector<std::int64_t> min_times_{0};
  std::vector<std::uint32_t> first_choices_;
  std::vector<std::vector<step>> steps_;
};

}  // namespace omnibal::inline v0::detail
