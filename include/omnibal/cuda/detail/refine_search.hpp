#pragma once

/// \file
/// In which order parts exchange samples.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/exchange_lists.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/part_ranking.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The memory of a search beside that of the lists.
struct refine_memory {
  part_ranking ranking;
  /// One for each part.
  sample_swap* swaps;

  template <class Arena>
  OMNIBAL_HOST_DEVICE void take(Arena& arena, std::size_t parts) {
    ranking = part_ranking::take(arena, parts);
    swaps = arena.template take<sample_swap>(parts);
  }

  /// The first rank of the least swap that helps among those found, or `count`.
  template <class Block, class Better>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t best_rank(Block& block, std::uint32_t count,
                                                            Better const& better) const {
    return block.reduce(
        count,
        [&](std::size_t rank) {
          return swaps[rank].helps() ? static_cast<std::uint32_t>(rank) : count;
        },
        better, count);
  }
};

/// Of two ranks that of the swap with the least `largest`, of equal ones the lower.
struct take_better_rank {
  sample_swap const* swaps;
  std::uint32_t count;
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::uint32_t left, std::uint32_t right) const {
    if (left == count || right == count) return smaller_of(left, right);
    if (swaps[left].largest != swaps[right].largest) {
      return swaps[left].largest < swaps[right].largest ? left : right;
    }
    return smaller_of(left, right);
  }
};

/// Finds for each of the parts below the most loaded one what exchange with it helps `heavy`.
template <class Block>
OMNIBAL_HOST_DEVICE void try_others(Block& block, exchange_lists const& lists,
                                    refine_memory const& memory, std::uint32_t heavy,
                                    bool may_move) {
  std::uint64_t const load = memory.ranking.loads[lists.parts - 1];
  block.for_each_warp(lists.parts, [&](auto& warp, std::size_t rank) {
    std::uint32_t const other = memory.ranking.parts[rank];
    sample_swap found{load, sample_swap::nothing, sample_swap::nothing};
    if (memory.ranking.loads[rank] < load) {
      found = lists.best_swap(warp, heavy, other, may_move);
    }
    warp.once([&] { memory.swaps[rank] = found; });
  });
}

/// The rounds of `refine_rounds`.
struct search_in_rounds {
  std::uint64_t rounds;
  bool may_move;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, exchange_lists& lists,
                                      refine_memory const& memory, std::uint64_t target) const {
    part_ranking const& ranking = memory.ranking;
    std::uint32_t const last = lists.parts - 1;
    for (std::uint64_t left = rounds; left != 0; --left) {
      ranking.rank(block, lists.parts, [&](std::uint32_t part) { return lists.loads[part]; });
      if (ranking.loads[last] <= target) return;
      if (!even_pairs(block, lists, memory, target) && !relieve(block, lists, memory)) return;
      lists.carry_out(block);
    }
  }

 private:
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool even_pairs(Block& block, exchange_lists const& lists,
                                                    refine_memory const& memory,
                                                    std::uint64_t target) const {
    part_ranking const& ranking = memory.ranking;
    std::uint32_t const last = lists.parts - 1;
    std::uint32_t const pairs =
        smaller_of(lists.parts / 2, lists.parts - ranking.first_above(lists.parts, target));
    block.for_each_warp(pairs, [&](auto& warp, std::size_t pair) {
      sample_swap const found =
          lists.best_swap(warp, ranking.parts[last - pair], ranking.parts[pair], may_move);
      warp.once([&] { memory.swaps[pair] = found; });
    });
    if (pairs == 0) return false;
    if (!memory.swaps[0].helps()) {
      // A barrier, since what follows may write there before the last thread has looked.
      block.for_each(0, [](std::size_t) {});
      return false;
    }
    block.for_each(pairs, [&](std::size_t pair) {
      if (!memory.swaps[pair].helps()) return;
      lists.note(ranking.parts[last - pair], ranking.parts[pair], memory.swaps[pair]);
    });
    return true;
  }

  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool relieve(Block& block, exchange_lists const& lists,
                                                 refine_memory const& memory) const {
    std::uint32_t const heavy = memory.ranking.parts[lists.parts - 1];
    try_others(block, lists, memory, heavy, may_move);
    std::uint32_t const best =
        memory.best_rank(block, lists.parts, take_better_rank{memory.swaps, lists.parts});
    if (best == lists.parts) return false;
    block.once([&] { lists.note(heavy, memory.ranking.parts[best], memory.swaps[best]); });
    return true;
  }
};

/// The exchanges of `refine`, one after the other.
struct search_in_turn {
  std::uint64_t exchanges;
  bool may_move;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, exchange_lists& lists,
                                      refine_memory const& memory, std::uint64_t target) const {
    part_ranking const& ranking = memory.ranking;
    std::uint64_t left = exchanges;
    while (left != 0) {
      ranking.rank(block, lists.parts, [&](std::uint32_t part) { return lists.loads[part]; });
      std::uint64_t const largest = ranking.loads[lists.parts - 1];
      if (largest <= target) return;
      // The lowest of equally loaded parts.
      std::uint32_t const heavy = block.reduce(
          lists.parts,
          [&](std::size_t rank) {
            return ranking.loads[rank] == largest ? ranking.parts[rank] : lists.parts;
          },
          take_smaller{}, lists.parts);
      std::uint32_t const light = ranking.parts[0];
      if (light != heavy && even(block, lists, memory, heavy, light, left)) continue;
      try_others(block, lists, memory, heavy, may_move);
      std::uint32_t const other = memory.best_rank(block, lists.parts, take_smaller{});
      if (other == lists.parts) return;
      static_cast<void>(even(block, lists, memory, heavy, ranking.parts[other], left));
    }
  }

 private:
  /// Exchanges between two parts as long as the larger of their loads falls; true where it did.
  template <class Block>
  OMNIBAL_HOST_DEVICE bool even(Block& block, exchange_lists& lists, refine_memory const&,
                                std::uint32_t heavy, std::uint32_t light,
                                std::uint64_t& left) const {
    bool has_changed = false;
    while (left != 0) {
      bool const is_turned = lists.loads[heavy] < lists.loads[light];
      std::uint32_t const from = is_turned ? light : heavy;
      std::uint32_t const to = is_turned ? heavy : light;
      sample_swap const swap = lists.best_swap(block, from, to, may_move);
      if (!swap.helps()) break;
      block.once([&] { lists.note(from, to, swap); });
      lists.carry_out(block);
      --left;
      has_changed = true;
    }
    return has_changed;
  }
};

}  // namespace omnibal::inline v0::gpu::detail
