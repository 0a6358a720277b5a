// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule of an epoch by rounds of cuts, on any backend.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/exclusive_sum.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

using omnibal::detail::cut_rule;
using omnibal::detail::load_level;
using omnibal::detail::schedule_rng;
using omnibal::detail::schedule_shape;

/// The state that the launches of the algorithm share, in device memory.
template <std::size_t R>
struct schedule_state {
  /// The largest load of each kind, in the unit of the input.
  std::uint64_t largest[R];
  std::int64_t last_waiting[R];
  std::int64_t goals[R];
  cut_rule rule;
  /// The set of lists that is current, 0 or 1.
  std::uint32_t lists;
  std::uint32_t is_done;
  /// The number of blocks that have reached the end of a launch.
  std::uint32_t arrived;
};

inline constexpr std::size_t groups_of_block = 4096;

/// Finds the largest load of each kind; each block reads some groups.
template <class Load>
struct find_largest {
  static constexpr std::size_t R = omnibal::detail::kinds_of<Load>;

  Load const* loads;
  std::size_t count;
  schedule_state<R>* state;
  fault* faults;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const first = index * groups_of_block;
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t const largest = block.reduce(
          smaller_of(groups_of_block, count - first),
          [&](std::size_t i) { return checked_amount(loads[first + i], r, faults); }, take_larger{},
          std::uint64_t{0});
      block.once([&] { atomic_max(&state->largest[r], largest); });
    }
  }
};

/// The groups in random order, carried groups first, and their levels. The levels of kind r begin
/// at r times the number of groups.
struct schedule_items {
  std::uint32_t* groups;
  load_level* levels;
  /// The run of each group in a full step; null if all runs are in full steps.
  std::uint32_t* runs;
};

/// Finds the group of each run, its levels, and its size for the choice of the last step.
template <class Load>
struct write_runs {
  static constexpr std::size_t R = omnibal::detail::kinds_of<Load>;

  Load const* loads;
  device_span<std::uint32_t const> carried;
  std::uint32_t group_count;
  rng::permutation of_carried;
  rng::permutation of_groups;
  schedule_shape shape;
  schedule_state<R> const* state;
  fault* faults;
  schedule_items out;
  /// Null if there is no choice.
  std::uint64_t* sizes;
  std::uint32_t* order;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    auto const run = static_cast<std::uint32_t>(i);
    std::uint32_t const group = group_of(run);
    out.groups[run] = group;
    std::uint32_t size = run < shape.carried ? omnibal::detail::size_of_carried : 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t const largest = state->largest[r];
      int const shift = omnibal::detail::level_shift(largest, shape.ranks);
      load_level const level = checked_amount(loads[group], r, faults) >> shift;
      out.levels[r * shape.runs + run] = level;
      size = larger_of(size, omnibal::detail::share_of_level(level, largest >> shift));
    }
    if (sizes == nullptr) return;
    sizes[run] = size;
    order[run] = run;
  }

 private:
  /// Returns the group of a run. Returns zero and raises a fault if a carried group does not exist.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t group_of(std::uint32_t run) const {
    if (run >= shape.carried) return static_cast<std::uint32_t>(of_groups(run - shape.carried));
    std::uint32_t const group = carried[static_cast<std::size_t>(of_carried(run))];
    if (group < group_count) return group;
    raise(faults, fault::unknown_index);
    return 0;
  }
};

/// Writes the last step behind the full ones and marks its runs.
struct write_last_step {
  schedule_shape shape;
  std::uint32_t first;
  std::uint32_t const* order;
  std::uint32_t const* groups;
  std::uint8_t* is_last;
  std::uint32_t* out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t k) const {
    std::uint32_t const run =
        shape.steps == 0 ? static_cast<std::uint32_t>(k % shape.extra) : order[first + k];
    out[shape.pool() + k] = groups[run];
    if (shape.steps != 0 && k < shape.extra) is_last[run] = 1;
  }
};

/// Measures how long ranks wait in the last step, as one block.
template <class Load>
struct measure_last_step {
  static constexpr int min_blocks = 1;

