#pragma once

/// \file
/// The rounds in which parts exchange samples.

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
};

/// Rounds in which pairs of parts exchange at once.
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
    find_others(block, lists, memory, heavy);
    std::uint32_t const best = best_rank(block, memory.swaps, lists.parts);
    if (best == lists.parts) return false;
    block.once([&] { lists.note(heavy, memory.ranking.parts[best], memory.swaps[best]); });
    return true;
  }

  /// Finds for each of the parts below the most loaded one what exchange with it helps `heavy`.
  template <class Block>
  OMNIBAL_HOST_DEVICE void find_others(Block& block, exchange_lists const& lists,
                                       refine_memory const& memory, std::uint32_t heavy) const {
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

  /// The first rank of the least swap that helps, or `count`.
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static std::uint32_t best_rank(Block& block,
                                                                   sample_swap const* swaps,
                                                                   std::uint32_t count) {
    return block.reduce(
        count,
        [&](std::size_t rank) {
          return swaps[rank].helps() ? static_cast<std::uint32_t>(rank) : count;
        },
        [&](std::uint32_t left, std::uint32_t right) {
          if (left == count || right == count) return smaller_of(left, right);
          if (swaps[left].largest != swaps[right].largest) {
            return swaps[left].largest < swaps[right].largest ? left : right;
          }
          return smaller_of(left, right);
        },
        count);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
