// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Longest processing time first on the device, with a block for each step.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/sorted_pairs.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Tuning constants of the speed of `gpu::lpt`; they do not change its result.
struct lpt_tuning {
  /// The threads of a block, each of which sorts at most 16 samples.
  static constexpr int threads = 512;
  /// The number of samples below which one thread is faster than a round of all threads.
  static constexpr std::uint32_t few = 5;
};

/// Limits on the numbers of samples of parts: parts with `floor` or more samples are full, except
/// that `extra` of them may have one more. No limit by default.
struct part_rooms {
  std::uint32_t floor = ~std::uint32_t{0};
  std::uint32_t extra = 0;

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool is_unlimited() const { return floor + 1 == 0; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool is_full(std::uint32_t count) const {
    return count >= floor && (extra == 0 || count > floor);
  }
};

/// Puts the samples of one step into parts, as one block. `Samples` has `cost(place)`, in
/// descending order, and `put(place, part)`. The cost of a sample is not read after its `put`.
///
/// A round puts one sample into each of the least loaded parts, in the order of their loads, as
/// long as no part would receive a second sample. The first sample goes to the least load, and the
/// next sample to the next load. The round ends if a part that has received its sample precedes the
/// next part. A round of many samples costs about the same time as a round of few. Loads differ by
/// about one cost. Therefore there are few more rounds than samples for each part.
struct longest_first {
  std::uint64_t* loads;
  std::uint32_t* counts;
  part_ranking ranking;
  /// Words by part or by rank, valid until the next ranking.
  std::uint32_t* marks;
  /// The results of one thread for the others.
  std::uint32_t* message;
  /// For two successive rounds: the first rank that the round cannot include.
  std::uint32_t* ends;

  template <class Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static longest_first take(Arena& arena, std::size_t parts) {
    auto* const loads = arena.template take<std::uint64_t>(parts);
    auto* const counts = arena.template take<std::uint32_t>(parts);
    auto* const marks =
        arena.template take<std::uint32_t>(larger_of(parts, 2 * part_ranking::spare_words(parts)));
    auto const ranking = part_ranking::take(arena, parts, marks);
    auto* const message = arena.template take<std::uint32_t>(2);
    return {loads, counts, ranking, marks, message, arena.template take<std::uint32_t>(2)};
  }