  static constexpr std::size_t R = omnibal::detail::kinds_of<Load>;

  Load const* loads;
  schedule_shape shape;
  std::uint32_t const* out;
  schedule_state<R>* state;
  fault* faults;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    for (std::size_t r = 0; r != R; ++r) {
      int const shift = omnibal::detail::level_shift(state->largest[r], shape.ranks);
      auto const level = [&](std::size_t k) {
        return checked_amount(loads[out[shape.pool() + k]], r, faults) >> shift;
      };
      std::size_t const count = shape.extra + shape.repeated;
      load_level const largest = block.reduce(count, level, take_larger{}, load_level{0});
      std::uint64_t const sum = block.reduce(count, level, add{}, std::uint64_t{0});
      block.once([&] {
        state->last_waiting[r] = omnibal::detail::waiting_of_step(largest, sum, shape.ranks);
      });
    }
  }
};

/// Returns one for a run in a full step, otherwise zero.
struct count_full {
  std::uint8_t const* is_last;
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::size_t run) const {
    return is_last[run] == 0 ? 1 : 0;
  }
};

/// Copies the data of each run in a full step to its place among these runs.
template <std::size_t R>
struct copy_pool {
  schedule_items from;
  schedule_items to;
  std::uint8_t const* is_last;
  std::uint32_t const* places;
  schedule_shape shape;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    if (is_last[i] != 0) return;
    std::uint32_t const place = places[i];
    to.runs[place] = static_cast<std::uint32_t>(i);
    to.groups[place] = from.groups[i];
    for (std::size_t r = 0; r != R; ++r) {
      to.levels[r * shape.pool() + place] = from.levels[r * shape.runs + i];
    }
  }
};

/// Draws the order of the groups, writes the last step to `out`, and returns the other groups.
template <class Backend, class Load>
[[nodiscard]] schedule_items draw_items(Backend& backend, device_span<Load const> loads,
                                        device_span<std::uint32_t const> carried,
                                        schedule_shape const& shape, schedule_rng const& draws,
                                        schedule_state<omnibal::detail::kinds_of<Load>>* state,
                                        fault* faults, std::uint32_t* out) {
  constexpr std::size_t R = omnibal::detail::kinds_of<Load>;
  backend.fill_zero(state, 1);
  backend.template for_each_block<256>(
      parts_of(loads.size(), groups_of_block), 0,
      find_largest<Load>{loads.data(), loads.size(), state, faults});
  schedule_items const all{backend.template scratch<std::uint32_t>(shape.runs),
                           backend.template scratch<load_level>(R * shape.runs), nullptr};
  bool const has_choice = shape.extra != 0 && shape.steps != 0;
  std::size_t const sorted = has_choice ? shape.runs : 0;
  auto* const sizes = backend.template scratch<std::uint64_t>(sorted);
  auto* const order = backend.template scratch<std::uint32_t>(sorted);
  backend.for_each(shape.runs,
                   write_runs<Load>{loads.data(), carried, static_cast<std::uint32_t>(loads.size()),
                                    draws.groups(carried.size()), draws.groups(loads.size()), shape,
                                    state, faults, all, has_choice ? sizes : nullptr, order});
  if (shape.extra == 0) return all;
  auto* const is_last = backend.template scratch<std::uint8_t>(sorted);
  if (has_choice) {
    backend.sort_pairs(sizes, order, shape.runs, 0, 32);
    backend.fill_zero(is_last, shape.runs);
  }
  std::uint32_t const first = has_choice ? draws.last_step(shape) : 0;
  backend.for_each(shape.extra + shape.repeated,
                   write_last_step{shape, first, order, all.groups, is_last, out});
  backend.template for_each_block<256>(
      1, 0, measure_last_step<Load>{loads.data(), shape, out, state, faults});
  if (!has_choice) return all;

  schedule_items const pool{backend.template scratch<std::uint32_t>(shape.pool()),
                            backend.template scratch<load_level>(R * shape.pool()),
                            backend.template scratch<std::uint32_t>(shape.pool())};
  auto* const places = backend.template scratch<std::uint32_t>(shape.runs);
  exclusive_sum_of(backend, shape.runs, count_full{is_last}, places);
  backend.for_each(shape.runs, copy_pool<R>{all, pool, is_last, places, shape});
  return pool;
}

