// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Label search over partial solutions of the first layers.

#include <omnibal/config.hpp>
#include <omnibal/detail/function_ref.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/recompute/select_recompute/layer_order.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Label search, a dynamic program over the layers. A label is a partial solution: the sums of
/// bytes and gain of points of the first layers. The search drops labels with more bytes and less
/// gain than another label. It also drops labels whose linear relaxation over the other layers is
/// no better than the best solution. The search completes every label greedily to a solution and
/// keeps the best one.
///
/// If too many labels remain, consecutive labels merge into the label with the fewest bytes. Its
/// ceiling is then the largest gain of the merged labels. No completion of a merged label gains
/// more than a completion from the ceiling, because the merged labels require more bytes. Therefore
/// the ceilings yield an upper bound.
class label_search {
 public:
  /// Searches for a solution that gains more than `known`. If there is none, `points()` is empty.
  /// The search stops if labels would have to merge and `is_enough(gain)` is true, because then no
  /// better bound is required. Precondition: `relaxed` is solved for the same budget, and its bound
  /// is above `known`.
  void run(pareto_fronts const& fronts, std::int64_t budget, lp_relaxation const& relaxed,
           std::size_t max_labels, std::int64_t known, function_ref<bool(std::int64_t)> is_enough) {
    budget_ = budget;
    order_.sort(fronts, relaxed.broken());
    best_ = {known, 0, 0, 0};
    points_.clear();
    is_complete_ = decide_all(fronts, relaxed.steps(), max_labels, is_enough);
    if (best_.gain > known) points_ = points_of_best(fronts.size(), relaxed.steps());
    bound_ = best_.gain;
    for (label const& one : labels_) bound_ = std::max(bound_, one.ceiling);
  }

  /// Returns false if the search stopped before its end.
  [[nodiscard]] bool has_bound() const { return is_complete_; }
  /// Returns an upper bound of the gain of all solutions.
  [[nodiscard]] std::int64_t bound() const { return bound_; }

  /// Returns the index of the point of each layer in the best solution.
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  struct label {
    std::int64_t bytes;
    std::int64_t gain;
    std::int64_t ceiling;
    /// The index of the label that was extended, shifted left by 32 bits, and the point of the last
    /// layer.
    std::uint64_t origin;
  };

  /// A solution: the points of the first `layers` layers, and the first `steps` hull steps of the
  /// other layers.
  struct solution {
    std::int64_t gain;
    std::uint64_t origin;
    std::size_t layers;
    std::size_t steps;
  };

  /// A hull step of a layer that is not decided yet, and the sums over the steps before it.
  struct rest_step {
    std::int64_t bytes_before;
    std::int64_t gain_before;
    std::int64_t bytes;
    std::int64_t gain;
  };

  /// Decides the layers one after the other. Returns false if the search stops early.
  [[nodiscard]] bool decide_all(pareto_fronts const& fronts, std::span<hull_step const> steps,
                                std::size_t max_labels,
                                function_ref<bool(std::int64_t)> is_enough) {
    tolerance_ = 0;
    labels_.assign(1, {0, 0, 0, 0});
    origins_.assign(1, 0);
    starts_.assign(1, 0);
    for (std::uint32_t place = 0; place != fronts.size() && !labels_.empty(); ++place) {
      find_rest(steps, place + 1);
      extend(fronts[order_.layer_at(place)], place);
      if (extended_.size() > max_labels) {
        if (is_enough(best_.gain)) return false;
        merge_neighbors(max_labels);
      }
      labels_.swap(extended_);
      starts_.push_back(origins_.size());
      for (label const& one : labels_) origins_.push_back(one.origin);
    }
    return true;
  }

  /// Finds the hull steps of the layers from place `first` on, as long as they fit into the whole
  /// budget. The last step does not fit or gains nothing.
  void find_rest(std::span<hull_step const> steps, std::uint32_t first) {
    rest_.clear();
    std::int64_t bytes = 0;
    std::int64_t gain = 0;
    for (hull_step const& step : steps) {
      if (order_.place_of(step.layer) < first) continue;
      rest_.push_back({bytes, gain, step.bytes, step.gain});
      if (step.bytes > budget_ - bytes) return;
      bytes += step.bytes;
      gain += step.gain;
    }
    rest_.push_back({bytes, gain, 1, 0});
  }

  /// The next label to which a point is added, and the sum of the bytes of both.
  struct head {
    std::uint64_t bytes;
    std::size_t index;
  };

  /// Extends every label by every point of the layer at a place. The results of one point ascend in
  /// bytes, as the labels do, so the results of all points are merged.
  void extend(std::span<front_point const> front, std::uint32_t place) {
    auto const bytes_of = [&](std::size_t index, front_point const& point) {
      return static_cast<std::uint64_t>(labels_[index].bytes) +
             static_cast<std::uint64_t>(point.bytes);
    };
    extended_.clear();
    heads_.clear();
    for (front_point const& point : front) heads_.push_back({bytes_of(0, point), 0});
    std::size_t step = rest_.size() - 1;
    while (true) {
      std::size_t const point = least_head();
      head& taken = heads_[point];
      if (taken.bytes > static_cast<std::uint64_t>(budget_)) return;
      label const& from = labels_[taken.index];
      label const next{static_cast<std::int64_t>(taken.bytes), from.gain + front[point].gain,
                       from.ceiling + front[point].gain, taken.index << 32 | point};
      ++taken.index;
      taken.bytes = taken.index == labels_.size() ? std::numeric_limits<std::uint64_t>::max()
                                                  : bytes_of(taken.index, front[point]);
      while (rest_[step].bytes_before > budget_ - next.bytes) --step;
      complete(next, place, step);
      if (is_promising(next, rest_[step])) keep(next);
    }
  }

