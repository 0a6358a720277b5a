#pragma once

/// \file
/// Longest processing time first, a block for each step.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/cost_steps.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/atomics.hpp>
#include <omnibal/cuda/detail/collect_parts.hpp>
#include <omnibal/cuda/detail/costs_in_order.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/longest_first.hpp>
#include <omnibal/cuda/detail/part_writer.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/part_span.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

inline constexpr int lpt_threads = 512;

/// What a policy allows for so many samples. Equal counts that cannot be are a fault.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline count_limits limits_of(count_policy policy,
                                                                std::uint32_t samples,
                                                                std::uint32_t parts,
                                                                fault* faults) {
  if (policy == count_policy::any) return {};
  std::uint32_t const extra = samples % parts;
  if (policy == count_policy::equal && extra != 0) raise(faults, fault::uneven_counts);
  return {samples / parts, extra};
}

/// Places one step, from its costs to its parts, in shared memory.
struct lpt_in_block {
  step_table table;
  part_writer out;
  count_policy policy;

  struct memory {
    ordered_samples order;
    longest_first placing;
  };

  template <class Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static memory take(Arena&& arena, std::size_t samples,
                                                       std::size_t parts) {
    auto* const costs = arena.template take<std::uint64_t>(samples);
    auto* const numbers = arena.template take<std::uint32_t>(samples);
    return {{costs, numbers}, longest_first::take(arena, parts)};
  }

  /// The part of a sample is noted above its number: there are less than 2^16 of both.
  struct in_place {
    static constexpr int number_bits = 16;
    static_assert(most_shared_bytes / (sizeof(std::uint64_t) + sizeof(std::uint32_t)) <=
                  std::size_t{1} << number_bits);

    ordered_samples order;
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t cost(std::uint32_t place) const {
      return order.costs[place];
    }
    OMNIBAL_HOST_DEVICE void put(std::uint32_t place, std::uint32_t part) const {
      order.samples[place] |= part << number_bits;
    }
  };

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    memory const taken = take(shared_arena(block), table.largest(), out.parts);
    ordered_samples const& order = taken.order;
    longest_first const& placing = taken.placing;
    step_range const range = table[step];
    std::uint32_t const costly = write_in_order(block, table, range, order.costs, order.samples);
    placing.place(block, in_place{order}, range.size, costly, out.parts,
                  limits_of(policy, range.size, out.parts, table.faults()));
    write_part_offsets(block, out, step, range, placing.counts);
    block.for_each(range.size, [&](std::size_t place) {
      std::uint32_t const put = order.samples[place];
      order.costs[put & ((1u << in_place::number_bits) - 1)] = put >> in_place::number_bits;
    });
    write_parts_in_block(block, out, range, order.costs, order.samples);
  }
};

/// Places one step whose costs are sorted, with the loads in shared memory or in the scratch given.
struct lpt_of_sorted {
  step_table table;
  part_writer out;
  count_policy policy;
  ordered_samples order;
  /// By place.
  std::uint32_t* part_of;
  unsigned char* scratch;
  std::size_t scratch_of_step;

  struct in_order {
    std::uint64_t const* costs;
    std::uint32_t* part_of;
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t cost(std::uint32_t place) const {
      return costs[place];
    }
    OMNIBAL_HOST_DEVICE void put(std::uint32_t place, std::uint32_t part) const {
      part_of[place] = part;
    }
  };

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    // One call for both kinds of memory: it is long, and compiled once.
    longest_first const placing = arrays(block, step);
    step_range const range = table[step];
    std::uint64_t* const costs = order.costs + range.first;
    std::uint64_t const sum = block.reduce(
        range.size, [&](std::size_t i) { return costs[i]; }, add_saturating{}, std::uint64_t{0});
    if (sum > largest_sum) raise(table.faults(), fault::overflow);
    std::uint32_t const costly =
        sum > largest_sum
            ? 0
            : block.reduce(
                  range.size, [&](std::size_t i) { return costs[i] != 0 ? 1u : 0u; }, add{}, 0u);
    placing.place(block, in_order{costs, part_of + range.first}, range.size, costly, out.parts,
                  limits_of(policy, range.size, out.parts, table.faults()));
    write_part_offsets(block, out, step, range, placing.counts);
  }

 private:
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE longest_first arrays(Block& block, std::size_t step) const {
    if (scratch == nullptr) {
      shared_arena arena(block);
      return longest_first::take(arena, out.parts);
    }
    memory_arena arena(scratch + step * scratch_of_step);
    return longest_first::take(arena, out.parts);
  }
};

/// `gpu::lpt` on any backend.
template <class Backend>
void lpt(Backend& backend, cost_steps const& steps, std::size_t parts, count_policy policy,
         part_span const& out) {
  step_table const table(steps, out.faults.data());
  part_writer const writer(steps, parts, out);
  if (steps.step_count == 0) return backend.for_each(1, write_no_steps{writer});
  std::size_t const bytes = arena_bytes(
      [&](arena_meter& arena) { return lpt_in_block::take(arena, steps.largest_step, parts); });
  if (bytes <= most_shared_bytes) {
    backend.template for_each_block<lpt_threads>(steps.step_count, bytes,
                                                 lpt_in_block{table, writer, policy});
    return;
  }
  ordered_samples const order = sort_all_costs(backend, steps, table);
  auto* const part_of = backend.template scratch<std::uint32_t>(steps.costs.size());
  std::size_t const of_parts =
      arena_bytes([&](arena_meter& arena) { return longest_first::take(arena, parts); });
  bool const is_shared = of_parts <= most_shared_bytes;
  auto* const scratch =
      is_shared ? nullptr : backend.template scratch<unsigned char>(of_parts * steps.step_count);
  backend.template for_each_block<lpt_threads>(
      steps.step_count, is_shared ? of_parts : 0,
      lpt_of_sorted{table, writer, policy, order, part_of, scratch, of_parts});
  // The costs are no longer needed.
  write_parts_of_places(backend, steps, table, writer, order.samples, part_of, order.costs);
}

}  // namespace omnibal::inline v0::gpu::detail