/// The number of steps whose waiting one block measures, and of places in lists that one block
/// counts.
inline constexpr std::uint32_t steps_of_block = 8;
inline constexpr std::uint32_t places_of_block = 4096;

/// The cells and the lists of their groups, one list after the other: one list in random order and
/// one list sorted by each kind. There are two sets of lists, because each round writes new lists.
template <std::size_t R>
struct schedule_cells {
  schedule_shape shape;
  load_level const* levels;
  schedule_state<R>* state;
  std::uint32_t* lists;
  /// The first step of the cell of each step.
  std::uint32_t* first_of;
  /// The end of each cell, by its first step.
  std::uint32_t* last_of;
  /// The number of steps below the cut of each cell, or zero, by the first step of the cell.
  std::uint32_t* cut_after;
  /// The waiting from the first step of a block up to each of its steps, by kind and step.
  std::uint64_t* waiting;
  /// The waiting in each block, later in the blocks before it, by kind and block.
  std::uint64_t* of_blocks;
  /// 1 for each group below the cut of its cell, 0 for each group above it.
  std::uint8_t* is_low;
  /// The number of groups above the cuts of their cells, by place: before it, in its block.
  std::uint32_t* high_in_block;
  /// The number of groups above the cuts of their cells, by block: in all blocks before it.
  std::uint32_t* high_of_blocks;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t pool() const { return shape.steps * shape.ranks; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t all_places() const {
    return static_cast<std::uint32_t>(R + 1) * pool();
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t step_blocks() const {
    return static_cast<std::uint32_t>(parts_of(shape.steps, steps_of_block));
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t place_blocks() const {
    return static_cast<std::uint32_t>(parts_of(all_places(), places_of_block));
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t* list(std::uint32_t set, std::size_t kind) const {
    return lists + (set * (R + 1) + kind) * pool();
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE load_level level(std::size_t kind, std::uint32_t group) const {
    return levels[kind * pool() + group];
  }
  /// Returns the waiting in a cell, from the prefix sums.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t cell_waiting(std::size_t kind, std::uint32_t first,
                                                              std::uint32_t last) const {
    return static_cast<std::int64_t>(waiting_before(kind, last) - waiting_before(kind, first));
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t waiting_before(std::size_t kind,
                                                                 std::uint32_t step) const {
    if (step == 0) return 0;
    return of_blocks[kind * step_blocks() + (step - 1) / steps_of_block] +
           waiting[kind * shape.steps + step - 1];
  }
  /// Returns the number of groups above cuts before a place of all lists.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t high_before(std::uint32_t place) const {
    return high_of_blocks[place / places_of_block] + high_in_block[place];
  }
};

/// Writes one cell that contains all groups.
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

/// Writes a list of all groups in random order, and its keys.
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

/// The largest of some levels, and their sum.
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

/// Measures how long ranks wait in each step, with a warp for each step and kind. Reads the steps
/// of the random list, or of the list that is sorted by the same kind.
template <std::size_t R>
struct measure_steps {
  static constexpr std::size_t shared_bytes = R * steps_of_block * sizeof(std::uint64_t);

  schedule_cells<R> cells;
  bool of_sorted;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    if (!of_sorted && cells.state->is_done != 0) return;
    std::uint32_t const set = of_sorted ? 0 : cells.state->lists;
    std::uint32_t const first = static_cast<std::uint32_t>(index) * steps_of_block;
    std::uint32_t const count = smaller_of(steps_of_block, cells.shape.steps - first);
    auto* const own = block.template take<std::uint64_t>(R * steps_of_block);
    block.for_each_warp(count * R, [&](auto& warp, std::size_t k) {
      std::size_t const kind = k / count;
      std::uint32_t const step = first + static_cast<std::uint32_t>(k % count);
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
        own[k] = static_cast<std::uint64_t>(
            omnibal::detail::waiting_of_step(all.largest, all.sum, cells.shape.ranks));
      });
    });
    block.for_each(count * R, [&](std::size_t k) {
      std::size_t const kind = k / count;
      std::uint64_t sum = 0;
      for (std::size_t other = kind * count; other <= k; ++other) sum += own[other];
      cells.waiting[kind * cells.shape.steps + first + k % count] = sum;
      if (k % count + 1 == count) cells.of_blocks[kind * cells.step_blocks() + index] = sum;
    });
  }
};

/// Sets the waiting to reach, as one block. This is the waiting that `max_dist_ratio` allows, or a
/// waiting near the least one if that is larger. The sorted lists have the least waiting.
template <std::size_t R>
struct set_goals {
  static constexpr int min_blocks = 1;

