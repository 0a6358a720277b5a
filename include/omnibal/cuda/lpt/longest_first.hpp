// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The assignment of the sorted samples of one step to parts.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/part_ranking.hpp>
#include <omnibal/cuda/lpt/part_rooms.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Tuning constants of the speed of `gpu::lpt`; they do not change its result.
struct lpt_tuning {
  /// The threads of a block, each of which sorts at most 16 samples.
  static constexpr int threads = 512;
  /// The number of samples below which one thread is faster than a round of all threads.
  static constexpr std::uint32_t min_round = 5;
};

/// Samples by descending cost.
/// - `cost(place)` returns the cost of the sample at a place.
/// - `assign(place, part)` records the part of this sample, whose cost is not read again.
template <class Samples>
concept assignable_samples = requires(Samples const& samples, std::uint32_t place) {
  { samples.cost(place) } -> std::same_as<std::uint64_t>;
  samples.assign(place, place);
};

/// Longest processing time first by one block: assigns the samples of one step to parts.
///
/// A round assigns one sample to each of the least loaded parts, in the order of their loads, as
/// long as no part would receive a second sample. The first sample goes to the least load, and the
/// next sample to the next load. The round ends if a part that has received its sample precedes the
/// next part. A round of many samples costs about the same time as a round of few samples. The
/// loads differ by about the cost of one sample. Therefore the number of rounds is little more than
/// the number of samples of a part.
///
/// The arrays, their contents and the lifetimes of the contents:
///
///   loads, counts   load and number of samples of each part    all rounds; the caller reads counts
///   ranking         the parts by load                          one round
///   ranking.parts   the parts with the fewest samples          a turn of assign_zero_cost
///   words           the memory of the sort                     rank_open_parts
///   words           the number of flags before a rank          up_to_last_extra
///   words           the number of flags before a part          a turn of assign_zero_cost
///   reached         the results of one thread                  assign_one_by_one
///   ends            the first rank that a round cannot include this round and the next one
struct longest_first {
  /// The message of `assign_one_by_one` to the threads that wait for it.
  struct progress {
    std::uint32_t next_place;
    std::uint32_t extra_left;
  };

  std::uint64_t* loads;
  std::uint32_t* counts;
  part_ranking ranking;
  std::uint32_t* words;
  progress* reached;
  std::uint32_t* ends;

  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static longest_first take(Arena& arena, std::size_t parts) {
    auto* const loads = arena.template take<std::uint64_t>(parts);
    auto* const counts = arena.template take<std::uint32_t>(parts);
    auto* const words =
        arena.template take<std::uint32_t>(larger_of(parts, 2 * part_ranking::spare_words(parts)));
    auto const ranking = part_ranking::take(arena, parts, words);
    auto* const reached = arena.template take<progress>(1);
    auto* const ends = arena.template take<std::uint32_t>(2);
    return {loads, counts, ranking, words, reached, ends};
  }

