// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The linear relaxation of the multiple-choice knapsack problem.

#include <omnibal/config.hpp>
#include <omnibal/detail/pareto_fronts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The linear relaxation: the steps of all hulls in order of their slope while they fit, then a
/// part of the first step that does not fit.
class lp_relaxation {
 public:
  /// Solves the relaxation. Precondition: each single point fits the budget.
  void solve(pareto_fronts const& fronts, std::int64_t budget) {
    find_hull_steps(fronts, steps_);
    whole_ = 0;
    gain_ = 0;
    room_ = budget;
    for (; whole_ != steps_.size() && steps_[whole_].bytes <= room_; ++whole_) {
      room_ -= steps_[whole_].bytes;
      gain_ += steps_[whole_].gain;
    }
    bound_ = gain_;
    if (whole_ == steps_.size()) return;
    bound_ +=
        static_cast<std::int64_t>(static_cast<int128>(broken().gain) * room_ / broken().bytes);
  }

  /// Returns the steps of all hulls, the steepest first.
  [[nodiscard]] std::span<hull_step const> steps() const { return steps_; }
  /// Returns the gain of the steps that fit.
  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// Returns the part of the budget that these steps leave.
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// Returns an upper bound of the gain of all solutions.
  [[nodiscard]] std::int64_t bound() const { return bound_; }
  /// Returns the step of which only a part fits. Precondition: not all steps fit.
  [[nodiscard]] hull_step const& broken() const { return steps_[whole_]; }

  /// Writes the solution of the steps that fit: the index of the point of each layer.
  void write_points(std::span<std::uint32_t> points) const {
    std::fill(points.begin(), points.end(), 0u);
    for (std::size_t s = 0; s != whole_; ++s) points[steps_[s].layer] = steps_[s].point;
  }

 private:
  std::vector<hull_step> steps_;
  std::size_t whole_ = 0;
  std::int64_t gain_ = 0;
  std::int64_t room_ = 0;
  std::int64_t bound_ = 0;
};

}  // namespace omnibal::inline v0::detail