  schedule_cells<R> cells;
  std::int64_t allowed;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint32_t const blocks = cells.step_blocks();
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t const* const waiting = cells.of_blocks + r * blocks;
      auto const least = static_cast<std::int64_t>(block.reduce(
          blocks, [&](std::size_t b) { return waiting[b]; }, add{}, std::uint64_t{0}));
      std::int64_t const last = cells.shape.extra != 0 ? cells.state->last_waiting[r] : 0;
      block.once([&] { cells.state->goals[r] = larger_of(allowed - last, least + allowed / 4); });
    }
  }
};

/// Decides which cells are cut in a round, as one block.
template <std::size_t R>
struct find_rule {
  static constexpr int min_blocks = 1;

  schedule_cells<R> cells;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    schedule_state<R>& state = *cells.state;
    if (state.is_done != 0) return;
    std::uint32_t const steps = cells.shape.steps;
    cut_rule rule{};
    rule.kind = R;
    std::int64_t excess = 0;
    for (std::uint32_t r = 0; r != R; ++r) {
      auto const all = static_cast<std::int64_t>(
          block.exclusive_sum(cells.of_blocks + r * cells.step_blocks(), cells.step_blocks()));
      std::int64_t const most = block.reduce(
          steps, [&](std::size_t step) { return waiting(r, step); }, take_larger{},
          std::int64_t{0});
      std::int64_t const above = all - state.goals[r];
      if (most == 0 || above <= excess) continue;
      excess = above;
      rule.kind = r;
      rule.most = most;
    }
    if (rule.kind != R) {
      rule.excess = static_cast<std::uint64_t>(excess);
      rule.saved = block.reduce(
          steps,
          [&](std::size_t step) {
            std::int64_t const own = waiting(rule.kind, step);
            return rule.is_bad(own) ? cut_rule::saving(own) : 0;
          },
          add{}, std::uint64_t{0});
    }
    block.once([&] {
      state.rule = rule;
      state.is_done = rule.kind == R ? 1 : 0;
    });
  }

 private:
  /// Returns the waiting in the cell that begins at a step. Returns zero if no cell begins there or
  /// if the cell cannot be cut.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t waiting(std::size_t kind, std::size_t step) const {
    auto const first = static_cast<std::uint32_t>(step);
    if (cells.first_of[first] != first) return 0;
    std::uint32_t const last = cells.last_of[first];
    return last - first < 2 ? 0 : cells.cell_waiting(kind, first, last);
  }
};

