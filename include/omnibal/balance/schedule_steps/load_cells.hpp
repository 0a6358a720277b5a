#pragma once

/// \file
/// Cells of groups with similar loads, out of which steps are dealt at random.

#include <omnibal/balance/detail/schedule_items.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Which groups are below a cut: all with a load below `load`, and of those with this load the
/// first `equal_ones`.
struct cut_place {
  std::uint64_t load;
  std::size_t equal_ones;
};

/// Chooses cuts of one cell after the other. `load(i)` is the load of group i of a cell.
///
/// In steps dealt at random out of a cell ranks wait for about the distance from its loads to the
/// largest one. A cut after k groups saves k times the distance between the loads on both ends of
/// what is above it: a cut in the middle of evenly spread loads, and one that parts the bulk from
/// outliers where there are any.
class cell_cutter {
 public:
  /// Looks at a cell. Precondition: its loads are not all equal.
  template <class Load>
  void look_at(std::size_t groups, Load const& load) {
    smallest_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i != groups; ++i) {
      smallest_ = std::min(smallest_, load(i));
      largest = std::max(largest, load(i));
    }
    auto const range_bits = static_cast<int>(std::bit_width(largest - smallest_));
    auto const most = std::clamp<std::size_t>(groups / 2, fewest_intervals, most_intervals);
    shift_ = std::max(0, range_bits - static_cast<int>(std::bit_width(most)) + 1);
    below_.assign(interval_of(largest) + 2, 0);
    for (std::size_t i = 0; i != groups; ++i) ++below_[interval_of(load(i)) + 1];
    for (std::size_t k = 1; k != below_.size(); ++k) below_[k] += below_[k - 1];
  }

  /// The number of groups below a cut: one at random of those that save at least three quarters
  /// of what the best one saves, so that every epoch has other cells. For evenly spread loads this
  /// is anywhere in the middle half.
  [[nodiscard]] std::size_t draw(rng::engine& random) const {
    std::size_t const last = below_.size() - 2;
    auto const saved = [&](std::size_t k) { return std::uint64_t{below_[k + 1]} * (last - k); };
    std::uint64_t most = 0;
    for (std::size_t k = 0; k != last; ++k) most = std::max(most, saved(k));
    auto const is_good = [&](std::size_t k) { return 4 * saved(k) >= 3 * most; };
    std::uint64_t good_ones = 0;
    for (std::size_t k = 0; k != last; ++k) good_ones += is_good(k) ? 1u : 0u;
    std::uint64_t skipped = rng::below(random, good_ones);
    std::size_t k = 0;
    while (!is_good(k) || skipped-- != 0) ++k;
    return below_[k + 1];
  }

  /// The place of a cut with so many groups below it, of the cell that was looked at.
  template <class Load>
  [[nodiscard]] cut_place place(std::size_t below_cut, std::size_t groups, Load const& load) {
    auto const next = std::upper_bound(below_.begin(), below_.end(), below_cut - 1);
    auto const interval = static_cast<std::size_t>(next - below_.begin()) - 1;
    std::size_t const rank = below_cut - below_[interval] - 1;
    inside_.clear();
    for (std::size_t i = 0; i != groups; ++i) {
      if (interval_of(load(i)) == interval) inside_.push_back(load(i));
    }
    auto const found = inside_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(inside_.begin(), found, inside_.end());
    auto const smaller_ones =
        std::count_if(inside_.begin(), found, [&](std::uint64_t value) { return value < *found; });
    return {*found, rank + 1 - static_cast<std::size_t>(smaller_ones)};
  }

 private:
  static constexpr std::size_t fewest_intervals = 16;
  static constexpr std::size_t most_intervals = 256;

  /// Intervals of loads have equal widths, powers of two.
  [[nodiscard]] std::size_t interval_of(std::uint64_t value) const {
    return static_cast<std::size_t>((value - smallest_) >> shift_);
  }

  std::uint64_t smallest_ = 0;
  int shift_ = 0;
  /// The number of groups below each interval, and of all groups.
  std::vector<std::uint32_t> below_;
  std::vector<std::uint64_t> inside_;
};

/// Items in random order, all in one cell at first. Cells are cut again and again, the one first in
/// whose steps ranks wait the longest. Inside a cell the items stay in random order, so that the
/// first `ranks` of them are a random step of the cell, and so are the next ones. What fills no
/// step is at the end of one of the cells.
template <std::size_t R>
class load_cells {
 public:
  load_cells(std::vector<schedule_item<R>> items, std::size_t ranks, remainder_policy remainder,
             rng::engine& random)
      : items_(std::move(items)), ranks_(ranks), remainder_(remainder), random_(&random) {
    cells_.push_back({0, items_.size() / ranks, items_.size() % ranks, {}});
    enter(0);
  }

  /// Cuts until the waiting in each resource, a sum over all steps without the ranks that have no
  /// group, is at most its goal, or no cell is left that a cut could make evener.
  void cut_to(std::array<std::int64_t, R> const& goals) {
    for (;;) {
      std::size_t worst = R;
      std::int64_t most_excess = 0;
      for (std::size_t r = 0; r != R; ++r) {
        std::int64_t const excess = waiting_[r] - goals[r];
        if (excess <= most_excess || !has_candidate(r)) continue;
        worst = r;
        most_excess = excess;
      }
      if (worst == R) return;
      cut(candidates_[worst].front().cell, worst);
    }
  }

  /// Calls `body(first)` for each full step: its items are the `ranks` ones from `first` on.
  template <class Body>
  void for_each_full_step(Body const& body) const {
    for (cell const& one : cells_) {
      for (std::size_t step = 0; step != one.steps; ++step) body(one.first + step * ranks_);
    }
  }

