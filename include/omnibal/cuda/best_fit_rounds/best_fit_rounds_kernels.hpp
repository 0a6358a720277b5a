// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// `best_fit_rounds` as a sequence of launches.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/sorted_pairs.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/bits.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Tuning constants of the speed of `gpu::best_fit_rounds`; they do not change the result.
struct best_fit_tuning {
  static constexpr int threads = 512;
  /// The smallest number of indices for each thread. With fewer indices for each thread, the
  /// barriers cost more time than the additional threads save.
  static constexpr std::size_t min_indices = 4;
  /// The number of pairs that a block sorts in its shared memory.
  static constexpr std::size_t sort_tile = 1024;
  /// The number of values below each node of the tree of minima.
  static constexpr std::size_t fan_out = 32;
};

/// Returns the number of groups of this capacity that samples with the total size `sum` fill: `sum
/// / capacity`, rounded up.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t filled_groups(
    omnibal::detail::uint128 sum, std::uint64_t capacity) {
  return static_cast<std::uint64_t>((sum + capacity - 1) / capacity);
}

/// The sizes that define the samples of a round, which all threads read.
///
/// A round handles a window: the unpacked samples of at least 3/4 of the largest size. If the
/// largest size is at most 1/64 of the capacity, the window is all unpacked samples. A group with
/// room for a sample of the window, but not for two samples of the largest size, is a single group
/// and receives at most one sample. A group with room for q >= 2 samples of the largest size
/// receives up to q samples.
struct round_window {
  std::uint64_t largest;
  /// The smallest size in the window.
  std::uint64_t least;

  /// Returns the smallest size that belongs to a window whose largest size is `largest`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::uint64_t low(std::uint64_t largest,
                                                                       std::uint64_t capacity) {
    return largest <= capacity / 64 ? 1 : largest - largest / 4;
  }

  /// Returns the number of groups that a round opens: a lower bound on the new groups that any
  /// packing of the window requires in addition to the existing groups. The argument
  /// `too_large_sum` is the sum of the samples that exceed the room of every group, and `large` of
  /// these samples are above half of the capacity. The argument `sum` is the sum of all samples of
  /// the window. `rooms` is the sum of the rooms that can hold the smallest sample.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t groups_to_open(
      std::uint64_t capacity, std::uint64_t large, omnibal::detail::uint128 too_large_sum,
      omnibal::detail::uint128 sum, omnibal::detail::uint128 rooms) const {
    std::uint64_t result = filled_groups(too_large_sum, capacity);
    if (result < large) result = large;
    // Small samples fill any group: all groups that they will need can be opened at once.
    if (largest <= capacity / 8 && sum > rooms) {
      std::uint64_t const volume = filled_groups(sum - rooms, capacity);
      if (result < volume) result = volume;
    }
    return result;
  }
};

struct fit_state {
  /// The number of samples that fit the capacity, and the number of these samples with a positive
  /// size.
  std::uint32_t fitting;
  std::uint32_t positive;
  std::uint32_t group_count;
  std::uint64_t lower_bound;
  std::uint64_t rounds;
  std::uint64_t item_rounds;
};

/// Arrays with an element for each sample. Arrays by group have this size too, because no more
/// groups than samples are opened. The number of a sample is its position in the order of
/// descending size.
struct fit_arrays {
  fit_state* state;
  std::uint64_t* sizes;
  /// The group of each sample.
  std::uint32_t* group_of;
  /// The unpacked samples, and the samples of the window that a round could not pack.
  std::uint32_t* waiting;
  std::uint32_t* left;
  /// The room of each group.
  std::uint64_t* rooms;
  /// The groups that can still hold a sample, by descending room; the sort keys of these groups;
  /// and a spare array for each of both arrays.
  std::uint32_t* order;
  std::uint32_t* spare_order;
  std::uint64_t* keys;
  std::uint64_t* spare_keys;
  /// For each sample of the window: the number of single groups with room for it, and the number of
  /// samples up to and including it for which all such groups are taken.
  std::uint32_t* reach;
  std::uint32_t* without;
  /// For each single group: the number of free groups among the single groups with at least its
  /// room, at the time of the first sample that fits the group. The array `minima` has the minima
  /// of 32, 32^2, ... of these numbers.
  std::uint32_t* depth;
  std::uint32_t* minima;
};

