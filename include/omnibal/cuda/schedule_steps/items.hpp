#pragma once

/// \file
/// What is to be scheduled on the device: the groups of full steps, and those of the last one.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/exclusive_sum.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

using omnibal::detail::cut_rule;
using omnibal::detail::load_level;
using omnibal::detail::schedule_draws;
using omnibal::detail::schedule_shape;

/// What the steps of the algorithm tell each other, in device memory.
template <std::size_t R>
struct schedule_state {
  /// The largest load of each kind, as it was given.
  std::uint64_t largest[R];
  std::int64_t last_waiting[R];
  std::int64_t goals[R];
  cut_rule rule;
  /// Which of the two sets of lists is the present one.
  std::uint32_t lists;
  std::uint32_t is_done;
  /// The blocks that have come to the end of a launch.
  std::uint32_t arrived;
};

inline constexpr std::size_t groups_of_block = 4096;

/// The largest load of each kind, each block for some groups.
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

/// The groups in random order, the carried ones first, and their levels: those of kind r from
/// r * count on.
struct schedule_items {
  std::uint32_t* groups;
  load_level* levels;
  /// The run of each group in a full step; null where all runs are.
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
  /// Null where there is no choice.
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
  /// Zero, and a fault, where a carried group does not exist.
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

/// How long ranks wait in the last step, by one block.
template <class Load>
struct measure_last_step {
  static constexpr int least_blocks = 1;

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

/// One for each run in a full step.
struct count_full {
  std::uint8_t const* is_last;
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::size_t run) const {
    return is_last[run] == 0 ? 1 : 0;
  }
};

/// Copies what belongs to a run in a full step to its place among these.
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

/// Draws the order of the groups, writes the last step to `out` and returns the others.
template <class Backend, class Load>
[[nodiscard]] schedule_items draw_items(Backend& backend, device_span<Load const> loads,
                                        device_span<std::uint32_t const> carried,
                                        schedule_shape const& shape, schedule_draws const& draws,
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

}  // namespace omnibal::inline v0::gpu::detail
