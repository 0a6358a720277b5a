#pragma once

/// \file
/// The linear relaxation.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The linear relaxation: takes the steps of all hulls while they fit, then a part of the one that
/// does not.
class lp_relaxation {
 public:
  /// Precondition: each point alone fits the budget.
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

  /// The steepest first.
  [[nodiscard]] std::span<hull_step const> steps() const { return steps_; }
  /// Of the steps that fit.
  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// What they leave of the budget.
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// No solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }
  [[nodiscard]] bool takes_all_steps() const { return whole_ == steps_.size(); }
  /// The step of which a part is taken. Precondition: `!takes_all_steps()`.
  [[nodiscard]] hull_step const& broken() const { return steps_[whole_]; }

  /// The solution of the steps that fit: the point of each layer.
  void write_points(std::size_t layers, std::vector<std::uint32_t>& points) const {
    points.assign(layers, 0);
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
