// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Longest processing time first on the device, with a block for each step.
///
/// `lpt` at the end selects one of two ways. If a step fits the shared memory, `lpt_in_block`
/// sorts, assigns and writes the step in one kernel. Otherwise all samples are sorted at once,
/// `lpt_of_sorted` assigns the samples of each step, and another sort writes the parts. Both use
/// `longest_first` to assign sorted samples to parts.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/ordered_samples.hpp>
#include <omnibal/cuda/detail/part_writer.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/detail/whole_costs.hpp>
#include <omnibal/cuda/lpt/longest_first.hpp>
#include <omnibal/cuda/lpt/part_rooms.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Partitions one step in shared memory: sorts its samples, assigns them, and writes the parts.
///
/// The arrays and their contents:
///
///   array           sort        assignment                    output
///   order.costs     costs       costs                         part of each sample, in 32 bits
///   order.samples   samples     samples with parts above      memory of a sort
///   parts                       arrays of longest_first       counts
struct lpt_in_block {
  static constexpr int min_blocks = 1;
  static constexpr bool is_compact = true;

  step_table table;
  part_writer out;
  count_policy policy;

  struct memory {
    ordered_samples order;
    longest_first parts;
  };

  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static memory take(Arena&& arena, std::size_t samples,
                                                       std::size_t parts) {
    auto* const costs = arena.template take<std::uint64_t>(samples);
    auto* const numbers = arena.template take<std::uint32_t>(samples);
    return {{costs, numbers}, longest_first::take(arena, parts)};
  }

  /// The samples of a step, each as a word with its number in the lower 16 bits and its part above.
  /// There are fewer than 2^16 samples and parts.
  struct numbered_samples {
    static constexpr int number_bits = 16;
    static_assert(max_shared_bytes / (sizeof(std::uint64_t) + sizeof(std::uint32_t)) <=
                  std::size_t{1} << number_bits);

    std::uint64_t const* costs;
    std::uint32_t* numbers_and_parts;

    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t cost(std::uint32_t place) const {
      return costs[place];
    }
    OMNIBAL_HOST_DEVICE void assign(std::uint32_t place, std::uint32_t part) const {
      numbers_and_parts[place] |= part << number_bits;
    }
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t number(std::size_t place) const {
      return numbers_and_parts[place] & ((1u << number_bits) - 1);
    }
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t part(std::size_t place) const {
      return numbers_and_parts[place] >> number_bits;
    }
  };

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    memory const arrays = take(block, table.largest(), out.parts);
    ordered_samples const& order = arrays.order;
    step_range const range = table[step];
    std::uint32_t const nonzero = sort_costs_in_block(block, table, range, order);
    numbered_samples const samples{order.costs, order.samples};
    arrays.parts.assign(block, samples, range.size, nonzero, out.parts,
                        rooms_of(policy, range.size, out.parts, table.faults()));
    write_part_offsets(block, out, step, range, arrays.parts.counts);
    auto* const part_of = reinterpret_cast<std::uint32_t*>(order.costs);
    block.for_each(range.size, [&](std::size_t place) {
      part_of[samples.number(place)] = samples.part(place);
    });
    std::uint32_t* const sort_memory = order.samples;
    write_parts_in_block(block, out, range, part_of, sort_memory);
  }
};

/// Assigns the samples of one step whose costs are sorted. The arrays by part are in shared or in
/// device memory.
template <class Arrays>
struct lpt_of_sorted {
  static constexpr int min_blocks = 1;

  step_table table;
  part_writer out;
  count_policy policy;
  /// The sorted costs of all steps.
  std::uint64_t const* all_costs;
  /// The part of the sample at each place of all steps.
  std::uint32_t* all_parts;
  Arrays arrays;

  struct samples_of_step {
    std::uint64_t const* costs;
    std::uint32_t* part_of_place;
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t cost(std::uint32_t place) const {
      return costs[place];
    }
    OMNIBAL_HOST_DEVICE void assign(std::uint32_t place, std::uint32_t part) const {
      part_of_place[place] = part;
    }
  };

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    auto&& arena = arrays.of(block, step);
    longest_first const parts = longest_first::take(arena, out.parts);
    step_range const range = table[step];
    std::uint64_t const* const costs = all_costs + range.first;
    bool const is_sum_valid =
        check_sum_of(block, table, range, [&](std::size_t i) { return costs[i]; });
    std::uint32_t const nonzero =
        is_sum_valid
            ? block.reduce(
                  range.size, [&](std::size_t i) { return costs[i] != 0 ? 1u : 0u; }, add{}, 0u)
            : 0;
    samples_of_step const samples{costs, all_parts + range.first};
    parts.assign(block, samples, range.size, nonzero, out.parts,
                 rooms_of(policy, range.size, out.parts, table.faults()));
    write_part_offsets(block, out, step, range, parts.counts);
  }
};

/// Runs `gpu::lpt` on any backend.
template <kernel_backend Backend>
void lpt(Backend& backend, cost_steps const& steps, std::size_t parts, count_policy policy,
         part_span const& out) {
  step_table const table = with_whole_costs(backend, steps, out.faults.data());
  part_writer const writer(steps, parts, out);
  if (steps.step_count == 0) return backend.for_each(1, write_no_steps{writer});
  std::size_t const bytes = arena_bytes(
      [&](arena_meter& arena) { return lpt_in_block::take(arena, steps.largest_step, parts); });
  if (bytes <= max_shared_bytes) {
    backend.template for_each_block<lpt_tuning::threads>(steps.step_count, bytes,
                                                         lpt_in_block{table, writer, policy});
    return;
  }
  ordered_samples const order = sort_all_costs(backend, steps, table);
  auto* const part_of_place = backend.template scratch<std::uint32_t>(steps.costs.size());
  std::size_t const bytes_of_parts =
      arena_bytes([&](arena_meter& arena) { return longest_first::take(arena, parts); });
  for_each_block_with_arrays<lpt_tuning::threads>(
      backend, steps.step_count, bytes_of_parts, [&]<class Arrays>(Arrays arrays) {
        return lpt_of_sorted<Arrays>{table, writer, policy, order.costs, part_of_place, arrays};
      });
  // The costs are not read again, so their memory is free for the keys.
  auto* const group_keys = reinterpret_cast<std::uint32_t*>(order.costs);
  write_parts_of_places(backend, steps, table, writer, order.samples, part_of_place, group_keys);
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
