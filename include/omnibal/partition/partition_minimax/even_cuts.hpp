// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balanced stages of a chain whose loads must not exceed a limit.

#include <omnibal/detail/search.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Memory of `even_cuts`.
template <class T>
struct even_cuts_memory {
  std::vector<std::uint32_t> leftmost;  ///< the leftmost boundaries
  std::vector<std::uint32_t> first;     ///< of the window of each boundary
  std::vector<std::uint32_t> last;      ///< of the window of each boundary
  std::vector<std::size_t> offsets;     ///< of the cells of each window
  std::vector<std::uint32_t> before;    ///< for each cell the boundary before it
  std::vector<T> loads;                 ///< for each cell the smallest load before it

  /// Returns the number of cells, and the number of pairs of cells, that a search may visit.
  [[nodiscard]] static std::size_t budget(std::size_t layers, std::size_t stages) {
    return layers + stages + 512;
  }

  void reset(std::size_t layers, std::size_t stages) {
    first.resize(stages + 1);
    last.resize(stages + 1);
    offsets.resize(stages + 1);
    before.reserve(budget(layers, stages));
    loads.reserve(budget(layers, stages));
  }
};

/// Balances the cuts of a chain whose largest load is given: maximizes the smallest load, and then
/// makes adjacent stages more similar.
///
/// Each boundary has a window: the positions at which all loads can be above a bound and at most
/// the limit. Dynamic programming over the windows then maximizes the smallest load.
template <class T>
class even_cuts {
 public:
  /// `fewest` is the smallest number of layers of a stage, zero or one. `rightmost` contains the
  /// rightmost boundaries. `memory.leftmost` contains the leftmost boundaries with loads up to
  /// `limit`.
  even_cuts(std::span<T const> sums, T limit, std::size_t fewest,
            std::span<std::uint32_t const> rightmost, even_cuts_memory<T>& memory)
      : sums_(sums),
        stages_(rightmost.size() - 1),
        limit_(limit),
        fewest_(fewest),
        rightmost_(rightmost),
        memory_(memory) {
    memory_.reset(layers(), stages_);
  }

  void run(std::vector<std::uint32_t>& boundaries) const {
    cut_near_means(boundaries);
    T const least = smallest_load(boundaries);
    // The smallest load is at most the mean, so a search above the mean is useless.
    if (least < sums_.back() / static_cast<T>(stages_)) cut_above(least, boundaries);
    smooth(boundaries);
  }

 private:
  [[nodiscard]] std::size_t layers() const { return sums_.size() - 1; }
  [[nodiscard]] T load(std::size_t first, std::size_t last) const {
    return static_cast<T>(sums_[last] - sums_[first]);
  }

  [[nodiscard]] T smallest_load(std::span<std::uint32_t const> boundaries) const {
    T result = sums_.back();
    for (std::size_t s = 0; s != stages_; ++s) {
      result = std::min(result, load(boundaries[s], boundaries[s + 1]));
    }
    return result;
  }

  /// Ends each stage at the first position that reaches the mean of the remaining layers, within
  /// the limit and the leftmost boundaries.
  void cut_near_means(std::vector<std::uint32_t>& boundaries) const {
    auto const& leftmost = memory_.leftmost;
    boundaries.assign(leftmost.begin(), leftmost.end());
    std::size_t first = 0;
    for (std::size_t s = 1; s != stages_; ++s) {
      std::size_t const low = std::max<std::size_t>(first + fewest_, leftmost[s]);
      std::size_t const most = layers() - (stages_ - s) * fewest_;
      T const start = sums_[first];
      auto const end_within = [&](std::size_t begin, std::size_t end, T load) {
        return first_false(begin, end, [=, next = sums_.data() + 1](std::size_t l) {
          return next[l] - start <= load;
        });
      };
      std::size_t const high = end_within(low, std::max(low, most), limit_);
      T const mean = min_largest(static_cast<T>(sums_.back() - start), stages_ - s + 1);
      std::size_t last = end_within(low, high, mean);
      if (last != high && sums_[last] - start < mean) ++last;
      boundaries[s] = static_cast<std::uint32_t>(last);
      first = last;
    }
  }