  /// Places `count` samples. The first `costly` of them have a cost, and the others have zero cost.
  template <class Block, class Samples>
  OMNIBAL_HOST_DEVICE void place(Block& block, Samples const& samples, std::uint32_t count,
                                 std::uint32_t costly, std::uint32_t parts,
                                 part_rooms limits) const {
    block.for_each(parts, [&](std::size_t part) {
      loads[part] = 0;
      counts[part] = 0;
      if (part == 0) ends[0] = none;
    });
    if (parts == 1) {
      return block.for_each(count,
                            [&](std::size_t i) { samples.put(static_cast<std::uint32_t>(i), 0); });
    }
    place_costly(block, samples, costly, parts, limits);
    place_zero_cost(block, samples, costly, count, parts);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  template <class Block, class Samples>
  OMNIBAL_HOST_DEVICE void place_costly(Block& block, Samples const& samples, std::uint32_t costly,
                                        std::uint32_t parts, part_rooms& limits) const {
    std::uint32_t turn = 0;
    for (std::uint32_t next = 0; next != costly; turn ^= 1) {
      std::uint32_t const open = rank_open_parts(block, parts, limits);
      std::uint32_t const most = smaller_of(open, costly - next);
      block.for_each(most, [&](std::size_t i) {
        auto const rank = static_cast<std::uint32_t>(i);
        std::uint32_t const end = ranking.first_after(
            rank + 1, most, ranking.loads[rank] + samples.cost(next + rank), ranking.parts[rank]);
        if (end != most) atomic_min(&ends[turn], end);
        if (rank == 0) ends[turn ^ 1] = none;
      });
      std::uint32_t const run = smaller_of(ends[turn], most);
      if (run < lpt_tuning::few) {
        next = place_in_turn(block, samples, next, costly, open, limits);
      } else {
        next += place_round(block, samples, next, run, limits);
      }
    }
  }

  /// Ranks the parts, parts with room before full parts. Returns the number of parts with room.
  template <class Block>
  OMNIBAL_HOST_DEVICE std::uint32_t rank_open_parts(Block& block, std::uint32_t parts,
                                                    part_rooms const& limits) const {
    if (limits.is_unlimited()) {
      ranking.rank(block, parts, [&](std::uint32_t part) { return loads[part]; });
      return parts;
    }
    ranking.rank(block, parts, [&](std::uint32_t part) {
      return limits.is_full(counts[part]) ? no_load : loads[part];
    });
    return block.reduce(
        parts,
        [&](std::size_t part) {
          return limits.is_full(counts[part]) ? std::uint32_t{0} : std::uint32_t{1};
        },
        add{}, std::uint32_t{0});
  }

  /// Puts a sample into each of the first `run` ranked parts, or into fewer parts if the room of
  /// the others shrinks. Returns the number of samples.
  template <class Block, class Samples>
  OMNIBAL_HOST_DEVICE std::uint32_t place_round(Block& block, Samples const& samples,
                                                std::uint32_t next, std::uint32_t run,
                                                part_rooms& limits) const {
    if (limits.extra != 0) run = up_to_last_extra(block, run, limits);
    block.for_each(run, [&](std::size_t i) {
      auto const place = next + static_cast<std::uint32_t>(i);
      std::uint32_t const part = ranking.parts[i];
      loads[part] += samples.cost(place);
      ++counts[part];
      samples.put(place, part);
    });
    return run;
  }

  /// Shortens a round, which ends at the part that receives the last sample above the floor.
  /// Subtracts these samples from `limits.extra`. Returns the number of parts in the round.
  template <class Block>
  OMNIBAL_HOST_DEVICE std::uint32_t up_to_last_extra(Block& block, std::uint32_t run,
                                                     part_rooms& limits) const {
    auto const is_extra = [&](std::size_t rank) {
      return counts[ranking.parts[rank]] == limits.floor;
    };
    block.for_each(run, [&](std::size_t rank) { marks[rank] = is_extra(rank) ? 1u : 0u; });
    std::uint32_t const extras = block.exclusive_sum(marks, run);
    if (extras < limits.extra) {
      limits.extra -= extras;
      return run;
    }
    std::uint32_t const last = block.reduce(
        run,
        [&](std::size_t rank) {
          bool const is_last = is_extra(rank) && marks[rank] + 1 == limits.extra;
          return is_last ? static_cast<std::uint32_t>(rank) + 1 : run;
        },
        take_smaller{}, run);
    limits.extra = 0;
    return last;
  }

  /// Lets one thread put samples, as long as the part that receives a sample moves only a few ranks
  /// up on average. Ends earlier if a part becomes full. Returns the next sample.
  template <class Block, class Samples>
  OMNIBAL_HOST_DEVICE std::uint32_t place_in_turn(Block& block, Samples const& samples,
                                                  std::uint32_t next, std::uint32_t last,
                                                  std::uint32_t open, part_rooms& limits) const {
    block.once([&] {
      std::uint32_t place = next;
      std::uint32_t extra = limits.extra;
      std::uint32_t moves = 0;
      std::uint32_t const max_moves = 8 * lpt_tuning::few;
      bool has_changed_room = false;
      for (; place != last && !has_changed_room &&
             moves < max_moves + lpt_tuning::few * (place - next);
           ++place) {
        std::uint32_t const part = ranking.parts[0];
        std::uint64_t const load = ranking.loads[0] + samples.cost(place);
        loads[part] = load;
        samples.put(place, part);
        std::uint32_t const count = ++counts[part];
        if (count > limits.floor) --extra;
        has_changed_room = !limits.is_unlimited() && count >= limits.floor;
        std::uint32_t rank = 0;
        for (; rank + 1 != open &&
               is_before(ranking.loads[rank + 1], ranking.parts[rank + 1], load, part);
             ++rank) {
          ranking.loads[rank] = ranking.loads[rank + 1];
          ranking.parts[rank] = ranking.parts[rank + 1];
        }
        ranking.loads[rank] = load;
        ranking.parts[rank] = part;
        moves += rank;
      }
      message[0] = place;
      message[1] = extra;
    });
    limits.extra = message[1];
    return message[0];
  }

  /// Puts samples of zero cost into the parts with the fewest samples: level after level, and
  /// within a level in the order of the parts. Limits on the counts hold without a check, because
  /// there is room for all samples.
  template <class Block, class Samples>
  OMNIBAL_HOST_DEVICE void place_zero_cost(Block& block, Samples const& samples, std::uint32_t next,
                                           std::uint32_t last, std::uint32_t parts) const {
    while (next != last) {
      std::uint32_t const level = block.reduce(
          parts, [&](std::size_t part) { return counts[part]; }, take_smaller{}, none);
      std::uint32_t const above = block.reduce(
          parts, [&](std::size_t part) { return counts[part] == level ? none : counts[part]; },
          take_smaller{}, none);
      block.for_each(parts,
                     [&](std::size_t part) { marks[part] = counts[part] == level ? 1u : 0u; });
      std::uint32_t const members = block.exclusive_sum(marks, parts);
      block.for_each(parts, [&](std::size_t part) {
        if (counts[part] == level) {
          ranking.parts[marks[part]] = static_cast<std::uint32_t>(part);
        }
      });
      std::uint64_t const room = std::uint64_t{members} * (above - level);
      auto const put = static_cast<std::uint32_t>(smaller_of<std::uint64_t>(room, last - next));
      block.for_each(put, [&](std::size_t i) {
        auto const place = static_cast<std::uint32_t>(i);
        samples.put(next + place, ranking.parts[place % members]);
      });
      block.for_each(members, [&](std::size_t i) {
        auto const member = static_cast<std::uint32_t>(i);
        if (member < put) counts[ranking.parts[i]] += (put - member - 1) / members + 1;
      });
      next += put;
    }
  }
};

/// Returns the limits of a policy for a step of `samples` samples. Raises a fault if counts must be
/// equal but the parts do not divide the samples.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline part_rooms room_of(count_policy policy,
                                                            std::uint32_t samples,
                                                            std::uint32_t parts, fault* faults) {
  if (policy == count_policy::any) return {};
  std::uint32_t const extra = samples % parts;
  if (policy == count_policy::equal && extra != 0) raise(faults, fault::uneven_counts);
  return {samples / parts, extra};
}

/// Places one step, from its costs to its parts, in shared memory.
struct lpt_in_block {
  static constexpr int min_blocks = 1;
  static constexpr bool is_compact = true;

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

