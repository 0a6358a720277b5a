#pragma once

/// \file
/// The rounds in which parts exchange samples.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/sorted_pairs.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// A sample that leaves a part and one that comes for it, as positions among the samples of their
/// parts; `nothing` is legal for the latter.
struct part_exchange {
  static constexpr std::uint32_t nothing = ~std::uint32_t{0};

  /// The larger load of the two parts afterwards.
  std::uint64_t largest;
  std::uint32_t leaves;
  std::uint32_t comes;

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool helps() const { return leaves != nothing; }
};

/// The better one: that with the least `largest`, of equal ones that of the first sample to leave.
struct take_better_exchange {
  OMNIBAL_HOST_DEVICE constexpr part_exchange operator()(part_exchange const& left,
                                                         part_exchange const& right) const {
    bool const is_right = right.largest < left.largest ||
                          (right.largest == left.largest && right.leaves < left.leaves);
    return is_right ? right : left;
  }
};

/// The samples of each part, by ascending place in the order of falling costs, one part after the
/// other in one array. Exchanges of a round are noted first and then carried out at once, by
/// writing all lists anew: each sample finds its new position by itself.
struct part_lists {
  std::uint32_t samples;
  std::uint32_t parts;
  /// By place.
  std::uint64_t* costs;
  std::uint32_t* part_of;
  /// The lists, and room for the next ones.
  std::uint32_t* places;
  std::uint32_t* next_places;
  /// By part: the first position, the number of samples, the load.
  std::uint32_t* offsets;
  std::uint32_t* next_offsets;
  std::uint32_t* sizes;
  std::uint64_t* loads;
  /// By part, for the exchanges that were noted: the position of what leaves, the place of what
  /// comes, and with which part.
  std::uint32_t* leaving;
  std::uint32_t* coming;
  std::uint32_t* partners;

  /// Takes the arrays by sample.
  template <class Arena>
  OMNIBAL_HOST_DEVICE void take_samples(Arena& arena, std::uint32_t sample_count) {
    samples = sample_count;
    costs = arena.template take<std::uint64_t>(sample_count);
    part_of = arena.template take<std::uint32_t>(sample_count);
    places = arena.template take<std::uint32_t>(sample_count);
    next_places = arena.template take<std::uint32_t>(sample_count);
  }
  /// Takes the arrays by part.
  template <class Arena>
  OMNIBAL_HOST_DEVICE void take_parts(Arena& arena, std::uint32_t part_count) {
    parts = part_count;
    offsets = arena.template take<std::uint32_t>(part_count);
    next_offsets = arena.template take<std::uint32_t>(part_count);
    sizes = arena.template take<std::uint32_t>(part_count);
    loads = arena.template take<std::uint64_t>(part_count);
    leaving = arena.template take<std::uint32_t>(part_count);
    coming = arena.template take<std::uint32_t>(part_count);
    partners = arena.template take<std::uint32_t>(part_count);
  }

  /// Makes the arrays by part from `places`, `part_of` and `costs`.
  template <class Block>
  OMNIBAL_HOST_DEVICE void sum_up(Block& block) const {
    block.for_each(parts, [&](std::size_t part) {
      sizes[part] = 0;
      loads[part] = 0;
      leaving[part] = part_exchange::nothing;
      coming[part] = part_exchange::nothing;
    });
    block.for_each(samples, [&](std::size_t place) {
      static_cast<void>(atomic_add(&sizes[part_of[place]], std::uint32_t{1}));
      static_cast<void>(atomic_add(&loads[part_of[place]], costs[place]));
    });
    static_cast<void>(block.exclusive_sum_of(
        parts, [&](std::size_t part) { return sizes[part]; }, offsets));
  }