  /// Sets the windows to the positions at which all loads can be above `least`. Returns false if a
  /// window is empty.
  [[nodiscard]] bool narrow(T least) const {
    auto& [leftmost, first, last, offsets, before, loads] = memory_;
    first[0] = 0;
    for (std::size_t s = 1; s != stages_; ++s) {
      T const start = sums_[first[s - 1]];
      std::size_t const low = std::max<std::size_t>(first[s - 1] + 1, leftmost[s]);
      if (low > rightmost_[s]) return false;
      first[s] = static_cast<std::uint32_t>(first_false(
          low, rightmost_[s] + std::size_t{1},
          [=, sums = sums_.data()](std::size_t l) { return sums[l] - start <= least; }));
      if (first[s] > rightmost_[s]) return false;
    }
    last[stages_] = first[stages_] = static_cast<std::uint32_t>(layers());
    for (std::size_t s = stages_; s-- != 1;) {
      T const end = sums_[last[s + 1]];
      std::size_t const high = std::min<std::size_t>(rightmost_[s], last[s + 1] - std::size_t{1});
      if (high < first[s]) return false;
      std::size_t const after =
          first_false(first[s], high + 1,
                      [=, sums = sums_.data()](std::size_t l) { return end - sums[l] > least; });
      if (after == first[s]) return false;
      last[s] = static_cast<std::uint32_t>(after - 1);
    }
    last[0] = 0;
    return true;
  }

  /// Sets the boundaries to cuts whose smallest load is largest, if a smallest load above `least`
  /// is possible and the budget suffices.
  void cut_above(T least, std::vector<std::uint32_t>& boundaries) const {
    if (!narrow(least)) return;
    auto& [leftmost, first, last, offsets, before, loads] = memory_;
    std::size_t cells = 0;
    for (std::size_t s = 0; s <= stages_; ++s) {
      offsets[s] = cells;
      cells += last[s] - first[s] + std::size_t{1};
    }
    std::size_t pairs = even_cuts_memory<T>::budget(layers(), stages_);
    if (cells > pairs) return;
    before.resize(cells);
    loads.resize(cells);
    loads[0] = sums_.back();
    for (std::size_t s = 1; s <= stages_; ++s) {
      if (!extend(s, least, pairs)) return;
    }
    for (std::size_t s = stages_; s != 0; --s) {
      boundaries[s - 1] = before[offsets[s] + boundaries[s] - first[s]];
    }
  }

  /// Finds, for each position of a boundary, the largest possible smallest load before it and the
  /// previous boundary that leads to it. If there are no cuts above `least`, the load is at most
  /// `least`. Returns false if this is true for all positions or if the budget of pairs is spent.
  [[nodiscard]] bool extend(std::size_t s, T least, std::size_t& pairs) const {
    auto& [leftmost, first, last, offsets, before, loads] = memory_;
    auto const loads_before =
        std::span(std::as_const(loads)).subspan(offsets[s - 1], offsets[s] - offsets[s - 1]);
    std::size_t const begin = first[s - 1];
    T const max_before = *std::max_element(loads_before.begin(), loads_before.end());
    std::size_t end = begin;
    bool is_reached = false;
    for (std::size_t position = first[s]; position <= last[s]; ++position) {
      while (end <= last[s - 1] && end < position && load(end, position) > least) ++end;
      T best = least;
      std::size_t best_before = begin;
      for (std::size_t l = end; l-- != begin && best < max_before;) {
        T const added = load(l, position);
        if (added > limit_) break;
        if (pairs-- == 0) return false;
        T const smallest = std::min(loads_before[l - begin], added);
        if (smallest > best) {
          best = smallest;
          best_before = l;
        }
      }
      std::size_t const cell = offsets[s] + position - first[s];
      loads[cell] = best;
      before[cell] = static_cast<std::uint32_t>(best_before);
      is_reached = is_reached || best > least;
    }
    return is_reached;
  }

  /// Moves single boundaries as long as the smaller of the two adjacent stages grows. The moves end
  /// after a sweep without changes; the limit on sweeps is seldom reached.
  void smooth(std::vector<std::uint32_t>& boundaries) const {
    constexpr std::size_t max_sweeps = 4;
    bool is_changed = true;
    for (std::size_t sweep = 0; sweep != max_sweeps && is_changed; ++sweep) {
      is_changed = false;
      for (std::size_t s = 1; s != stages_; ++s) {
        while (smooth_boundary(boundaries, s)) is_changed = true;
      }
    }
  }

  [[nodiscard]] bool smooth_boundary(std::vector<std::uint32_t>& boundaries, std::size_t s) const {
    std::size_t const first = boundaries[s - 1];
    std::size_t const last = boundaries[s + 1];
    std::size_t const cut = boundaries[s];
    T const before = load(first, cut);
    T const after = load(cut, last);
    bool const is_left = after < before;
    if (before == after || (is_left ? cut - first : last - cut) <= fewest_) return false;
    std::size_t const moved = is_left ? cut - 1 : cut + 1;
    T const next_before = load(first, moved);
    T const next_after = load(moved, last);
    if (std::max(next_before, next_after) > limit_) return false;
    if (std::min(next_before, next_after) <= std::min(before, after)) return false;
    boundaries[s] = static_cast<std::uint32_t>(moved);
    return true;
  }

  std::span<T const> sums_;
  std::size_t stages_;
  T limit_;
  std::size_t fewest_;
  std::span<std::uint32_t const> rightmost_;
  even_cuts_memory<T>& memory_;
};

}  // namespace omnibal::inline v0::detail
