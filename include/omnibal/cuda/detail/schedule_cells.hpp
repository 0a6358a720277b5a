#pragma once

/// \file
/// Cells of groups with similar loads on the device, and how long ranks wait in their steps.

#include <omnibal/balance/detail/schedule_rules.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/schedule_items.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The cells and the lists of their groups: in random order and sorted by each kind, one list after
/// the other, twice, as each round writes them anew.
template <std::size_t R>
struct schedule_cells {
  schedule_shape shape;
  load_level const* levels;
  schedule_state<R>* state;
  std::uint32_t* lists;
  /// By step: the first of its cell. By first step of a cell: its end, and the steps below its cut
  /// or zero.
  std::uint32_t* first_of;
  std::uint32_t* last_of;
  std::uint32_t* cut_after;
  /// By step for each kind: the waiting, and the sums of it up to the step.
  std::uint64_t* waiting;
  /// By group: whether it is below the cut.
  std::uint8_t* is_low;
  /// By place in a list: how many groups before it are above the cuts of their cells.
  std::uint32_t* high_before;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t pool() const { return shape.pool(); }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t* list(std::uint32_t set, std::size_t kind) const {
    return lists + (set * (R + 1) + kind) * pool();
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE load_level level(std::size_t kind, std::uint32_t group) const {
    return levels[kind * pool() + group];
  }
  /// The waiting in a cell, from the sums.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t cell_waiting(std::size_t kind, std::uint32_t first,
                                                              std::uint32_t last) const {
    std::size_t const begin = kind * shape.steps + first;
    std::uint64_t const before = begin == 0 ? 0 : waiting[begin - 1];
    return static_cast<std::int64_t>(waiting[kind * shape.steps + last - 1] - before);
  }
};

/// All groups in one cell.
template <std::size_t R>
struct write_first_cell {
  schedule_cells<R> cells;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t step) const {
    cells.first_of[step] = 0;
    if (step != 0) return;
    cells.last_of[0] = cells.shape.steps;
    cells.state->lists = 0;
    cells.state->is_done = 0;
  }
};

/// The keys of a list, all groups in random order.
template <std::size_t R>
struct write_list {
  schedule_cells<R> cells;
  std::size_t kind;
  /// Null for the list that is not sorted.
  load_level* keys;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    auto const group = static_cast<std::uint32_t>(i);
    cells.list(0, kind)[i] = group;
    if (keys != nullptr) keys[i] = cells.level(kind - 1, group);
  }
};

/// The largest of some levels and their sum.
struct level_spread {
  load_level largest;
  std::uint64_t sum;
};
struct join_levels {
  OMNIBAL_HOST_DEVICE level_spread operator()(level_spread const& left,
                                              level_spread const& right) const {
    return {larger_of(left.largest, right.largest), left.sum + right.sum};
  }
};

inline constexpr std::size_t steps_of_block = 8;

/// How long ranks wait in each step, a warp for each: in the steps of the random list, or of the
/// lists sorted by the same kind.
template <std::size_t R>
struct measure_steps {
  schedule_cells<R> cells;
  bool of_sorted;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    if (!of_sorted && cells.state->is_done != 0) return;
    std::uint32_t const set = of_sorted ? 0 : cells.state->lists;
    std::size_t const first = index * steps_of_block;
    std::size_t const count = smaller_of(steps_of_block, cells.shape.steps - first);
    block.for_each_warp(count * R, [&](auto& warp, std::size_t k) {
      std::size_t const kind = k / count;
      std::size_t const step = first + k % count;
      std::uint32_t const* const groups =
          cells.list(set, of_sorted ? kind + 1 : 0) + step * cells.shape.ranks;
      level_spread const all = warp.reduce(
          cells.shape.ranks,
          [&](std::size_t i) {
            load_level const level = cells.level(kind, groups[i]);
            return level_spread{level, level};
          },
          join_levels{}, level_spread{0, 0});
      warp.once([&] {
        cells.waiting[kind * cells.shape.steps + step] = static_cast<std::uint64_t>(
            omnibal::detail::waiting_of_step(all.largest, all.sum, cells.shape.ranks));
      });
    });
  }
};

/// The waiting to reach: what the tolerance allows, or nearly the least, that of the sorted lists.
/// As one block.
template <std::size_t R>
struct set_goals {
  schedule_cells<R> cells;
  std::int64_t allowed;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t const* const waiting = cells.waiting + r * cells.shape.steps;
      auto const least = static_cast<std::int64_t>(block.reduce(
          cells.shape.steps, [&](std::size_t step) { return waiting[step]; }, add{},
          std::uint64_t{0}));
      std::int64_t const last = cells.shape.extra != 0 ? cells.state->last_waiting[r] : 0;
      block.once([&] { cells.state->goals[r] = larger_of(allowed - last, least + allowed / 4); });
    }
  }
};

}  // namespace omnibal::inline v0::gpu::detail
