// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The linear relaxation, and the choices that its reduced costs leave.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The linear relaxation: steps of all hulls while the steps fit, then a part of the first step
/// that does not fit.
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

  /// The steps of all hulls, steepest first.
  [[nodiscard]] std::span<hull_step const> steps() const { return steps_; }
  /// The gain of the steps that fit.
  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// The rest of the budget after these steps.
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// The upper bound: no solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }
  /// The step of which only a part fits. Precondition: not all steps fit.
  [[nodiscard]] hull_step const& broken() const { return steps_[whole_]; }

  /// Writes the solution of the steps that fit: the point of each layer.
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

/// Variable fixing by reduced costs. At the price of the linear relaxation, a solution that is
/// better than a known one loses against the best point of every layer. The loss is no more than
/// the gain of the relaxation beyond the known gain. Points with a larger loss are removed.
///
/// Equal layers become one layer. Its points contain how many of the layers have each point, so
/// that no two of them differ only in the order of the layers.
class reduced_problem {
 public:
  /// Returns false if no solution gains more than `known`. Layers stay separate if more than
  /// `max_points` counts of their points are left. Precondition: `relaxed` is solved for the same
  /// budget and its bound is above `known`.
  [[nodiscard]] bool reduce(pareto_fronts const& fronts, std::int64_t budget,
                            lp_relaxation const& relaxed, std::int64_t known,
                            std::size_t max_points) {
    step_ = relaxed.broken();
    slack_ = static_cast<int128>(step_.bytes) * (relaxed.gain() - known - 1) +
             static_cast<int128>(step_.gain) * relaxed.room();
    budget_ = budget;
    base_gain_ = 0;
    nodes_.assign(1, {0, 0, 0});
    fronts_.clear();
    starts_.clear();
    points_.assign(fronts.size(), 0);
    for (std::uint32_t first = 0; first != fronts.size();) {
      std::uint32_t last = first + 1;
      while (last != fronts.size() && is_equal(fronts[first], fronts[last])) ++last;
      if (!push(fronts[first], first, last, last - first > 1 ? max_points : nothing)) {
        for (; first != last; ++first) {
          static_cast<void>(push(fronts[first], first, first + 1, nothing));
        }
      }
      first = last;
      if (budget_ < 0) return false;
    }
    fronts_.drop_above(budget_);
    return true;
  }

  [[nodiscard]] pareto_fronts const& fronts() const { return fronts_; }
  /// The rest of the budget, and the gain, if each front contributes its first point.
  [[nodiscard]] std::int64_t budget() const { return budget_; }
  [[nodiscard]] std::int64_t base_gain() const { return base_gain_; }

  /// The points of all layers if each front contributes the given point.
  [[nodiscard]] std::span<std::uint32_t> expand(std::span<std::uint32_t const> taken) {
    for (std::size_t k = 0; k != taken.size(); ++k) write(starts_[k], fronts_[k][taken[k]].index);
    return points_;
  }

 private:
  static constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();

  /// A number of layers with a point; the parent lists the other layers. The first node is the end.
  struct node {
    std::uint32_t parent;
    std::uint32_t point;
    std::uint32_t count;
  };

  /// The bytes and gain of some layers of a run, and the number of layers left.
  struct partial {
    std::int64_t bytes;
    std::int64_t gain;
    int128 slack;
    std::uint32_t left;
    std::uint32_t node;
  };

  struct reduced_cost {
    int128 loss;
    std::uint32_t point;
  };

