// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The index of open groups by their room in several resources.

#include <omnibal/detail/unset_array.hpp>
#include <omnibal/pack/detail/demand_traits.hpp>
#include <omnibal/pack/detail/hierarchical_bitset.hpp>
#include <omnibal/pack/detail/quantized_axis.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The room of each group.
template <class Layout>
struct group_rooms {
  Layout layout;
  typename Layout::room_type const* rooms;
};

/// An index of the open bins, the groups with room, by cells of their rooms in all resources except
/// for one, the fine resource. Within a cell, groups are sorted by levels of the fine room. The
/// group with the least fine room that a sample fits is therefore found by scanning bits. There are
/// at most 64 cells, so that the bits of one word mark the cells that contain groups.
///
/// If every room has a level of its own, the search is exact. Otherwise, at most `probes` groups of
/// a cell are tried, and a group that fits may be missed.
template <std::size_t R, class T>
class open_bin_index {
 public:
  using amounts_type = resources<R, T>;

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// The place of a group: its list, given by cell and level, and its predecessor in this list.
  struct place {
    std::uint32_t group = none;
    std::uint32_t before = none;
    std::uint32_t cell = 0;
    std::uint32_t level = 0;
  };

  open_bin_index(amounts_type const& capacity, demand_traits<R, T> const& traits,
                 std::size_t sample_count)
      : fine_(traits.finest), next_(sample_count) {
    std::size_t const max_levels = max_levels_for(sample_count);
    std::size_t cells = 1;
    std::size_t kinds_left = 0;
    for (std::size_t r = 0; r != R; ++r) kinds_left += r != fine_ && traits.binds[r] ? 1 : 0;
    auto const divide = [&](std::size_t r, std::size_t most) {
      coarse_[r] = quantized_axis<T>(capacity[r], most);
      strides_[r] = cells;
      cells *= coarse_[r].count();
    };
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_ && traits.binds[r]) divide(r, root(max_cells / cells, kinds_left--));
    }
    // A resource that does not bind gets only the levels that the fine resource does not need.
    std::size_t const fine_levels =
        quantized_axis<T>(capacity[fine_], std::max<std::size_t>(1, max_levels / cells)).count();
    for (std::size_t r = 0; r != R; ++r) {
      if (r == fine_ || traits.binds[r]) continue;
      std::size_t const spare = max_levels / fine_levels / cells;
      divide(r, std::clamp<std::size_t>(spare, 1, max_cells / cells));
    }
    levels_ = quantized_axis<T>(capacity[fine_], std::max<std::size_t>(1, max_levels / cells));
    occupied_ = level_sets(cells, levels_.count());
    heads_.assign(cells * levels_.count(), none);
    for (std::size_t cell = 0; cell != cells; ++cell) {
      for (std::size_t r = 0; r != R; ++r) {
        if (r != fine_) least_[cell][r] = coarse_[r].least(level_of(cell, r));
      }
    }
  }

  /// Returns the group with the least score among the groups that fit, or `none`. Among equal
  /// scores, the lower cell wins. Among equal rooms, the group that has had the room for the
  /// shortest time wins.
  template <class Layout, class Score>
  [[nodiscard]] place find(group_rooms<Layout> const& groups,
                           typename Layout::demand_type const& demand, Score const& score) const {
    amounts_type const amounts = groups.layout.amounts(demand);
    place best;
    bool found = false;
    decltype(score(amounts, amounts)) best_score{};
    std::uint64_t candidates = occupied_.cells() & ~std::uint64_t{0} << cell_of(amounts);
    while (candidates != 0) {
      auto const cell = static_cast<std::size_t>(std::countr_zero(candidates));
      candidates &= candidates - 1;
      if (!reaches(cell, amounts)) continue;
      if (found && !(score(min_left(cell, amounts), amounts) < best_score)) {
        if constexpr (R == 2) break;
        continue;
      }
      place const found_here = first_fit(groups, cell, demand, levels_(amounts[fine_]));
      if (found_here.group == none) continue;
      amounts_type const left = left_after(groups, found_here.group, amounts);
      auto const new_score = score(left, amounts);
      if (found && !(new_score < best_score)) continue;
      found = true;
      best = found_here;
      best_score = new_score;
    }
    return best;
  }

  /// Finds a group, removes it and returns it.
  template <class Layout, class Score>
  std::uint32_t take(group_rooms<Layout> const& groups, typename Layout::demand_type const& demand,
                     Score const& score) {
    place const found = find(groups, demand, score);
    if (found.group != none) remove(found);
    return found.group;
  }

  void remove(place const& taken) {
    std::uint32_t const after = next_[taken.group];
    if (taken.before != none) {
      next_[taken.before] = after;
      return;
    }
    heads_[taken.cell * levels_.count() + taken.level] = after;
    if (after == none) occupied_.erase(occupied_.bucket_of(taken.cell, taken.level));
  }

  /// Adds a group with the room `left`.
  void push(std::uint32_t group, amounts_type const& left) {
    std::size_t const cell = cell_of(left);
    std::size_t const level = levels_(left[fine_]);
    std::uint32_t& head = heads_[cell * levels_.count() + level];
    next_[group] = std::exchange(head, group);
    occupied_.insert(occupied_.bucket_of(cell, level));
  }

 private:
  using level_sets = hierarchical_bitset<true>;

  static constexpr std::size_t max_cells = 64;
  static constexpr unsigned probes = 16;

  /// Returns the maximum number of levels of all cells together: enough to be exact for common
  /// capacities, and limited by the number of samples.
  [[nodiscard]] static std::size_t max_levels_for(std::size_t sample_count) {
    return std::max({std::clamp<std::size_t>(16 * sample_count, 4096, 32768),
                     std::min<std::size_t>(sample_count, 131072), sample_count / 4});
  }

  /// Returns the largest number whose `degree`-th power is at most `value`.
  [[nodiscard]] static std::size_t root(std::size_t value, std::size_t degree) {
    std::size_t result = 1;
    for (;;) {
      std::size_t power = 1;
      for (std::size_t k = 0; k != degree; ++k) power *= result + 1;
      if (power > value) return result;
      ++result;
    }
  }

  [[nodiscard]] std::size_t level_of(std::size_t cell, std::size_t r) const {
    return cell / strides_[r] % coarse_[r].count();
  }

  /// Returns the cell of groups with this room, which is also the lowest cell that can fit these
  /// amounts.
  [[nodiscard]] std::size_t cell_of(amounts_type const& amounts) const {
    std::size_t cell = 0;
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_) cell += strides_[r] * coarse_[r](amounts[r]);
    }
    return cell;
  }

  /// Returns false if the rooms of the cell are too small in a coarse resource.
  [[nodiscard]] bool reaches(std::size_t cell, amounts_type const& amounts) const {
    if constexpr (R > 2) {
      for (std::size_t r = 0; r != R; ++r) {
        if (r != fine_ && level_of(cell, r) < coarse_[r](amounts[r])) return false;
      }
    }
    return true;
  }

  /// Returns the room of a group after these amounts; rounding does not make the room negative.
  template <class Layout>
  [[nodiscard]] static amounts_type left_after(group_rooms<Layout> const& groups,
                                               std::uint32_t group, amounts_type const& amounts) {
    amounts_type left = groups.layout.left(groups.rooms[group]) - amounts;
    if constexpr (std::floating_point<T>) {
      for (T& amount : left.amounts) amount = std::max(T{0}, amount);
    }
    return left;
  }

  /// Returns a lower bound on the room of every group of the cell after these amounts.
  [[nodiscard]] amounts_type min_left(std::size_t cell, amounts_type const& amounts) const {
    amounts_type left{};
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_) left[r] = std::max(T{0}, static_cast<T>(least_[cell][r] - amounts[r]));
    }
    return left;
  }

  template <class Layout>
  [[nodiscard]] place first_fit(group_rooms<Layout> const& groups, std::size_t cell,
                                typename Layout::demand_type const& demand,
                                std::size_t level) const {
    // In the level of the demand, the fine room may be too small; in higher levels, only the rooms
    // in other resources may be too small.
    std::size_t const lowest = level;
    unsigned tried = 0;
    for (; level != levels_.count(); ++level) {
      level = typename level_sets::search(occupied_, level)(cell);
      if (level == level_sets::none) return {};
      place here{heads_[cell * levels_.count() + level], none, static_cast<std::uint32_t>(cell),
                 static_cast<std::uint32_t>(level)};
      while (here.group != none && tried != probes) {
        if (groups.layout.fits(groups.rooms[here.group], demand)) return here;
        ++tried;
        here.before = std::exchange(here.group, next_[here.group]);
      }
      if (level == lowest) tried = 0;
      if (tried == probes) return {};
    }
    return {};
  }

  std::size_t fine_;
  quantized_axis<T> coarse_[R] = {};
  std::size_t strides_[R] = {};
  quantized_axis<T> levels_;
  /// The levels of each cell that contain groups.
  level_sets occupied_;
  amounts_type least_[max_cells] = {};
  std::vector<std::uint32_t> heads_;
  /// The successor of each group in its list.
  unset_array<std::uint32_t> next_;
};

}  // namespace omnibal::inline v0::detail
