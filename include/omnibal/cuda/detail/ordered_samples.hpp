// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples of steps by descending cost: sorted by a block for one step, or by sorts of all
/// samples. A place is a position in this order.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/detail/bits.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Samples from the largest cost to the smallest; equal costs are in the order of their numbers.
struct ordered_samples {
  /// The cost of the sample at each place.
  std::uint64_t* costs;
  /// The sample at each place: its number within the step if the array has one step, otherwise its
  /// index into the costs of all steps.
  std::uint32_t* samples;
};

/// Returns true if the sum of `cost(i)` for all samples of a step is an integer of 63 bits.
/// Otherwise raises a fault and returns false.
template <thread_block Block, class Cost>
OMNIBAL_HOST_DEVICE bool check_sum_of(Block& block, step_table const& table,
                                      step_range const& range, Cost const& cost) {
  std::uint64_t const sum = block.reduce(range.size, cost, add_saturating{}, std::uint64_t{0});
  if (sum > largest_sum) raise(table.faults(), fault::overflow);
  return sum <= largest_sum;
}

/// Returns the sort key of a cost, or the cost of a sort key: the largest cost has the least key.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t descending(std::uint64_t cost) {
  return largest_sum - cost;
}

/// Sorts the samples of one step into arrays in shared memory, as a block. If the sum of the costs
/// is above the largest integer, which is a fault, all costs are zero. Returns the number of costs
/// that are not zero. Precondition: the step has no more samples than fit the shared memory with
/// these arrays.
template <thread_block Block>
[[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sort_costs_in_block(Block& block,
                                                                    step_table const& table,
                                                                    step_range const& range,
                                                                    ordered_samples const& out) {
  // A block of 512 threads sorts at most 16 samples for each thread.
  static_assert(max_shared_bytes / (sizeof(*out.costs) + sizeof(*out.samples)) <= 16 * 512);
  std::uint64_t* const costs = out.costs;
  // Until the costs are in order, their memory contains first the given costs and then the sort
  // keys.
  std::uint64_t* const given_costs = costs;
  std::uint64_t* const keys = costs;
  block.for_each_load(range.size,
                      [&](std::size_t i) { given_costs[i] = table.given_cost(range.first + i); });
  bool const is_sum_valid = check_sum_of(block, table, range, [&](std::size_t i) {
    std::uint64_t const cost = table.checked(given_costs[i]);
    keys[i] = descending(cost);
    return cost;
  });
  if (!is_sum_valid) {
    block.for_each(range.size, [&](std::size_t i) { keys[i] = descending(0); });
  }
  block.sort_numbered(keys, out.samples, range.size);
  return block.reduce(
      range.size,
      [&](std::size_t place) {
        costs[place] = descending(keys[place]);
        return costs[place] != 0 ? std::uint32_t{1} : std::uint32_t{0};
      },
      add{}, std::uint32_t{0});
}

/// Writes the sort key of each cost and the number of its sample.
struct write_cost_keys {
  step_table table;
  std::uint64_t* keys;
  std::uint32_t* samples;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    bool const is_in_step = table.step_of(i) != table.steps();
    keys[i] = descending(is_in_step ? table.cost(i) : 0);
    samples[i] = static_cast<std::uint32_t>(i);
  }
};

/// Writes the step of the sample at each place.
struct write_step_keys {
  step_table table;
  std::uint32_t const* samples;
  std::uint32_t* keys;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    keys[place] = table.step_of(samples[place]);
  }
};

/// Writes the cost of the sample at each place.
struct write_ordered_costs {
  step_table table;
  ordered_samples out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    std::uint32_t const sample = out.samples[place];
    bool const is_in_step = table.step_of(sample) != table.steps();
    out.costs[place] = is_in_step ? table.cost(sample) : 0;
  }
};

/// Sorts the samples of each step by descending cost. All samples are sorted by cost and then, if
/// there are several steps, by step. Step s has the places [offsets[s], offsets[s + 1]). The
/// function does not check the sums of costs.
template <kernel_backend Backend>
[[nodiscard]] ordered_samples sort_all_costs(Backend& backend, cost_steps const& steps,
                                             step_table const& table) {
  constexpr int cost_bits = 63;
  std::size_t const count = steps.costs.size();
  auto* const costs = backend.template scratch<std::uint64_t>(count);
  auto* const samples = backend.template scratch<std::uint32_t>(count);
  // The memory of the costs first contains the keys of both sorts. The costs are then read again by
  // the indices in `samples`.
  std::uint64_t* const cost_keys = costs;
  backend.for_each(count, write_cost_keys{table, cost_keys, samples});
  backend.sort_pairs(cost_keys, samples, count, 0, cost_bits);
  if (!steps.offsets.empty()) {
    auto* const step_keys = reinterpret_cast<std::uint32_t*>(costs);
    backend.for_each(count, write_step_keys{table, samples, step_keys});
    backend.sort_pairs(step_keys, samples, count, 0, omnibal::detail::bit_width(steps.step_count));
  }
  backend.for_each(count, write_ordered_costs{table, {costs, samples}});
  return {costs, samples};
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