template <kernel_backend Backend>
[[nodiscard]] fit_arrays make_fit_arrays(Backend& backend, std::size_t count) {
  fit_arrays result{};
  result.state = backend.template scratch<fit_state>(1);
  result.sizes = backend.template scratch<std::uint64_t>(count);
  result.group_of = backend.template scratch<std::uint32_t>(count);
  result.waiting = backend.template scratch<std::uint32_t>(count);
  result.left = backend.template scratch<std::uint32_t>(count);
  result.rooms = backend.template scratch<std::uint64_t>(count);
  result.order = backend.template scratch<std::uint32_t>(count);
  result.spare_order = backend.template scratch<std::uint32_t>(count);
  result.keys = backend.template scratch<std::uint64_t>(count);
  result.spare_keys = backend.template scratch<std::uint64_t>(count);
  result.reach = backend.template scratch<std::uint32_t>(count);
  result.without = backend.template scratch<std::uint32_t>(count);
  result.depth = backend.template scratch<std::uint32_t>(count);
  // The levels of the tree have count / 32, count / 32^2, ... elements, each rounded up.
  result.minima = backend.template scratch<std::uint32_t>(count / 31 + 16);
  return result;
}

/// Finds the last index before a given index whose value is at most a limit. The search uses a tree
/// whose nodes contain the minima of 32, 32^2, ... values. Complexity: a search reads at most 64
/// values in each level of the tree.
class preceding_minimum {
 public:
  /// Searches in `values`. `minima` has n / 31 + 16 elements for the tree over n values: first the
  /// position of each level, then the levels.
  OMNIBAL_HOST_DEVICE preceding_minimum(std::uint32_t const* values, std::uint32_t* minima)
      : values_(values), minima_(minima) {}

  /// Builds the tree over `n` values.
  template <thread_group Grid>
  OMNIBAL_HOST_DEVICE void build(Grid& grid, std::size_t n) {
    std::uint32_t const* below = values_;
    std::uint32_t* level = minima_ + max_levels;
    for (std::size_t number = 0; n > best_fit_tuning::fan_out; ++number) {
      auto const start = static_cast<std::uint32_t>(level - minima_);
      std::size_t const size = parts_of(n, best_fit_tuning::fan_out);
      grid.for_each(size, [&](std::size_t k) {
        std::size_t const last = smaller_of((k + 1) * best_fit_tuning::fan_out, n);
        std::uint32_t least = below[k * best_fit_tuning::fan_out];
        for (std::size_t i = k * best_fit_tuning::fan_out + 1; i < last; ++i)
          least = smaller_of(least, below[i]);
        level[k] = least;
        if (k == 0) minima_[number] = start;
      });
      below = level;
      level += size;
      n = size;
    }
  }

  /// Returns the last index below `end` whose value is at most `limit`. Precondition: there is one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t find(std::size_t end, std::uint32_t limit) const {
    // The search first moves up the tree and to the left, past blocks that contain no value within
    // the limit.
    int level = -1;
    std::size_t i = end;
    for (;;) {
      std::size_t const first = i / best_fit_tuning::fan_out * best_fit_tuning::fan_out;
      while (i != first && at(level, i - 1) > limit) --i;
      if (i != first) break;
      i /= best_fit_tuning::fan_out;
      ++level;
    }
    // Then it moves down to the last value within the limit.
    --i;
    for (; level >= 0; --level) {
      i = (i + 1) * best_fit_tuning::fan_out;
      do --i;
      while (at(level - 1, i) > limit);
    }
    return i;
  }

 private:
  static constexpr std::size_t max_levels = 8;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t at(int level, std::size_t i) const {
    return level < 0 ? values_[i] : minima_[minima_[level] + i];
  }

  std::uint32_t const* values_;
  std::uint32_t* minima_;
};