  [[nodiscard]] static bool is_equal(std::span<front_point const> left,
                                     std::span<front_point const> right) {
    auto const equal = [](front_point const& a, front_point const& b) {
      return a.bytes == b.bytes && a.gain == b.gain;
    };
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), equal);
  }

  /// Adds the equal layers [first, last) as one layer. False if the layer would have too many
  /// points.
  [[nodiscard]] bool push(std::span<front_point const> front, std::uint32_t first,
                          std::uint32_t last, std::size_t max_points) {
    price(front);
    partials_.assign(1, {0, 0, slack_, last - first, 0});
    for (std::size_t c = 1; c < costs_.size(); ++c) {
      take(front, costs_[c]);
      if (partials_.size() > max_points) return false;
    }
    close(first, front);
    return true;
  }

  /// The points that lose no more than the slack, the best one first.
  void price(std::span<front_point const> front) {
    auto const surplus = [&](front_point const& point) {
      return static_cast<int128>(point.gain) * step_.bytes -
             static_cast<int128>(point.bytes) * step_.gain;
    };
    std::uint32_t best = 0;
    for (std::uint32_t p = 1; p != front.size(); ++p) {
      if (surplus(front[p]) > surplus(front[best])) best = p;
    }
    costs_.assign(1, {0, best});
    for (std::uint32_t p = 0; p != front.size(); ++p) {
      int128 const loss = surplus(front[best]) - surplus(front[p]);
      if (p != best && loss <= slack_) costs_.push_back({loss, p});
    }
  }

  /// Assigns a point to some of the remaining layers.
  void take(std::span<front_point const> front, reduced_cost const& cost) {
    front_point const& point = front[cost.point];
    for (std::size_t i = 0, known = partials_.size(); i != known; ++i) {
      partial next = partials_[i];
      std::uint32_t const parent = next.node;
      for (std::uint32_t count = 1; next.left != 0; ++count) {
        if (next.slack < cost.loss || next.bytes > budget_ - point.bytes) break;
        next.slack -= cost.loss;
        next.bytes += point.bytes;
        next.gain += point.gain;
        --next.left;
        next.node = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({parent, cost.point, count});
        partials_.push_back(next);
      }
    }
  }

  /// Assigns the best point to the remaining layers, and keeps the results that are worth their
  /// bytes.
  void close(std::uint32_t first, std::span<front_point const> front) {
    std::uint32_t const best = costs_.front().point;
    made_.clear();
    by_bytes_.clear();
    for (partial const& one : partials_) {
      int128 const bytes = one.bytes + static_cast<int128>(front[best].bytes) * one.left;
      if (bytes > budget_) continue;
      auto const made = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({one.node, best, one.left});
      by_bytes_.push_back({static_cast<std::int64_t>(bytes), made_.size()});
      made_.push_back({by_bytes_.back().number, one.gain + front[best].gain * one.left, made});
    }
    if (made_.empty()) {
      budget_ = -1;
      return;
    }
    sort_keys(by_bytes_);
    front_point const base = best_from(0);
    budget_ -= base.bytes;
    base_gain_ += base.gain;
    if (made_.size() == 1) {
      write(first, base.index);
      return;
    }
    std::int64_t gain = -1;
    for (std::size_t i = 0; i != by_bytes_.size(); ++i) {
      front_point const one = best_from(i);
      if (one.gain - base.gain <= gain) continue;
      gain = one.gain - base.gain;
      fronts_.push({one.bytes - base.bytes, gain, one.index});
    }
    fronts_.close();
    starts_.push_back(first);
  }

  /// The point with the largest gain among the points with the same bytes as the point at `place`.
  [[nodiscard]] front_point best_from(std::size_t place) const {
    front_point best = made_[by_bytes_[place].place];
    while (++place != by_bytes_.size() && by_bytes_[place].number == best.bytes) {
      front_point const& other = made_[by_bytes_[place].place];
      if (other.gain > best.gain) best = other;
    }
    return best;
  }

  void write(std::uint32_t layer, std::uint32_t taken) {
    for (; taken != 0; taken = nodes_[taken].parent) {
      for (std::uint32_t i = 0; i != nodes_[taken].count; ++i)
        points_[layer++] = nodes_[taken].point;
    }
  }

  hull_step step_{};
  int128 slack_ = 0;
  std::int64_t budget_ = 0;
  std::int64_t base_gain_ = 0;
  pareto_fronts fronts_;
  /// The first layer of each front.
  std::vector<std::uint32_t> starts_;
  std::vector<node> nodes_;
  std::vector<reduced_cost> costs_;
  std::vector<partial> partials_;
  std::vector<front_point> made_;
  std::vector<sort_key> by_bytes_;
  std::vector<std::uint32_t> points_;
};

}  // namespace omnibal::inline v0::detail