  /// Samples whose part is stored in the bits above their number: there are fewer than 2^16 of
  /// both.
  struct in_place {
    static constexpr int number_bits = 16;
    static_assert(max_shared_bytes / (sizeof(std::uint64_t) + sizeof(std::uint32_t)) <=
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
    memory const taken = take(block, table.largest(), out.parts);
    ordered_samples const& order = taken.order;
    longest_first const& placing = taken.placing;
    step_range const range = table[step];
    std::uint32_t const costly = write_in_order(block, table, range, order.costs, order.samples);
    placing.place(block, in_place{order}, range.size, costly, out.parts,
                  room_of(policy, range.size, out.parts, table.faults()));
    write_part_offsets(block, out, step, range, placing.counts);
    // The costs are no longer needed.
    auto* const part_of = reinterpret_cast<std::uint32_t*>(order.costs);
    block.for_each(range.size, [&](std::size_t place) {
      std::uint32_t const put = order.samples[place];
      part_of[put & ((1u << in_place::number_bits) - 1)] = put >> in_place::number_bits;
    });
    write_parts_in_block(block, out, range, part_of, order.samples);
  }
};

/// Places one step whose costs are sorted, with arrays of the parts.
template <class Arrays>
struct lpt_of_sorted {
  static constexpr int min_blocks = 1;

  step_table table;
  part_writer out;
  count_policy policy;
  ordered_samples order;
  /// The part of the sample at each place.
  std::uint32_t* part_of;
  Arrays arrays;

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
    auto&& arena = arrays.of(block, step);
    longest_first const placing = longest_first::take(arena, out.parts);
    step_range const range = table[step];
    std::uint64_t* const costs = order.costs + range.first;
    bool const is_sum_valid =
        check_sum_of(block, table, range, [&](std::size_t i) { return costs[i]; });
    std::uint32_t const costly =
        is_sum_valid
            ? block.reduce(
                  range.size, [&](std::size_t i) { return costs[i] != 0 ? 1u : 0u; }, add{}, 0u)
            : 0;
    placing.place(block, in_order{costs, part_of + range.first}, range.size, costly, out.parts,
                  room_of(policy, range.size, out.parts, table.faults()));
    write_part_offsets(block, out, step, range, placing.counts);
  }
};

/// Runs `gpu::lpt` on any backend.
template <class Backend>
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
  auto* const part_of = backend.template scratch<std::uint32_t>(steps.costs.size());
  std::size_t const of_parts =
      arena_bytes([&](arena_meter& arena) { return longest_first::take(arena, parts); });
  for_each_block_with_arrays<lpt_tuning::threads>(
      backend, steps.step_count, of_parts, [&]<class Arrays>(Arrays arrays) {
        return lpt_of_sorted<Arrays>{table, writer, policy, order, part_of, arrays};
      });
  // The costs are no longer needed.
  write_parts_of_places(backend, steps, table, writer, order.samples, part_of,
                        reinterpret_cast<std::uint32_t*>(order.costs));
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
