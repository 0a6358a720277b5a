// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The points that remain after variable fixing by the reduced costs of the linear relaxation.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/recompute/select_recompute/knapsack_problem.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Variable fixing by reduced costs. At the price of the linear relaxation, each point has a loss
/// compared with the best point of its layer. In a solution better than a known solution, the sum
/// of losses is at most the gain of the relaxation beyond the known gain. Points with a larger loss
/// are removed.
///
/// Equal layers become one layer. A point of this layer states how many of the equal layers have
/// each point, so no two points differ only in the order of the layers.
class reduced_problem {
 public:
  /// Builds the problem. Returns false if no solution gains more than `known`. Equal layers stay
  /// separate if they would have more than `max_points` combined points. Precondition: `relaxed` is
  /// solved for the same budget, and its bound is above `known`.
  [[nodiscard]] bool reduce(knapsack_problem const& problem, lp_relaxation const& relaxed,
                            std::int64_t known, std::size_t max_points) {
    pareto_fronts const& fronts = problem.fronts;
    price_ = relaxed.broken();
    slack_ = static_cast<int128>(price_.bytes) * (relaxed.gain() - known - 1) +
             static_cast<int128>(price_.gain) * relaxed.room();
    budget_ = problem.budget;
    base_gain_ = 0;
    nodes_.assign(1, {0, 0, 0});
    fronts_.clear();
    starts_.clear();
    points_.assign(fronts.size(), 0);
    for (std::uint32_t first = 0; first != fronts.size();) {
      auto const front = fronts[first];
      std::uint32_t last = first + 1;
      while (last != fronts.size() && is_equal(front, fronts[last])) ++last;
      find_points(front);
      std::uint32_t width = last - first;
      if (width > 1 && !combine(front, width, max_points)) width = 1;
      for (; first != last; first += width) {
        if (width == 1) static_cast<void>(combine(front, 1, unlimited));
        if (!push(front, first)) return false;
      }
    }
    fronts_.drop_above(budget_);
    return true;
  }

  [[nodiscard]] pareto_fronts const& fronts() const { return fronts_; }
  /// The budget that remains if each front contributes its first point, and the gain of these
  /// points.
  [[nodiscard]] std::int64_t budget() const { return budget_; }
  [[nodiscard]] std::int64_t base_gain() const { return base_gain_; }

  /// Returns the points of all layers if each front contributes the given point.
  [[nodiscard]] std::span<std::uint32_t> expand(std::span<std::uint32_t const> taken) {
    for (std::size_t k = 0; k != taken.size(); ++k) write(starts_[k], fronts_[k][taken[k]].index);
    return points_;
  }

 private:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  /// `count` layers that have the point `point`; `parent` is the node of other layers. Node 0 ends
  /// the list.
  struct node {
    std::uint32_t parent;
    std::uint32_t point;
    std::uint32_t count;
  };

  /// A combination of points for some of the equal layers, and the number of the other layers.
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

  /// Finds the points whose loss is at most the slack, the best point first.
  void find_points(std::span<front_point const> front) {
    std::uint32_t best = 0;
    for (std::uint32_t p = 1; p != front.size(); ++p) {
      if (surplus(front[p], price_) > surplus(front[best], price_)) best = p;
    }
    costs_.assign(1, {0, best});
    for (std::uint32_t p = 0; p != front.size(); ++p) {
      int128 const loss = surplus(front[best], price_) - surplus(front[p], price_);
      if (p != best && loss <= slack_) costs_.push_back({loss, p});
    }
  }

  /// Combines the points of `width` equal layers, without the best point. Returns false if there
  /// are more than `max_points` combinations.
  [[nodiscard]] bool combine(std::span<front_point const> front, std::uint32_t width,
                             std::size_t max_points) {
    partials_.assign(1, {0, 0, slack_, width, 0});
    for (std::size_t c = 1; c < costs_.size(); ++c) {
      take(front, costs_[c]);
      if (partials_.size() > max_points) return false;
    }
    return true;
  }

  /// Extends all combinations by assigning a point to some of their remaining layers.
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

  /// Assigns the best point to the remaining layers of each combination. Adds the Pareto front of
  /// the combinations as the front of the equal layers from `first` on. Returns false if no
  /// combination fits the budget.
  [[nodiscard]] bool push(std::span<front_point const> front, std::uint32_t first) {
    std::uint32_t const best = costs_.front().point;
    combined_.clear();
    by_bytes_.clear();
    for (partial const& one : partials_) {
      int128 const bytes = one.bytes + static_cast<int128>(front[best].bytes) * one.left;
      if (bytes > budget_) continue;
      auto const last_node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({one.node, best, one.left});
      by_bytes_.push_back({static_cast<std::int64_t>(bytes), combined_.size()});
      combined_.push_back(
          {by_bytes_.back().number, one.gain + front[best].gain * one.left, last_node});
    }
    if (combined_.empty()) return false;
    sort_keys(by_bytes_);
    front_point const base = best_from(0);
    budget_ -= base.bytes;
    base_gain_ += base.gain;
    if (combined_.size() == 1) {
      write(first, base.index);
      return true;
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
    return true;
  }

  /// Returns the point with the largest gain among the points with the same bytes as the point at
  /// `place`.
  [[nodiscard]] front_point best_from(std::size_t place) const {
    front_point best = combined_[by_bytes_[place].place];
    while (++place != by_bytes_.size() && by_bytes_[place].number == best.bytes) {
      front_point const& other = combined_[by_bytes_[place].place];
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

  /// The step of the relaxation of which only a part fits. Its gain divided by its bytes is the
  /// price.
  hull_step price_{};
  int128 slack_ = 0;
  std::int64_t budget_ = 0;
  std::int64_t base_gain_ = 0;
  pareto_fronts fronts_;
  /// The first layer of each front.
  std::vector<std::uint32_t> starts_;
  std::vector<node> nodes_;
  std::vector<reduced_cost> costs_;
  std::vector<partial> partials_;
  std::vector<front_point> combined_;
  std::vector<sort_key> by_bytes_;
  std::vector<std::uint32_t> points_;
};

}  // namespace omnibal::inline v0::detail