/// Runs all rounds in one kernel. Every thread executes the same sequence of rounds and its share
/// of each phase. The samples of a window are matched in descending order, each with the free
/// single group of least room that can hold it. This equals a matching of parentheses in descending
/// order of room and size: each single group is an opening parenthesis, and each sample is a
/// closing one. A sample without a single group receives the next place in the groups with room for
/// several samples.
struct fit_rounds {
  static constexpr int min_blocks = 1;
  /// Sums of sizes.
  using wide = omnibal::detail::uint128;

  /// The shared memory of a block: a tile of pairs, and the spare memory of its merge sort.
  static constexpr std::size_t shared_bytes =
      2 * best_fit_tuning::sort_tile * (sizeof(std::uint64_t) + sizeof(std::uint32_t));

  fit_arrays arrays;
  std::uint64_t capacity;

  template <thread_group Grid>
  OMNIBAL_HOST_DEVICE void operator()(Grid& grid) const {
    progress now{};
    now.end = arrays.state->positive;
    now.groups = {arrays.keys, arrays.order, arrays.spare_keys, arrays.spare_order};
    std::uint32_t const fitting = arrays.state->fitting;
    std::uint64_t const bound = lower_bound(grid, fitting);
    while (now.first != now.end) run_round(grid, now);

    if (fitting != now.end) {
      // Samples of size zero may be in any group.
      grid.for_each(fitting - now.end, [&](std::size_t k) { arrays.group_of[now.end + k] = 0; });
      if (now.group_count == 0) now.group_count = 1;
      ++now.rounds;
      now.item_rounds += fitting - now.end;
    }
    grid.once([&] {
      arrays.state->group_count = now.group_count;
      arrays.state->lower_bound = bound;
      arrays.state->rounds = now.rounds;
      arrays.state->item_rounds = now.item_rounds;
    });
  }

