#pragma once

/// \file
/// Where to cut a cell of groups into one of small and one of large loads.

#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
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

}  // namespace omnibal::inline v0::detail