  /// Assigns `count` samples, of which the first `nonzero` have a cost that is not zero. Each
  /// thread has its own copy of `limits`, and all copies change equally.
  template <thread_block Block, assignable_samples Samples>
  OMNIBAL_HOST_DEVICE void assign(Block& block, Samples const& samples, std::uint32_t count,
                                  std::uint32_t nonzero, std::uint32_t parts,
                                  part_rooms limits) const {
    block.for_each(parts, [&](std::size_t part) {
      loads[part] = 0;
      counts[part] = 0;
      if (part == 0) ends[0] = none;
    });
    if (parts == 1) {
      return block.for_each(
          count, [&](std::size_t i) { samples.assign(static_cast<std::uint32_t>(i), 0); });
    }
    assign_nonzero(block, samples, nonzero, parts, limits);
    assign_zero_cost(block, samples, nonzero, count, parts);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Assigns the first `nonzero` samples in rounds: ranks the parts, finds the size of the round,
  /// and assigns its samples. All threads update their copies of `limits` equally.
  template <thread_block Block, assignable_samples Samples>
  OMNIBAL_HOST_DEVICE void assign_nonzero(Block& block, Samples const& samples,
                                          std::uint32_t nonzero, std::uint32_t parts,
                                          part_rooms& limits) const {
    std::uint32_t turn = 0;
    for (std::uint32_t next = 0; next != nonzero; turn ^= 1) {
      std::uint32_t const open = rank_open_parts(block, parts, limits);
      std::uint32_t const max_round = smaller_of(open, nonzero - next);
      // The round ends at the first rank that follows a part of the round with its new load. The
      // end of the next round is reset here, because no thread reads it yet.
      block.for_each(max_round, [&](std::size_t i) {
        auto const rank = static_cast<std::uint32_t>(i);
        std::uint32_t const end = ranking.first_after(
            rank + 1, max_round, ranking.loads[rank] + samples.cost(next + rank),
            ranking.parts[rank]);
        if (end != max_round) atomic_min(&ends[turn], end);
        if (rank == 0) ends[turn ^ 1] = none;
      });
      std::uint32_t const round_size = smaller_of(ends[turn], max_round);
      if (round_size < lpt_tuning::min_round) {
        next = assign_one_by_one(block, samples, next, nonzero, open, limits);
      } else {
        next += assign_round(block, samples, next, round_size, limits);
      }
    }
  }

  /// Ranks the parts, parts with room before full parts. Returns the number of parts with room.
  template <thread_block Block>
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

  /// Assigns a sample to each of the first `round_size` ranked parts, or to fewer parts if
  /// `limits.extra_left` is used up earlier. Returns the number of assigned samples.
  template <thread_block Block, assignable_samples Samples>
  OMNIBAL_HOST_DEVICE std::uint32_t assign_round(Block& block, Samples const& samples,
                                                 std::uint32_t next, std::uint32_t round_size,
                                                 part_rooms& limits) const {
    if (limits.extra_left != 0) round_size = up_to_last_extra(block, round_size, limits);
    block.for_each(round_size, [&](std::size_t i) {
      auto const place = next + static_cast<std::uint32_t>(i);
      std::uint32_t const part = ranking.parts[i];
      loads[part] += samples.cost(place);
      ++counts[part];
      samples.assign(place, part);
    });
    return round_size;
  }

  /// Shortens a round so that it ends at the part that receives the last sample above the floor.
  /// Subtracts the samples above the floor from `limits.extra_left`. Returns the number of parts in
  /// the round.
  template <thread_block Block>
  OMNIBAL_HOST_DEVICE std::uint32_t up_to_last_extra(Block& block, std::uint32_t round_size,
                                                     part_rooms& limits) const {
    auto const is_extra = [&](std::size_t rank) {
      return counts[ranking.parts[rank]] == limits.floor;
    };
    // The prefix sum replaces each flag by the number of flags before it.
    std::uint32_t* const extras_before = words;
    block.for_each(round_size,
                   [&](std::size_t rank) { extras_before[rank] = is_extra(rank) ? 1u : 0u; });
    std::uint32_t const extras = block.exclusive_sum(extras_before, round_size);
    if (extras < limits.extra_left) {
      limits.extra_left -= extras;
      return round_size;
    }
    std::uint32_t const last = block.reduce(
        round_size,
        [&](std::size_t rank) {
          bool const is_last = is_extra(rank) && extras_before[rank] + 1 == limits.extra_left;
          return is_last ? static_cast<std::uint32_t>(rank) + 1 : round_size;
        },
        take_smaller{}, round_size);
    limits.extra_left = 0;
    return last;
  }

  /// Lets one thread assign samples one after the other, as long as a part that receives a sample
  /// moves up only a few ranks on average. Ends earlier if a part becomes full. Returns the place
  /// of the next sample.
  template <thread_block Block, assignable_samples Samples>
  OMNIBAL_HOST_DEVICE std::uint32_t assign_one_by_one(Block& block, Samples const& samples,
                                                      std::uint32_t next, std::uint32_t last,
                                                      std::uint32_t open,
                                                      part_rooms& limits) const {
    block.once([&] {
      std::uint32_t place = next;
      std::uint32_t extra_left = limits.extra_left;
      std::uint32_t moves = 0;
      std::uint32_t const max_moves = 8 * lpt_tuning::min_round;
      bool has_changed_room = false;
      for (; place != last && !has_changed_room &&
             moves < max_moves + lpt_tuning::min_round * (place - next);
           ++place) {
        std::uint32_t const part = ranking.parts[0];
        std::uint64_t const load = ranking.loads[0] + samples.cost(place);
        loads[part] = load;
        samples.assign(place, part);
        std::uint32_t const count = ++counts[part];
        if (count > limits.floor) --extra_left;
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
      *reached = {place, extra_left};
    });
    limits.extra_left = reached->extra_left;
    return reached->next_place;
  }

  /// Assigns samples of zero cost to the parts with the fewest samples, in the order of the parts.
  /// When these parts have the same number of samples as the parts with the next larger number, it
  /// continues with both, and so on. Limits on the counts hold without a check, because there is
  /// room for all samples.
  template <thread_block Block, assignable_samples Samples>
  OMNIBAL_HOST_DEVICE void assign_zero_cost(Block& block, Samples const& samples,
                                            std::uint32_t next, std::uint32_t last,
                                            std::uint32_t parts) const {
    // The ranking is not read again, so its memory is free for other use.
    std::uint32_t* const members = ranking.parts;
    // The prefix sum replaces each flag by the number of flags before it.
    std::uint32_t* const members_before = words;
    while (next != last) {
      std::uint32_t const min_count = block.reduce(
          parts, [&](std::size_t part) { return counts[part]; }, take_smaller{}, none);
      auto const is_member = [&](std::size_t part) { return counts[part] == min_count; };
      std::uint32_t const next_count = block.reduce(
          parts, [&](std::size_t part) { return is_member(part) ? none : counts[part]; },
          take_smaller{}, none);
      block.for_each(parts,
                     [&](std::size_t part) { members_before[part] = is_member(part) ? 1u : 0u; });
      std::uint32_t const member_count = block.exclusive_sum(members_before, parts);
      block.for_each(parts, [&](std::size_t part) {
        if (is_member(part)) members[members_before[part]] = static_cast<std::uint32_t>(part);
      });
      std::uint64_t const room = std::uint64_t{member_count} * (next_count - min_count);
      auto const assigned =
          static_cast<std::uint32_t>(smaller_of<std::uint64_t>(room, last - next));
      block.for_each(assigned, [&](std::size_t i) {
        auto const k = static_cast<std::uint32_t>(i);
        samples.assign(next + k, members[k % member_count]);
      });
      block.for_each(member_count, [&](std::size_t i) {
        auto const member = static_cast<std::uint32_t>(i);
        if (member < assigned) counts[members[i]] += (assigned - member - 1) / member_count + 1;
      });
      next += assigned;
    }
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