  /// Returns the index of the point whose next result has the fewest bytes. The loop has no
  /// branches, because a branch on the result would be unpredictable.
  [[nodiscard]] std::size_t least_head() const {
    std::size_t least = 0;
    std::uint64_t bytes = heads_[0].bytes;
    for (std::size_t p = 1; p != heads_.size(); ++p) {
      bool const is_less = heads_[p].bytes < bytes;
      least = is_less ? p : least;
      bytes = is_less ? heads_[p].bytes : bytes;
    }
    return least;
  }

  /// Completes a label greedily with the first `step` remaining steps. Keeps the solution if it is
  /// the best so far.
  void complete(label const& next, std::uint32_t place, std::size_t step) {
    std::int64_t const gain = next.gain + rest_[step].gain_before;
    if (gain > best_.gain) best_ = {gain, next.origin, place + std::size_t{1}, step};
  }

  /// Returns true if the linear relaxation of the other layers, whose step `broken` fits in part,
  /// allows a better solution than the best one.
  [[nodiscard]] bool is_promising(label const& next, rest_step const& broken) const {
    std::int64_t const missing = best_.gain - (next.ceiling + broken.gain_before);
    std::int64_t const room = budget_ - next.bytes - broken.bytes_before;
    return missing < 0 || static_cast<int128>(broken.gain) * room >=
                              (static_cast<int128>(missing) + 1) * broken.bytes;
  }

  /// Adds `next` unless the previous label has at least the same gain.
  void keep(label const& next) {
    if (!extended_.empty() && next.gain <= extended_.back().gain) {
      extended_.back().ceiling = std::max(extended_.back().ceiling, next.ceiling);
    } else {
      extended_.push_back(next);
    }
  }

  /// Calls `visit(label, begins)` for each label; `begins` is true if the label begins a new run. A
  /// label begins a new run if its ceiling exceeds the gain of the first label of the run by more
  /// than `tolerance`.
  template <class Visit>
  static void for_runs(std::vector<label> const& labels, std::int64_t tolerance,
                       Visit const& visit) {
    std::int64_t first_gain = 0;
    for (label const& one : labels) {
      bool const begins = &one == labels.data() || one.ceiling - first_gain > tolerance;
      if (begins) first_gain = one.gain;
      visit(one, begins);
    }
  }

  /// Merges each run of labels into one label. The tolerance is about the smallest with at most
  /// `max_labels` runs.
  void merge_neighbors(std::size_t max_labels) {
    auto const runs = [&] {
      std::size_t count = 0;
      for_runs(extended_, tolerance_, [&](label const&, bool begins) { count += begins ? 1 : 0; });
      return count;
    };
    std::int64_t highest = 0;
    for (label const& one : extended_) highest = std::max(highest, one.ceiling);
    std::int64_t const range = highest - extended_.front().gain;
    // The list changes little from layer to layer, so the required tolerance changes little too.
    if (tolerance_ == 0) tolerance_ = range / 64 / static_cast<std::int64_t>(extended_.size());
    tolerance_ = std::min(tolerance_ - tolerance_ / 16, range);
    while (runs() > max_labels) tolerance_ += std::min(range - tolerance_, tolerance_ / 4 + 1);

    std::size_t kept = 0;
    for_runs(extended_, tolerance_, [&](label const& one, bool begins) {
      if (begins) {
        extended_[kept++] = one;
      } else {
        extended_[kept - 1].ceiling = std::max(extended_[kept - 1].ceiling, one.ceiling);
      }
    });
    extended_.resize(kept);
  }

  [[nodiscard]] std::vector<std::uint32_t> points_of_best(std::size_t layers,
                                                          std::span<hull_step const> steps) const {
    std::vector<std::uint32_t> result(layers, 0);
    std::uint64_t origin = best_.origin;
    for (std::size_t layer = best_.layers; layer != 0; --layer) {
      result[order_.layer_at(layer - 1)] = static_cast<std::uint32_t>(origin);
      origin = origins_[starts_[layer - 1] + (origin >> 32)];
    }
    std::size_t left = best_.steps;
    for (std::size_t s = 0; left != 0; ++s) {
      if (order_.place_of(steps[s].layer) < best_.layers) continue;
      result[steps[s].layer] = steps[s].point;
      --left;
    }
    return result;
  }

  std::int64_t budget_ = 0;
  std::int64_t tolerance_ = 0;
  std::int64_t bound_ = 0;
  bool is_complete_ = false;
  solution best_{};
  layer_order order_;
  std::vector<rest_step> rest_;
  std::vector<label> labels_;
  std::vector<label> extended_;
  std::vector<head> heads_;
  /// The origins of the labels of all layers, and the index at which the origins of each layer
  /// begin.
  std::vector<std::uint64_t> origins_;
  std::vector<std::size_t> starts_;
  std::vector<std::uint32_t> points_;
};

}  // namespace omnibal::inline v0::detail