 private:
  /// The state of the rounds, known to every thread.
  struct progress {
    /// The unpacked samples are the elements [first, end) of `waiting`.
    std::uint32_t first;
    std::uint32_t end;
    /// The number of groups that can still hold a sample, and the number of all groups.
    std::uint32_t open_count;
    std::uint32_t group_count;
    /// The lengths of prefixes of the groups with room: the groups that this round opens, the
    /// groups with room for two samples of the largest size, and the groups with room for the
    /// smallest sample.
    std::uint32_t opened;
    std::uint32_t many;
    std::uint32_t holding;
    sorted_pairs groups;
    std::uint64_t rounds;
    std::uint64_t item_rounds;
  };

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t size_at(std::size_t k) const {
    return arrays.sizes[arrays.waiting[k]];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t room_at(progress const& now,
                                                          std::size_t k) const {
    return arrays.rooms[now.groups.values[k]];
  }

  /// Returns the number of values `values[order[k]]`, which descend with k, that are at least
  /// `least`. Not inlined, because every round calls it five times.
  template <thread_group Grid>
  [[nodiscard, gnu::noinline]] OMNIBAL_HOST_DEVICE static std::uint32_t count_from(
      Grid grid, std::uint32_t count, std::uint32_t const* order, std::uint64_t const* values,
      std::uint64_t least) {
    return static_cast<std::uint32_t>(
        grid.partition_point(count, [=](std::size_t k) { return values[order[k]] >= least; }));
  }
  template <thread_group Grid>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t samples_from(Grid& grid, std::uint32_t first,
                                                               std::uint32_t count,
                                                               std::uint64_t least) const {
    return count_from(grid, count, arrays.waiting + first, arrays.sizes, least);
  }
  template <thread_group Grid>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t groups_from(Grid& grid, progress const& now,
                                                              std::uint64_t least) const {
    return count_from(grid, now.open_count, now.groups.values, arrays.rooms, least);
  }

  /// The sum of the samples of a window that exceed the room of every group, the sum of all samples
  /// of the window, and the sum of the rooms that can hold its smallest sample.
  struct round_sums {
    wide too_large;
    wide all;
    wide rooms;

    OMNIBAL_HOST_DEVICE friend round_sums operator+(round_sums const& left,
                                                    round_sums const& right) {
      return {left.too_large + right.too_large, left.all + right.all, left.rooms + right.rooms};
    }
  };

  /// Returns the lower bound on the number of groups: the larger of the volume over the capacity
  /// and the number of samples above half of the capacity.
  template <thread_group Grid>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t lower_bound(Grid& grid,
                                                              std::uint32_t fitting) const {
    wide const sum = grid.reduce(
        fitting, [&](std::size_t k) { return wide{arrays.sizes[k]}; }, add{}, wide{0});
    std::uint64_t const large = samples_from(grid, 0, fitting, capacity / 2 + 1);
    std::uint64_t const volume = filled_groups(sum, capacity);
    return larger_of(larger_of(large, volume), std::uint64_t{fitting == 0 ? 0u : 1u});
  }

  template <thread_group Grid>
  OMNIBAL_HOST_DEVICE void run_round(Grid& grid, progress& now) const {
    std::uint64_t const largest = size_at(now.first);
    std::uint64_t const low = round_window::low(largest, capacity);
    std::uint32_t const size = samples_from(grid, now.first, now.end - now.first, low);
    round_window const window{largest, size_at(now.first + size - 1)};
    ++now.rounds;
    now.item_rounds += size;
    open_groups(grid, now, window, size);
    std::uint32_t const left = match(grid, now, window, size);
    now.first += size - left;
    if (now.first != now.end) sort_groups(grid, now);
  }

  template <thread_group Grid>
  OMNIBAL_HOST_DEVICE void open_groups(Grid& grid, progress& now, round_window const& window,
                                       std::uint32_t size) const {
    std::uint64_t const max_room = now.open_count == 0 ? 0 : room_at(now, 0);
    std::uint32_t const too_large = samples_from(grid, now.first, size, max_room + 1);
    std::uint32_t const large = samples_from(grid, now.first, too_large, capacity / 2 + 1);
    round_sums const sums = grid.reduce(
        larger_of(size, now.open_count),
        [&](std::size_t k) {
          wide const taken = k < size ? size_at(now.first + k) : 0;
          std::uint64_t const room = k < now.open_count ? room_at(now, k) : 0;
          return round_sums{k < too_large ? taken : 0, taken, room >= window.least ? room : 0};
        },
        add{}, round_sums{});
    auto const opened = static_cast<std::uint32_t>(
        window.groups_to_open(capacity, large, sums.too_large, sums.all, sums.rooms));
    now.opened = opened;
    if (opened == 0) return;
    grid.for_each(opened + now.open_count, [&](std::size_t k) {
      if (k >= opened) {
        now.groups.spare_values[k] = now.groups.values[k - opened];
        return;
      }
      auto const group = static_cast<std::uint32_t>(now.group_count + k);
      now.groups.spare_values[k] = group;
      arrays.rooms[group] = capacity;
    });
    now.groups.swap();
    now.open_count += opened;
    now.group_count += opened;
  }

  /// Matches the samples of the window with groups. Returns the number of samples that remain
  /// unpacked, which are moved to the end of the window.
  template <thread_group Grid>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t match(Grid& grid, progress& now,
                                                        round_window const& window,
                                                        std::uint32_t size) const {
    // Twice a size does not overflow, because a size is below 2^63.
    std::uint32_t const many = groups_from(grid, now, 2 * window.largest);
    std::uint32_t const holding = groups_from(grid, now, window.least);
    std::uint32_t const singles = holding - many;
    now.many = many;
    now.holding = holding;
    // The keys are free until the groups are sorted again.
    std::uint64_t* const places = now.groups.keys;
    std::uint64_t* const single_rooms = now.groups.spare_keys;
    grid.for_each(holding, [&](std::size_t k) {
      std::uint64_t const room = room_at(now, k);
      if (k < many) {
        places[many - 1 - k] = smaller_of<std::uint64_t>(room / window.largest, size);
      } else {
        single_rooms[k - many] = room;
      }
    });
    std::uint64_t const place_count =
        many == 0 ? 0
                  : grid.inclusive_scan_of(
                        many, [&](std::size_t k) { return places[k]; }, places, add{}, 0);
    std::uint32_t const without = find_reach(grid, now, single_rooms, singles, size);
    preceding_minimum const free = find_depth(grid, now, single_rooms, singles, size);

    grid.for_each(size, [&](std::size_t i) {
      std::uint32_t const position = arrays.waiting[now.first + i];
      std::uint32_t const before = i == 0 ? 0 : arrays.without[i - 1];
      // The number of single groups with room for the sample that no larger sample has taken.
      std::uint32_t const choice = arrays.reach[i] + before - static_cast<std::uint32_t>(i);
      if (choice != 0) {
        take(position, now.groups.values[many + free.find(arrays.reach[i], choice)]);
      } else if (before < place_count) {
        std::uint32_t const place = first_false(
            std::uint32_t{0}, many, [&](std::uint32_t k) { return places[k] <= before; });
        take(position, now.groups.values[many - 1 - place]);
      } else {
        arrays.left[before - place_count] = position;
      }
    });
    std::uint32_t const left =
        without > place_count ? without - static_cast<std::uint32_t>(place_count) : 0;
    if (left != 0) {
      grid.for_each(left, [&](std::size_t k) {
        arrays.waiting[now.first + size - left + k] = arrays.left[k];
      });
    }
    return left;
  }

  /// Computes `reach` and `without` for each sample of the window. Returns the number of all
  /// samples for which no single group is free.
  template <thread_group Grid>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t find_reach(Grid& grid, progress const& now,
                                                             std::uint64_t const* single_rooms,
                                                             std::uint32_t singles,
                                                             std::uint32_t size) const {
    grid.for_each(size, [&](std::size_t i) {
      std::uint64_t const wanted = size_at(now.first + i);
      std::uint32_t const reach = first_false(
          std::uint32_t{0}, singles, [&](std::uint32_t t) { return single_rooms[t] >= wanted; });
      arrays.reach[i] = reach;
      arrays.without[i] = i + 1 > reach ? static_cast<std::uint32_t>(i + 1 - reach) : 0;
    });
    return grid.inclusive_scan_of(
        size, [&](std::size_t i) { return arrays.without[i]; }, arrays.without, take_larger{}, 0);
  }

  /// Computes `depth` for each single group, and the tree of its minima.
  template <thread_group Grid>
  [[nodiscard]] OMNIBAL_HOST_DEVICE preceding_minimum find_depth(Grid& grid, progress const& now,
                                                                 std::uint64_t const* single_rooms,
                                                                 std::uint32_t singles,
                                                                 std::uint32_t size) const {
    grid.for_each(singles, [&](std::size_t t) {
      std::uint32_t const before = first_false(std::uint32_t{0}, size, [&](std::uint32_t k) {
        return size_at(now.first + k) > single_rooms[t];
      });
      std::uint32_t const without = before == 0 ? 0 : arrays.without[before - 1];
      arrays.depth[t] = static_cast<std::uint32_t>(t + 1 - before) + without;
    });
    preceding_minimum result(arrays.depth, arrays.minima);
    result.build(grid, singles);
    return result;
  }

  OMNIBAL_HOST_DEVICE void take(std::uint32_t position, std::uint32_t group) const {
    arrays.group_of[position] = group;
    // The subtraction is an addition modulo 2^64, so the order of the threads does not matter.
    atomic_add(arrays.rooms + group, 0 - arrays.sizes[position]);
  }

  /// Drops the groups without room for any unpacked sample and sorts the other groups by descending
  /// room. The groups that the round may have changed are sorted and then merged with the rest.
  template <thread_group Grid>
  OMNIBAL_HOST_DEVICE void sort_groups(Grid& grid, progress& now) const {
    constexpr int half = 32;
    std::uint64_t const smallest = size_at(now.end - 1);
    // For each group, the number of unchanged groups up to it in the lower half, and the number of
    // changed groups up to it in the upper half.
    std::uint64_t* const numbers = now.groups.keys;
    std::uint64_t const* const single_rooms = now.groups.spare_keys;
    std::uint64_t const kept = grid.inclusive_scan_of(
        now.open_count,
        [&](std::size_t k) {
          std::uint64_t const room = room_at(now, k);
          bool const is_changed = k < larger_of(now.opened, now.many) ||
                                  (k < now.holding && single_rooms[k - now.many] != room);
          return room < smallest ? 0 : std::uint64_t{1} << (is_changed ? half : 0);
        },
        numbers, add{}, 0);
    auto const unchanged = static_cast<std::uint32_t>(kept);
    auto const changed = static_cast<std::uint32_t>(kept >> half);
    grid.for_each(now.open_count, [&](std::size_t k) {
      std::uint64_t const before = k == 0 ? 0 : numbers[k - 1];
      if (numbers[k] == before) return;
      bool const is_changed = numbers[k] - before != 1;
      std::size_t const place =
          is_changed ? unchanged + (before >> half) : static_cast<std::uint32_t>(before);
      now.groups.spare_values[place] = now.groups.values[k];
      now.groups.spare_keys[place] = capacity - room_at(now, k);
    });
    now.groups.swap();
    now.open_count = unchanged + changed;
    if (changed == 0) return;
    sorted_pairs const sorting = now.groups.from(unchanged);
    sorted_pairs tiles = sorting;
    tiles.begin_merge(changed, best_fit_tuning::sort_tile);
    sort_tiles(grid, sorting, tiles, changed);
    tiles.merge(grid, changed, best_fit_tuning::sort_tile);
    now.groups.merge_two(grid, now.open_count, unchanged);
  }

  /// Sorts tiles of the first `n` elements of `pairs` into `sorted`, each tile by a block.
  template <thread_group Grid>
  OMNIBAL_HOST_DEVICE static void sort_tiles(Grid& grid, sorted_pairs const& pairs,
                                             sorted_pairs const& sorted, std::size_t n) {
    constexpr std::size_t tile = best_fit_tuning::sort_tile;
    grid.for_each_block(parts_of(n, tile), [&](auto& block, std::size_t index) {
      std::size_t const first = index * tile;
      std::size_t const size = smaller_of(tile, n - first);
      sorted_pairs here{
          block.template take<std::uint64_t>(tile), block.template take<std::uint32_t>(tile),
          block.template take<std::uint64_t>(tile), block.template take<std::uint32_t>(tile)};
      block.for_each(size, [&](std::size_t i) {
        here.keys[i] = pairs.keys[first + i];
        here.values[i] = pairs.values[first + i];
      });
      here.merge(block, size, 1);
      block.for_each(size, [&](std::size_t i) {
        sorted.keys[first + i] = here.keys[i];
        sorted.values[first + i] = here.values[i];
      });
    });
  }
};

/// Writes the sort key of each sample. Ascending keys are descending sizes, and the key of an
/// oversized sample is above all other keys.
template <class Amount>
struct fit_measure {
  Amount const* demands;
  std::uint64_t capacity;
  std::uint64_t* keys;
  std::uint32_t* indices;
  fault* faults;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint64_t const size = checked_amount(demands[i], 0, faults);
    keys[i] = size <= capacity ? capacity - size : capacity + 1;
    indices[i] = static_cast<std::uint32_t>(i);
  }
};