/// Finds the cut of the cell that begins at a step, if there is one, with a block for each step.
template <std::size_t R>
struct find_cut {
  schedule_cells<R> cells;
  schedule_rng draws;
  std::uint32_t round;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    using omnibal::detail::cut_choice;
    using omnibal::detail::uint128;
    auto const first = static_cast<std::uint32_t>(step);
    if (cells.state->is_done != 0 || cells.first_of[first] != first) return;
    cut_rule const rule = cells.state->rule;
    std::uint32_t const size = cells.last_of[first] - first;
    std::uint64_t const word = draws.of_cell(round, first);
    if (size < 2 || !rule.cuts(cells.cell_waiting(rule.kind, first, first + size), word)) {
      block.once([&] { cells.cut_after[first] = 0; });
      return;
    }
    std::size_t const ranks = cells.shape.ranks;
    std::uint32_t const* const sorted =
        cells.list(cells.state->lists, rule.kind + 1) + first * ranks;
    auto const level = [&](std::size_t steps) {
      return cells.level(rule.kind, sorted[steps * ranks - 1]);
    };
    load_level const largest = level(size);
    auto const saved = [&](std::size_t steps) {
      return omnibal::detail::saved_by_cut(steps * ranks, level(steps), largest);
    };
    uint128 const best = block.reduce(
        size - 1, [&](std::size_t k) { return saved(k + 1); }, take_larger{}, uint128{0});
    rng::engine const words(word);
    cut_choice const none{~std::uint64_t{0}, size};
    cut_choice const chosen = block.reduce(
        size - 1,
        [&](std::size_t k) {
          auto const steps = static_cast<std::uint32_t>(k) + 1;
          bool const is_good =
              level(steps) != level(steps + 1) && omnibal::detail::is_good_cut(saved(steps), best);
          return is_good ? cut_choice{words.word(steps), steps} : none;
        },
        take_chosen{}, none);
    block.once([&] { cells.cut_after[first] = best == 0 ? 1 : chosen.steps; });
  }

 private:
  struct take_chosen {
    OMNIBAL_HOST_DEVICE omnibal::detail::cut_choice operator()(
        omnibal::detail::cut_choice const& left, omnibal::detail::cut_choice const& right) const {
      return omnibal::detail::chosen_cut(left, right);
    }
  };
};

/// Marks the groups below the cuts.
template <std::size_t R>
struct mark_low {
  schedule_cells<R> cells;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    schedule_state<R> const& state = *cells.state;
    if (state.is_done != 0) return;
    std::uint32_t const ranks = cells.shape.ranks;
    std::uint32_t const first = cells.first_of[i / ranks];
    std::uint32_t const cut = cells.cut_after[first];
    if (cut == 0) return;
    bool const is_low = i < (first + cut) * ranks;
    cells.is_low[cells.list(state.lists, state.rule.kind + 1)[i]] = is_low ? 1 : 0;
  }
};

/// A position in one of the lists, from a place in all lists.
template <std::size_t R>
struct list_place {
  OMNIBAL_HOST_DEVICE list_place(schedule_cells<R> const& cells, std::uint32_t place)
      : kind(place / cells.pool()), position(place % cells.pool()) {
    group = cells.list(cells.state->lists, kind)[position];
    first = cells.first_of[position / cells.shape.ranks];
    cut = cells.cut_after[first];
  }

  std::uint32_t kind;
  std::uint32_t position;
  /// The group at this position.
  std::uint32_t group;
  /// The first step of its cell.
  std::uint32_t first;
  /// The number of steps below the cut of its cell, or zero.
  std::uint32_t cut;
};

/// Counts the groups above the cuts of their cells. Each block counts at some places, and the last
/// block adds up the counts of the blocks.
template <std::size_t R>
struct count_high {
  schedule_cells<R> cells;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    if (cells.state->is_done != 0) return;
    auto const begin = static_cast<std::uint32_t>(index) * places_of_block;
    std::uint32_t const count = smaller_of(places_of_block, cells.all_places() - begin);
    std::uint32_t* const high = cells.high_in_block + begin;
    block.for_each(count, [&](std::size_t i) {
      list_place<R> const here(cells, begin + static_cast<std::uint32_t>(i));
      high[i] = here.cut != 0 && cells.is_low[here.group] == 0 ? 1 : 0;
    });
    std::uint32_t const sum = block.exclusive_sum(high, count);
    block.once([&] { cells.high_of_blocks[index] = sum; });
    if (!block.is_last_of(cells.place_blocks(), &cells.state->arrived)) return;
    static_cast<void>(block.exclusive_sum(cells.high_of_blocks, cells.place_blocks()));
  }
};