  /// Calls `body(item)` for each item that fills no step, and then for those of the same cell that
  /// repeat to fill it, if that is asked for.
  template <class Body>
  void for_each_extra(Body const& body) const {
    for (cell const& one : cells_) for_each_extra(one, body);
  }

  [[nodiscard]] std::span<schedule_item<R> const> items() const { return items_; }

 private:
  struct cell {
    std::size_t first;
    std::size_t steps;
    /// The items that fill no step.
    std::size_t extra;
    /// A sum over the steps. Positive in a resource only if its loads differ.
    std::array<std::int64_t, R> waiting;

    [[nodiscard]] std::size_t size(std::size_t ranks) const { return steps * ranks + extra; }
  };

  /// A cell that can be cut, and its waiting in a resource, as they were when it was made.
  struct candidate {
    std::int64_t waiting;
    std::size_t cell;

    [[nodiscard]] friend bool operator<(candidate const& left, candidate const& right) {
      return left.waiting != right.waiting ? left.waiting < right.waiting : left.cell > right.cell;
    }
  };

  template <class Body>
  void for_each_extra(cell const& one, Body const& body) const {
    if (one.extra == 0) return;
    std::size_t const filled = remainder_ == remainder_policy::repeat ? ranks_ : one.extra;
    std::size_t position = one.size(ranks_) - one.extra;
    for (std::size_t k = 0; k != filled; ++k) {
      body(items_[one.first + position]);
      if (++position == one.size(ranks_)) position = 0;
    }
  }

  /// The fewest full steps of a part. Repetitions come from the full steps of their part.
  [[nodiscard]] std::size_t fewest_steps(cell const& part) const {
    return remainder_ == remainder_policy::short_step && part.extra != 0 ? 0 : 1;
  }
  [[nodiscard]] bool can_be_cut(cell const& one) const { return one.steps > fewest_steps(one); }

  /// Makes the first candidate of a resource one that is up to date; false where there is none.
  [[nodiscard]] bool has_candidate(std::size_t r) {
    auto& heap = candidates_[r];
    auto const is_stale = [&](candidate const& one) {
      cell const& now = cells_[one.cell];
      return !can_be_cut(now) || now.waiting[r] != one.waiting;
    };
    while (!heap.empty() && is_stale(heap.front())) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    return !heap.empty();
  }

  /// Measures a cell and makes it a candidate.
  void enter(std::size_t index) {
    cell& one = cells_[index];
    one.waiting = {};
    auto const add = [&](step_loads<R> const& step) {
      for (std::size_t r = 0; r != R; ++r) one.waiting[r] += step.waiting(r, ranks_);
    };
    for (std::size_t s = 0; s != one.steps; ++s) {
      step_loads<R> step;
      for (std::size_t k = 0; k != ranks_; ++k) step.add(items_[one.first + s * ranks_ + k].loads);
      add(step);
    }
    step_loads<R> last;
    for_each_extra(one, [&](schedule_item<R> const& item) { last.add(item.loads); });
    add(last);
    for (std::size_t r = 0; r != R; ++r) {
      waiting_[r] += one.waiting[r];
      if (one.waiting[r] == 0 || !can_be_cut(one)) continue;
      candidates_[r].push_back({one.waiting[r], index});
      std::push_heap(candidates_[r].begin(), candidates_[r].end());
    }
  }

  /// Cuts a cell by the loads of a resource. The lower part keeps its number.
  void cut(std::size_t index, std::size_t r) {
    cell low = cells_[index];
    for (std::size_t k = 0; k != R; ++k) waiting_[k] -= low.waiting[k];
    auto const part = std::span(items_).subspan(low.first, low.size(ranks_));
    auto const load = [&](std::size_t i) { return part[i].loads[r]; };
    cutter_.look_at(part.size(), load);
    std::size_t const below_cut = cutter_.draw(*random_);
    bool const extra_is_low =
        remainder_ == remainder_policy::short_step || rng::below(*random_, part.size()) < below_cut;
    cell high = low;
    (extra_is_low ? high : low).extra = 0;
    std::size_t const full = below_cut - std::min(below_cut, low.extra);
    low.steps = std::clamp(full / ranks_, fewest_steps(low), high.steps - 1);
    high.steps -= low.steps;
    high.first += low.size(ranks_);
    separate(part, cutter_.place(low.size(ranks_), part.size(), load), r);
    cells_[index] = low;
    cells_.push_back(high);
    enter(index);
    enter(cells_.size() - 1);
  }

  /// Moves what is below the cut to the front; both parts keep their order.
  void separate(std::span<schedule_item<R>> part, cut_place const& place, std::size_t r) {
    spare_.resize(std::max(spare_.size(), part.size()));
    std::size_t low = 0;
    std::size_t high = 0;
    std::size_t equal_ones = place.equal_ones;
    for (std::size_t i = 0; i != part.size(); ++i) {
      schedule_item<R> const item = part[i];
      bool const is_equal = item.loads[r] == place.load && equal_ones != 0;
      bool const is_low = item.loads[r] < place.load || is_equal;
      equal_ones -= is_equal ? 1u : 0u;
      part[low] = item;
      spare_[high] = item;
      low += is_low ? 1u : 0u;
      high += is_low ? 0u : 1u;
    }
    std::copy_n(spare_.begin(), high, part.begin() + static_cast<std::ptrdiff_t>(low));
  }

  std::vector<schedule_item<R>> items_;
  std::size_t ranks_;
  remainder_policy remainder_;
  rng::engine* random_;
  std::vector<cell> cells_;
  /// A heap for each resource.
  std::array<std::vector<candidate>, R> candidates_;
  /// A sum over all cells.
  std::array<std::int64_t, R> waiting_{};
  cell_cutter cutter_;
  std::vector<schedule_item<R>> spare_;
};

}  // namespace omnibal::inline v0::detail