/// Converts sorted keys to sizes, and counts the samples that fit and the samples with a positive
/// size. Lists the samples as unpacked.
struct fit_sizes {
  fit_arrays arrays;
  std::uint64_t capacity;
  std::size_t count;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t k) const {
    std::uint64_t const key = arrays.keys[k];
    std::uint64_t const next = k + 1 == count ? capacity + 1 : arrays.keys[k + 1];
    auto const number = static_cast<std::uint32_t>(k);
    if (key <= capacity && next > capacity) arrays.state->fitting = number + 1;
    if (key < capacity && next >= capacity) arrays.state->positive = number + 1;
    // An oversized sample receives a number that no group has.
    if (key > capacity) arrays.group_of[k] = static_cast<std::uint32_t>(count);
    arrays.sizes[k] = capacity - key;
    arrays.waiting[k] = number;
  }
};

/// Writes items, offsets, oversized samples and the report. Samples are sorted by their group.
struct fit_finish {
  std::uint32_t const* group_of;
  std::uint32_t const* indices;
  fit_state const* state;
  std::size_t count;
  packing_span out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t k) const {
    std::size_t const fitting = state->fitting;
    std::size_t const groups = state->group_count;
    std::size_t const room = out.groups.room();
    if (k < fitting) {
      std::uint32_t const group = group_of[k];
      out.groups.items[k] = indices[k];
      bool const is_first = k == 0 || group_of[k - 1] != group;
      if (is_first && group < room) out.groups.offsets[group] = static_cast<std::uint32_t>(k);
    } else if (k < count && k - fitting < out.oversized.size()) {
      out.oversized[k - fitting] = indices[k];
    }
    if (k <= room && k >= groups) out.groups.offsets[k] = state->fitting;
    if (k == 0) write_numbers(fitting, groups, room);
  }

 private:
  OMNIBAL_HOST_DEVICE void write_numbers(std::size_t fitting, std::size_t groups,
                                         std::size_t room) const {
    if (groups > room) raise(out.faults.data(), fault::no_room);
    if (groups > room) out.groups.offsets[room] = state->fitting;
    if (count - fitting > out.oversized.size()) raise(out.faults.data(), fault::no_room);
    if (!out.groups.group_count.empty()) {
      out.groups.group_count[0] = static_cast<std::uint32_t>(groups);
    }
    if (!out.oversized_count.empty()) {
      out.oversized_count[0] = static_cast<std::uint32_t>(count - fitting);
    }
    if (out.report.empty()) return;
    packing_report report;
    report.lower_bound = state->lower_bound;
    report.rounds = state->rounds;
    report.item_rounds = state->item_rounds;
    out.report[0] = report;
  }
};