/// Moves the groups below each cut to the front of its cell, in every list and in their order.
template <std::size_t R>
struct move_groups {
  schedule_cells<R> cells;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    if (cells.state->is_done != 0) return;
    auto const place = static_cast<std::uint32_t>(i);
    list_place<R> const here(cells, place);
    std::uint32_t const ranks = cells.shape.ranks;
    std::uint32_t position = here.position;
    if (here.cut != 0) {
      std::uint32_t const begin = here.kind * cells.pool() + here.first * ranks;
      std::uint32_t const high = cells.high_before(place) - cells.high_before(begin);
      position =
          cells.is_low[here.group] != 0 ? position - high : (here.first + here.cut) * ranks + high;
    }
    cells.list(1 - cells.state->lists, here.kind)[position] = here.group;
  }
};

/// Makes a cell of each part of a cut cell.
template <std::size_t R>
struct make_cells {
  schedule_cells<R> cells;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    if (cells.state->is_done != 0) return;
    auto const step = static_cast<std::uint32_t>(i);
    if (step == 0) cells.state->lists = 1 - cells.state->lists;
    std::uint32_t const first = cells.first_of[step];
    std::uint32_t const cut = cells.cut_after[first];
    if (cut == 0) return;
    if (step >= first + cut) cells.first_of[step] = first + cut;
    if (step != first) return;
    cells.last_of[first + cut] = cells.last_of[first];
    cells.last_of[first] = first + cut;
  }
};

/// Returns the cells after at most `rounds` rounds.
template <class Backend, std::size_t R>
[[nodiscard]] schedule_cells<R> cut_cells(Backend& backend, schedule_items const& items,
                                          schedule_shape const& shape, schedule_rng const& draws,
                                          schedule_state<R>* state, std::int64_t allowed,
                                          std::uint32_t rounds) {
  std::size_t const pool = shape.pool();
  std::size_t const places = (R + 1) * pool;
  std::size_t const blocks = parts_of(shape.steps, steps_of_block);
  std::size_t const place_blocks = parts_of(places, places_of_block);
  schedule_cells<R> const cells{shape,
                                items.levels,
                                state,
                                backend.template scratch<std::uint32_t>(2 * places),
                                backend.template scratch<std::uint32_t>(shape.steps),
                                backend.template scratch<std::uint32_t>(shape.steps),
                                backend.template scratch<std::uint32_t>(shape.steps),
                                backend.template scratch<std::uint64_t>(R * shape.steps),
                                backend.template scratch<std::uint64_t>(R * blocks),
                                backend.template scratch<std::uint8_t>(pool),
                                backend.template scratch<std::uint32_t>(places),
                                backend.template scratch<std::uint32_t>(place_blocks)};
  backend.for_each(shape.steps, write_first_cell<R>{cells});
  backend.for_each(pool, write_list<R>{cells, 0, nullptr});
  // One rank never waits.
  if (shape.ranks == 1 || rounds == 0) return cells;
  auto* const keys = backend.template scratch<load_level>(pool);
  for (std::size_t r = 0; r != R; ++r) {
    backend.for_each(pool, write_list<R>{cells, r + 1, keys});
    backend.sort_pairs(keys, cells.list(0, r + 1), pool, 0,
                       omnibal::detail::level_bits(shape.ranks));
  }
  using measure = measure_steps<R>;
  backend.template for_each_block<256>(blocks, measure::shared_bytes, measure{cells, true});
  backend.template for_each_block<512>(1, 0, set_goals<R>{cells, allowed});
  for (std::uint32_t round = 0; round != rounds; ++round) {
    backend.template for_each_block<256>(blocks, measure::shared_bytes, measure{cells, false});
    backend.template for_each_block<512>(1, 0, find_rule<R>{cells});
    backend.template for_each_block<128>(shape.steps, 0, find_cut<R>{cells, draws, round});
    backend.for_each(pool, mark_low<R>{cells});
    backend.template for_each_block<512>(place_blocks, 0, count_high<R>{cells});
    backend.for_each(places, move_groups<R>{cells});
    backend.for_each(shape.steps, make_cells<R>{cells});
  }
  return cells;
}

