#pragma once

/// \file
/// The schedule of an epoch by rounds of cuts, on any backend.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/schedule_steps/cuts.hpp>
#include <omnibal/cuda/schedule_steps/items.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Marks the steps that have a carried group.
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

/// One for each step with a carried group, in the order of the epoch.
struct count_carried {
  rng::permutation order;
  std::uint32_t const* has_carried;
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::size_t position) const {
    return has_carried[order(position)];
  }
};

/// Finds the position of each step in the epoch, those with carried groups first.
struct write_positions {
  rng::permutation order;
  std::uint32_t steps;
  /// Null where no group is carried.
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

/// `gpu::schedule_steps` on any backend.
template <class Backend, class Load>
void schedule_steps(Backend& backend, device_span<Load const> loads,
                     device_span<std::uint32_t const> carried, schedule_shape const& shape,
                     schedule_draws const& draws, double max_dist_ratio, std::uint32_t rounds,
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
    backend.exclusive_sum_of(marked, count_carried{order, has_carried}, carried_before);
  }
  backend.for_each(shape.steps,
                   write_positions{order, shape.steps, marked == 0 ? nullptr : has_carried,
                                   carried_before, positions});
  backend.for_each(shape.pool(), write_steps<R>{cells, items.groups, positions, out.groups.data()});
}

}  // namespace omnibal::inline v0::gpu::detail