/// Runs `gpu::best_fit_rounds` on any backend: two sorts, and one launch for all rounds.
template <grid_backend Backend, class Amount>
void best_fit_rounds(Backend& backend, Amount const* demands, std::size_t count,
                     std::uint64_t capacity, std::size_t max_blocks, packing_span const& out) {
  fit_arrays const arrays = make_fit_arrays(backend, count);
  auto* const indices = backend.template scratch<std::uint32_t>(count);
  backend.fill_zero(arrays.state, 1);
  backend.for_each(count,
                   fit_measure<Amount>{demands, capacity, arrays.keys, indices, out.faults.data()});
  backend.sort_pairs(arrays.keys, indices, count, 0, omnibal::detail::bit_width(capacity + 1));
  backend.for_each(count, fit_sizes{arrays, capacity, count});
  std::size_t const blocks = smaller_of(max_blocks, max_grid_blocks);
  backend.template for_grid<best_fit_tuning::threads>(
      smaller_of(count / best_fit_tuning::min_indices, blocks * best_fit_tuning::threads - 1),
      fit_rounds::shared_bytes, fit_rounds{arrays, capacity});
  backend.sort_pairs(arrays.group_of, indices, count, 0, omnibal::detail::bit_width(count));
  std::size_t const written = larger_of(count, out.groups.offsets.size());
  backend.for_each(written, fit_finish{arrays.group_of, indices, arrays.state, count, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
