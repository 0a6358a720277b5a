#pragma once

/// \file
/// Evens given parts of one step in shared memory.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/atomics.hpp>
#include <omnibal/cuda/detail/collect_parts.hpp>
#include <omnibal/cuda/detail/costs_in_order.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/part_writer.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/refine/swap.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

inline constexpr int refine_threads = 512;

/// The groups of the caller as the parts of steps.
struct given_parts {
  grouping_view groups;
  std::uint32_t parts;
  fault* faults;

  /// False, and a fault, where the parts of a step are not groups of its samples.
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool match(Block& block, std::size_t step,
                                               step_range const& range) const {
    std::size_t const first = step * parts;
    std::uint32_t const wrong = block.reduce(
        parts,
        [&](std::size_t part) {
          bool const descends = groups.offset(first + part) > groups.offset(first + part + 1);
          return descends ? std::uint32_t{1} : std::uint32_t{0};
        },
        add{}, std::uint32_t{0});
    if (wrong == 0 && groups.offset(first) == range.first &&
        groups.offset(first + parts) == range.first + range.size) {
      return true;
    }
    raise(faults, fault::unknown_index);
    return false;
  }

  /// The part that has the item at a position. Precondition: the parts of the step match.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t part_at(std::size_t step,
                                                          std::uint32_t position) const {
    std::uint32_t low = 0;
    std::uint32_t high = parts - 1;
    while (low != high) {
      std::uint32_t const middle = low + (high - low) / 2;
      if (groups.offset(step * parts + middle + 1) <= position) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

/// A lower bound on the largest load, and the share `tolerance` of it more, or the largest integer.
template <class Block>
[[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t target_load(Block& block,
                                                            exchange_lists const& lists,
                                                            double max_overload) {
  std::uint64_t const sum = block.reduce(
      lists.samples, [&](std::size_t place) { return lists.costs[place]; }, add{},
      std::uint64_t{0});
  std::uint64_t bound = sum / lists.parts + (sum % lists.parts != 0 ? 1 : 0);
  if (lists.samples != 0) bound = larger_of(bound, lists.costs[0]);
  if (lists.samples > lists.parts) {
    bound = larger_of(bound, lists.costs[lists.parts - 1] + lists.costs[lists.parts]);
  }
  double const slack = static_cast<double>(bound) * max_overload;
  if (slack >= static_cast<double>(largest_sum - bound)) return largest_sum;
  return bound + static_cast<std::uint64_t>(slack);
}

/// Evens the parts of one step in shared memory. The samples by place lie in the items of the
/// result until they are needed.
struct refine_in_block {
  step_table table;
  given_parts given;
  part_writer out;
  search_in_rounds search;
  double max_overload;

  template <class Arena>
  OMNIBAL_HOST_DEVICE static void take(Arena&& arena, std::size_t samples, std::size_t parts,
                                       exchange_lists& lists, refine_memory& memory) {
    lists.take_samples(arena, static_cast<std::uint32_t>(samples));
    lists.take_parts(arena, static_cast<std::uint32_t>(parts));
    memory.take(arena, parts);
  }

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    exchange_lists lists{};
    refine_memory memory{};
    take(shared_arena(block), table.largest(), out.parts, lists, memory);
    step_range range = table[step];
    if (!given.match(block, step, range)) range.size = 0;
    lists.samples = range.size;
    read(block, step, range, lists);
    lists.sum_up(block);
    search(block, lists, memory, target_load(block, lists, max_overload));
    write(block, step, range, lists);
  }

 private:
  /// Sorts the samples, and finds the part of each place and the places of each part.
  template <class Block>
  OMNIBAL_HOST_DEVICE void read(Block& block, std::size_t step, step_range const& range,
                                exchange_lists const& lists) const {
    constexpr std::uint32_t no_part = ~std::uint32_t{0};
    std::uint32_t* const part_of_sample = lists.next_places;
    // A loop that does nothing else has several loads under way.
    block.for_each(range.size, [&](std::size_t i) {
      part_of_sample[i] = no_part;
      lists.places[i] = given.groups.item(range.first + i);
    });
    block.for_each(range.size, [&](std::size_t i) {
      auto const position = range.first + static_cast<std::uint32_t>(i);
      std::uint32_t const sample = lists.places[i] - range.first;
      if (sample < range.size) part_of_sample[sample] = given.part_at(step, position);
    });
    static_cast<void>(write_in_order(block, table, range, lists.costs, lists.places));
    block.for_each(range.size, [&](std::size_t place) {
      std::uint32_t const sample = lists.places[place];
      std::uint32_t part = part_of_sample[sample];
      if (part == no_part) {
        raise(given.faults, fault::unknown_index);
        part = 0;
      }
      lists.part_of[place] = part;
      out.items[range.first + place] = range.first + sample;
    });
    block.for_each(range.size,
                   [&](std::size_t place) { lists.next_places[place] = lists.part_of[place]; });
    block.sort_numbered(lists.next_places, lists.places, range.size);
  }

  template <class Block>
  OMNIBAL_HOST_DEVICE void write(Block& block, std::size_t step, step_range const& range,
                                 exchange_lists const& lists) const {
    write_part_offsets(block, out, step, range, lists.sizes);
    block.for_each(range.size, [&](std::size_t place) {
      lists.next_places[out.items[range.first + place] - range.first] = lists.part_of[place];
    });
    write_parts_in_block(block, out, range, lists.next_places, lists.places);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