/// Marks the steps that contain a carried group.
template <std::size_t R>
struct mark_carried {
  schedule_cells<R> cells;
  std::uint32_t const* runs;
  std::uint32_t* has_carried;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const group = cells.list(cells.state->lists, 0)[i];
    std::uint32_t const run = runs == nullptr ? group : runs[group];
    if (run < cells.shape.carried) atomic_max(&has_carried[i / cells.shape.ranks], 1u);
  }
};

/// Returns one for a step with a carried group, otherwise zero, by position in the random order.
struct count_carried {
  rng::permutation order;
  std::uint32_t const* has_carried;
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::size_t position) const {
    return has_carried[order(position)];
  }
};

/// Finds the position of each step in the epoch. Steps with carried groups come first.
struct write_positions {
  rng::permutation order;
  std::uint32_t steps;
  /// Null if no group is carried.
  std::uint32_t const* has_carried;
  std::uint32_t const* carried_before;
  std::uint32_t* positions;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    auto const position = static_cast<std::uint32_t>(i);
    auto const step = static_cast<std::uint32_t>(order(position));
    positions[step] = position;
    if (has_carried == nullptr) return;
    std::uint32_t const before = carried_before[position];
    std::uint32_t const all = carried_before[steps - 1] + has_carried[order(steps - 1)];
    positions[step] = has_carried[step] != 0 ? before : all + position - before;
  }
};

/// Writes the full steps in the order of the epoch.
template <std::size_t R>
struct write_steps {
  schedule_cells<R> cells;
  std::uint32_t const* groups;
  std::uint32_t const* positions;
  std::uint32_t* out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const ranks = cells.shape.ranks;
    std::size_t const step = i / ranks;
    out[std::size_t{positions[step]} * ranks + i % ranks] =
        groups[cells.list(cells.state->lists, 0)[i]];
  }
};

/// Runs `gpu::schedule_steps` on any backend.
template <class Backend, class Load>
void schedule_steps(Backend& backend, device_span<Load const> loads,
                    device_span<std::uint32_t const> carried, schedule_shape const& shape,
                    schedule_rng const& draws, double max_dist_ratio, std::uint32_t rounds,
                    schedule_span const& out) {
  using omnibal::detail::whole_step;
  constexpr std::size_t R = omnibal::detail::kinds_of<Load>;
  if (shape.runs == 0 || loads.empty()) return;
  auto* const state = backend.template scratch<schedule_state<R>>(1);
  schedule_items const items = draw_items(backend, loads, carried, shape, draws, state,
                                          out.faults.data(), out.groups.data());
  if (shape.steps == 0) return;
  double const share =
      (max_dist_ratio < 1.0 ? max_dist_ratio : 1.0) * static_cast<double>(whole_step);
  std::int64_t const allowed =
      static_cast<std::int64_t>(share) * (std::int64_t{shape.steps} + (shape.extra != 0 ? 1 : 0));
  auto const cells = cut_cells(backend, items, shape, draws, state, allowed, rounds);

  auto* const positions = backend.template scratch<std::uint32_t>(shape.steps);
  std::size_t const marked = shape.carried == 0 ? 0 : shape.steps;
  auto* const has_carried = backend.template scratch<std::uint32_t>(marked);
  auto* const carried_before = backend.template scratch<std::uint32_t>(marked);
  auto const order = draws.steps(shape.steps);
  if (marked != 0) {
    backend.fill_zero(has_carried, marked);
    backend.for_each(shape.pool(), mark_carried<R>{cells, items.runs, has_carried});
    exclusive_sum_of(backend, marked, count_carried{order, has_carried}, carried_before);
  }
  backend.for_each(shape.steps,
                   write_positions{order, shape.steps, marked == 0 ? nullptr : has_carried,
                                   carried_before, positions});
  backend.for_each(shape.pool(), write_steps<R>{cells, items.groups, positions, out.groups.data()});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