  /// The exchange after which the larger load of two parts is least, found by a warp;
  /// `heavy` has the larger load. It leaves nothing where none makes that load smaller. Each sample
  /// that may leave looks for the two that are best for it, by the excess of the load.
  template <class Warp>
  [[nodiscard]] OMNIBAL_HOST_DEVICE part_exchange best_exchange(Warp& warp, std::uint32_t heavy,
                                                                std::uint32_t light,
                                                                bool may_move) const {
    std::uint32_t const* const from = places + offsets[heavy];
    std::uint32_t const* const to = places + offsets[light];
    std::uint32_t const size = sizes[light];
    auto const load = static_cast<std::int64_t>(loads[heavy]);
    auto const other_load = static_cast<std::int64_t>(loads[light]);
    std::int64_t const half_excess = (load - other_load) / 2;
    part_exchange const none{loads[heavy], part_exchange::nothing, part_exchange::nothing};
    return warp.reduce(
        load == other_load ? 0 : sizes[heavy],
        [&](std::size_t i) {
          auto const leaves = static_cast<std::int64_t>(costs[from[i]]);
          part_exchange best = none;
          auto const consider = [&](std::uint32_t comes, std::int64_t moved) {
            auto const largest = static_cast<std::uint64_t>(
                larger_of<std::int64_t>(load - moved, other_load + moved));
            if (largest < best.largest) best = {largest, static_cast<std::uint32_t>(i), comes};
          };
          auto const cost = [&](std::uint32_t k) {
            return static_cast<std::int64_t>(costs[to[k]]);
          };
          if (may_move) consider(part_exchange::nothing, leaves);
          std::uint32_t const low = first_false(std::uint32_t{0}, size, [&](std::uint32_t k) {
            return cost(k) > leaves - half_excess;
          });
          if (low != size) consider(low, leaves - cost(low));
          if (low != 0) consider(low - 1, leaves - cost(low - 1));
          return best;
        },
        take_better_exchange{}, none);
  }

  /// Notes an exchange, as one thread. A part can be in one exchange at a time.
  OMNIBAL_HOST_DEVICE void note(std::uint32_t heavy, std::uint32_t light,
                                part_exchange const& swap) const {
    std::uint32_t const leaves = places[offsets[heavy] + swap.leaves];
    bool const comes_any = swap.comes != part_exchange::nothing;
    std::uint32_t const comes =
        comes_any ? places[offsets[light] + swap.comes] : part_exchange::nothing;
    leaving[heavy] = swap.leaves;
    leaving[light] = swap.comes;
    coming[heavy] = comes;
    coming[light] = leaves;
    partners[heavy] = light;
    partners[light] = heavy;
    std::uint64_t const moved = costs[leaves] - (comes_any ? costs[comes] : 0);
    loads[heavy] -= moved;
    loads[light] += moved;
    if (comes_any) return;
    --sizes[heavy];
    ++sizes[light];
  }

  /// Carries out what was noted.
  template <class Block>
  OMNIBAL_HOST_DEVICE void carry_out(Block& block) {
    static_cast<void>(block.exclusive_sum_of(
        parts, [&](std::size_t part) { return sizes[part]; }, next_offsets));
    block.for_each(samples, [&](std::size_t i) {
      auto const position = static_cast<std::uint32_t>(i);
      std::uint32_t const place = places[position];
      std::uint32_t const part = part_of[place];
      std::uint32_t const rank = position - offsets[part];
      if (rank == leaving[part]) {
        std::uint32_t const other = partners[part];
        part_of[place] = other;
        next_places[next_offsets[other] + rank_among(place, other)] = place;
        return;
      }
      std::uint32_t const before = (coming[part] < place ? 1u : 0u);
      next_places[next_offsets[part] + rank - (leaving[part] < rank ? 1u : 0u) + before] = place;
    });
    block.for_each(parts, [&](std::size_t part) {
      leaving[part] = part_exchange::nothing;
      coming[part] = part_exchange::nothing;
    });
    exchange(places, next_places);
    exchange(offsets, next_offsets);
  }

 private:
  OMNIBAL_HOST_DEVICE static void exchange(std::uint32_t*& left, std::uint32_t*& right) {
    std::uint32_t* const other = left;
    left = right;
    right = other;
  }

