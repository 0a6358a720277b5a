// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The kernels of `gpu::deal`: one block for each step, or sorts of the samples of all steps.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/dealing.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/ordered_samples.hpp>
#include <omnibal/cuda/detail/part_writer.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/detail/whole_costs.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// A tuning constant of the speed of `gpu::deal`, not tuned on a device; it does not change the
/// result.
struct deal_tuning {
  static constexpr int threads = 512;
};

/// Sorts and deals the samples of one step in shared memory.
struct deal_in_block {
  static constexpr bool is_compact = true;

  step_table table;
  part_writer out;

  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static ordered_samples take(Arena&& arena,
                                                                std::size_t samples) {
    auto* const costs = arena.template take<std::uint64_t>(samples);
    return {costs, arena.template take<std::uint32_t>(samples)};
  }

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    auto const order = take(block, table.largest());
    step_range const range = table[step];
    static_cast<void>(sort_costs_in_block(block, table, range, order));
    dealing const turns(range.size, out.parts);
    block.for_each(range.size, [&](std::size_t i) {
      auto const place = static_cast<std::uint32_t>(i);
      std::uint32_t const sample = range.first + order.samples[place];
      out.put(range.first + turns.position(place), sample, turns.part(place));
    });
    write_offsets(block, out, step, range, [&](std::uint32_t part) { return turns.offset(part); });
  }
};

/// Writes the item and the part of the sample at one place of the sorted samples of all steps.
struct deal_place {
  step_table table;
  part_writer out;
  std::uint32_t const* samples;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const sample = samples[i];
    std::uint32_t const step = table.step_of(sample);
    if (step == table.steps()) return;
    step_range const range = table[step];
    auto const place = static_cast<std::uint32_t>(i) - range.first;
    if (place >= range.size) return;
    dealing const turns(range.size, out.parts);
    out.put(range.first + turns.position(place), sample, turns.part(place));
  }
};

/// Writes the offsets of the parts of a step, and checks the sum of its costs.
struct deal_offsets {
  step_table table;
  part_writer out;
  std::uint64_t const* costs;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    step_range const range = table[step];
    check_sum_of(block, table, range, [&](std::size_t i) { return costs[range.first + i]; });
    dealing const turns(range.size, out.parts);
    write_offsets(block, out, step, range, [&](std::uint32_t part) { return turns.offset(part); });
  }
};

/// Runs `gpu::deal` on any backend.
template <kernel_backend Backend>
void deal(Backend& backend, cost_steps const& steps, std::size_t parts, part_span const& out) {
  step_table const table = with_whole_costs(backend, steps, out.faults.data());
  part_writer const writer(steps, parts, out);
  if (steps.step_count == 0) return backend.for_each(1, write_no_steps{writer});
  std::size_t const bytes = arena_bytes([&](arena_meter& arena) {
    static_cast<void>(deal_in_block::take(arena, steps.largest_step));
  });
  if (bytes <= max_shared_bytes) {
    backend.template for_each_block<deal_tuning::threads>(steps.step_count, bytes,
                                                          deal_in_block{table, writer});
    return;
  }
  ordered_samples const order = sort_all_costs(backend, steps, table);
  backend.for_each(steps.costs.size(), deal_place{table, writer, order.samples});
  backend.template for_each_block<deal_tuning::threads>(steps.step_count, 0,
                                                        deal_offsets{table, writer, order.costs});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