  /// How many samples of a part, without the one that leaves, have a lower place.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t rank_among(std::uint32_t place,
                                                             std::uint32_t part) const {
    // The size may have changed already, but not the end of the list.
    std::uint32_t const first = offsets[part];
    std::uint32_t const last = part + 1 == parts ? samples : offsets[part + 1];
    std::uint32_t const rank =
        first_false(first, last, [&](std::uint32_t k) { return places[k] < place; }) - first;
    return rank - (leaving[part] < rank ? 1u : 0u);
  }
};

/// The memory of a search beside that of the lists.
struct refine_memory {
  part_ranking ranking;
  /// One for each part.
  part_exchange* swaps;

  template <class Arena>
  OMNIBAL_HOST_DEVICE void take(Arena& arena, std::size_t parts) {
    swaps = arena.template take<part_exchange>(parts);
    ranking = part_ranking::take(arena, parts, swaps);
  }
};

/// Rounds in which pairs of parts exchange at once.
struct round_refiner {
  std::uint64_t rounds;
  bool may_move;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, part_lists& lists, refine_memory const& memory,
                                      std::uint64_t target) const {
    part_ranking const& ranking = memory.ranking;
    std::uint32_t const last = lists.parts - 1;
    for (std::uint64_t left = rounds; left != 0; --left) {
      ranking.rank(block, lists.parts, [&](std::uint32_t part) { return lists.loads[part]; });
      if (ranking.loads[last] <= target) return;
      if (!note_exchanges(block, lists, memory, target)) return;
      lists.carry_out(block);
    }
  }

 private:
  /// Notes exchanges of the most loaded parts with the least loaded ones, in pairs, or, where that
  /// does not help the most loaded part, the best one of this with any other. False where no
  /// exchange helps it. One loop for both, since the search is long.
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool note_exchanges(Block& block, part_lists const& lists,
                                                        refine_memory const& memory,
                                                        std::uint64_t target) const {
    part_ranking const& ranking = memory.ranking;
    std::uint32_t const last = lists.parts - 1;
    std::uint32_t const pairs =
        smaller_of(lists.parts / 2, lists.parts - ranking.first_above(lists.parts, target));
    for (bool is_alone = pairs == 0;; is_alone = true) {
      auto const heavy = [&](std::size_t rank) {
        return ranking.parts[is_alone ? last : last - rank];
      };
      std::uint32_t const count = is_alone ? lists.parts : pairs;
      block.for_each_warp(count, [&](auto& warp, std::size_t rank) {
        part_exchange const found =
            lists.best_exchange(warp, heavy(rank), ranking.parts[rank], may_move);
        warp.once([&] { memory.swaps[rank] = found; });
      });
      std::uint32_t const first = is_alone ? best_rank(block, memory.swaps, count) : 0;
      if (first != count && memory.swaps[first].helps()) {
        block.for_each(is_alone ? 1 : count, [&](std::size_t i) {
          std::size_t const rank = first + i;
          if (!memory.swaps[rank].helps()) return;
          lists.note(heavy(rank), ranking.parts[rank], memory.swaps[rank]);
        });
        return true;
      }
      if (is_alone) return false;
      // A barrier, since the next search may write there before the last thread has looked.
      block.for_each(0, [](std::size_t) {});
    }
  }

  /// The first rank of the least swap that helps, or `count`.
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static std::uint32_t best_rank(Block& block,
                                                                   part_exchange const* swaps,
                                                                   std::uint32_t count) {
    struct candidate {
      std::uint64_t largest;
      std::uint32_t rank;
    };
    candidate const none{no_load, count};
    candidate const best = block.reduce(
        count,
        [&](std::size_t rank) {
          candidate const here{swaps[rank].largest, static_cast<std::uint32_t>(rank)};
          return swaps[rank].helps() ? here : none;
        },
        [](candidate const& left, candidate const& right) {
          return is_before(right.largest, right.rank, left.largest, left.rank) ? right : left;
        },
        none);
    return best.rank;
  }
};

}  // namespace omnibal::inline v0::gpu::detail
