// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Refinement of given parts, a block for each step, with lists in shared or device memory.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/dealing.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/ordered_samples.hpp>
#include <omnibal/cuda/detail/part_ranking.hpp>
#include <omnibal/cuda/detail/part_writer.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/detail/whole_costs.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/bits.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// An exchange between two parts: `leaves` is the sample that leaves the part with the larger load,
/// and `comes` is the sample that replaces it, or `nothing` for a move. Both are positions among
/// the samples of their parts. `leaves` is `nothing` if no exchange helps.
struct pair_exchange {
  static constexpr std::uint32_t nothing = ~std::uint32_t{0};

  /// The larger of the two loads after the exchange.
  std::uint64_t largest;
  std::uint32_t leaves;
  std::uint32_t comes;

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool helps() const { return leaves != nothing; }
};

/// Returns the better exchange: the exchange with the least `largest`, and among equal exchanges
/// the one whose leaving sample is first.
struct take_better_exchange {
  OMNIBAL_HOST_DEVICE constexpr pair_exchange operator()(pair_exchange const& left,
                                                         pair_exchange const& right) const {
    bool const is_right = right.largest < left.largest ||
                          (right.largest == left.largest && right.leaves < left.leaves);
    return is_right ? right : left;
  }
};

/// The samples of each part by descending cost, one part after the other in one array. The place of
/// a sample is its position among all samples of the step by descending cost. The exchanges of a
/// round are recorded first. Then all lists are written anew at the same time, because each sample
/// finds its new position independently.
struct sorted_part_lists {
  std::uint32_t samples;
  std::uint32_t parts;
  /// Arrays by place: the cost of the sample, and its part.
  std::uint64_t* costs;
  std::uint32_t* part_of;
  /// The places of the samples in the current lists, and memory for the lists of the next round.
  std::uint32_t* places;
  std::uint32_t* next_places;
  /// Arrays by part: the first position in the current lists and in the next lists, the number of
  /// samples, and the load.
  std::uint32_t* offsets;
  std::uint32_t* next_offsets;
  std::uint32_t* sizes;
  std::uint64_t* loads;
  /// Arrays by part for the recorded exchanges: the position of the sample that leaves the part,
  /// the place of the sample that arrives, and the other part.
  std::uint32_t* leaving;
  std::uint32_t* coming;
  std::uint32_t* partners;

  /// Reserves the arrays with an element for each sample.
  template <array_arena Arena>
  OMNIBAL_HOST_DEVICE void take_samples(Arena& arena, std::uint32_t sample_count) {
    samples = sample_count;
    costs = arena.template take<std::uint64_t>(sample_count);
    part_of = arena.template take<std::uint32_t>(sample_count);
    places = arena.template take<std::uint32_t>(sample_count);
    next_places = arena.template take<std::uint32_t>(sample_count);
  }
  /// Reserves the arrays with an element for each part.
  template <array_arena Arena>
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

  /// Computes the sizes, loads and first positions of the parts from `part_of` and `costs`.
  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void sum_up(Block& block) const {
    block.for_each(parts, [&](std::size_t part) {
      sizes[part] = 0;
      loads[part] = 0;
      leaving[part] = pair_exchange::nothing;
      coming[part] = pair_exchange::nothing;
    });
    block.for_each(samples, [&](std::size_t place) {
      static_cast<void>(atomic_add(&sizes[part_of[place]], std::uint32_t{1}));
      static_cast<void>(atomic_add(&loads[part_of[place]], costs[place]));
    });
    static_cast<void>(block.exclusive_sum_of(
        parts, [&](std::size_t part) { return sizes[part]; }, offsets));
  }

  /// Returns the exchange after which the larger load of two parts is least, found by a warp;
  /// `heavy` has the larger load. In the result no sample leaves if no exchange reduces this load.
  /// Each sample of `heavy` has two candidates for its replacement: the samples of `light` whose
  /// costs are next to the cost that would make the loads equal.
  template <thread_team Warp>
  [[nodiscard]] OMNIBAL_HOST_DEVICE pair_exchange best_exchange(Warp& warp, std::uint32_t heavy,
                                                                std::uint32_t light,
                                                                part_counts part_rule) const {
    std::uint32_t const* const from = places + offsets[heavy];
    std::uint32_t const* const to = places + offsets[light];
    std::uint32_t const size = sizes[light];
    auto const load = static_cast<std::int64_t>(loads[heavy]);
    auto const other_load = static_cast<std::int64_t>(loads[light]);
    std::int64_t const half_excess = (load - other_load) / 2;
    pair_exchange const none{loads[heavy], pair_exchange::nothing, pair_exchange::nothing};
    return warp.reduce(
        load == other_load ? 0 : sizes[heavy],
        [&](std::size_t i) {
          auto const leaves = static_cast<std::int64_t>(costs[from[i]]);
          pair_exchange best = none;
          auto const consider = [&](std::uint32_t comes, std::int64_t moved) {
            auto const largest = static_cast<std::uint64_t>(
                larger_of<std::int64_t>(load - moved, other_load + moved));
            if (largest < best.largest) best = {largest, static_cast<std::uint32_t>(i), comes};
          };
          auto const cost = [&](std::uint32_t k) {
            return static_cast<std::int64_t>(costs[to[k]]);
          };
          if (part_rule == part_counts::free) consider(pair_exchange::nothing, leaves);
          std::uint32_t const low = first_false(std::uint32_t{0}, size, [&](std::uint32_t k) {
            return cost(k) > leaves - half_excess;
          });
          if (low != size) consider(low, leaves - cost(low));
          if (low != 0) consider(low - 1, leaves - cost(low - 1));
          return best;
        },
        take_better_exchange{}, none);
  }

  /// Records an exchange, in one thread. A part can be in only one exchange of a round.
  OMNIBAL_HOST_DEVICE void note(std::uint32_t heavy, std::uint32_t light,
                                pair_exchange const& swap) const {
    std::uint32_t const leaves = places[offsets[heavy] + swap.leaves];
    bool const comes_any = swap.comes != pair_exchange::nothing;
    std::uint32_t const comes =
        comes_any ? places[offsets[light] + swap.comes] : pair_exchange::nothing;
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

  /// Moves the samples of all recorded exchanges to their new parts. The samples of a part stay
  /// sorted.
  template <thread_block Block>
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
      leaving[part] = pair_exchange::nothing;
      coming[part] = pair_exchange::nothing;
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

  /// Returns the number of samples of a part with a lower place than `place`, without the sample
  /// that leaves the part.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t rank_among(std::uint32_t place,
                                                             std::uint32_t part) const {
    // `sizes` may already contain the size after the exchanges, but `offsets` still has the end of
    // the current list.
    std::uint32_t const first = offsets[part];
    std::uint32_t const last = part + 1 == parts ? samples : offsets[part + 1];
    std::uint32_t const rank =
        first_false(first, last, [&](std::uint32_t k) { return places[k] < place; }) - first;
    return rank - (leaving[part] < rank ? 1u : 0u);
  }
};

/// The memory that the search requires in addition to the lists.
struct refine_memory {
  part_ranking ranking;
  /// The exchange that the search has found for each pair of parts, by the rank of the lighter
  /// part.
  pair_exchange* swaps;

  template <array_arena Arena>
  OMNIBAL_HOST_DEVICE void take(Arena& arena, std::size_t parts) {
    swaps = arena.template take<pair_exchange>(parts);
    ranking = part_ranking::take(arena, parts, swaps);
  }
};

/// The search: rounds in which many pairs of parts exchange samples at the same time.
struct round_refiner {
  std::uint64_t rounds;
  part_counts part_rule;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, sorted_part_lists& lists,
                                      refine_memory const& memory, std::uint64_t target) const {
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
  /// Records exchanges of the most loaded parts with the least loaded parts, in pairs. If the
  /// exchange of the most loaded part does not help it, records only its best exchange with any
  /// other part. Returns false if no exchange helps this part. One loop serves both cases, because
  /// the search is long.
  template <thread_block Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool note_exchanges(Block& block,
                                                        sorted_part_lists const& lists,
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
        pair_exchange const found =
            lists.best_exchange(warp, heavy(rank), ranking.parts[rank], part_rule);
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
      // A barrier is needed, because the next search may write before the last thread has read.
      block.for_each(0, [](std::size_t) {});
    }
  }

  /// Returns the first rank of the best exchange among `swaps`, or `count` if no exchange helps.
  template <thread_block Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static std::uint32_t best_rank(Block& block,
                                                                   pair_exchange const* swaps,
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

/// The tuning constant of the speed of `gpu::refine_parts`; it does not change the result.
struct refine_tuning {
  static constexpr int threads = 512;
};

/// The start of the search from groups of the caller, which are the parts of the steps.
struct given_parts {
  grouping_view groups;
  std::uint32_t parts;

  /// If the parts of a step are not groups of its samples, raises a fault and returns false. Does
  /// not read the beginning of the next step, because its block may already write there.
  template <thread_block Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool match(Block& block, step_table const& table,
                                               std::size_t step, step_range const& range) const {
    bool const is_last = step + 1 == table.steps();
    std::size_t const first = step * parts;
    std::uint32_t const end = range.first + range.size;
    std::uint32_t const wrong = block.reduce(
        parts - 1,
        [&](std::size_t part) {
          bool const descends = groups.offset(first + part) > groups.offset(first + part + 1);
          return descends ? std::uint32_t{1} : std::uint32_t{0};
        },
        add{}, std::uint32_t{0});
    if (wrong == 0 && groups.offset(first) == range.first &&
        groups.offset(first + parts - 1) <= end &&
        (!is_last || groups.offset(first + parts) == end)) {
      return true;
    }
    raise(table.faults(), fault::unknown_index);
    return false;
  }

  /// Returns the part that has the item at a position. Precondition: the parts of the step match.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t part_at(std::size_t step,
                                                          std::uint32_t position) const {
    return first_false(std::uint32_t{0}, parts - 1, [&](std::uint32_t part) {
      return groups.offset(step * parts + part + 1) <= position;
    });
  }

  /// Sorts the samples of a step and writes them to the items of the result. Then finds the part of
  /// each place and the places of each part.
  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void read(Block& block, step_table const& table, part_writer const& out,
                                std::size_t step, sorted_part_lists& lists) const {
    step_range range = table[step];
    if (!match(block, table, step, range)) range.size = 0;
    lists.samples = range.size;
    // For each sample: the number of its part plus one, or zero if no part contains the sample.
    std::uint32_t* const number_of_sample = lists.next_places;
    block.for_each_load(range.size, [&](std::size_t i) {
      number_of_sample[i] = 0;
      lists.places[i] = groups.item(range.first + i);
    });
    block.for_each(range.size, [&](std::size_t i) {
      auto const position = range.first + static_cast<std::uint32_t>(i);
      std::uint32_t const sample = lists.places[i] - range.first;
      if (sample < range.size) number_of_sample[sample] = part_at(step, position) + 1;
    });
    // Until the lists are computed, their memory contains the sample at each place.
    ordered_samples const order{lists.costs, lists.places};
    static_cast<void>(sort_costs_in_block(block, table, range, order));
    block.for_each(range.size, [&](std::size_t place) {
      std::uint32_t const sample = order.samples[place];
      std::uint32_t const number = number_of_sample[sample];
      if (number == 0) raise(table.faults(), fault::unknown_index);
      lists.part_of[place] = number == 0 ? 0 : number - 1;
      out.items[range.first + place] = range.first + sample;
    });
    block.for_each(range.size,
                   [&](std::size_t place) { lists.next_places[place] = lists.part_of[place]; });
    block.sort_numbered(lists.next_places, lists.places, range.size);
  }

  /// Reads the parts of all steps, whose samples are sorted. `keys` is memory for a key of each
  /// sample.
  template <kernel_backend Backend>
  void read_all(Backend& backend, cost_steps const& steps, step_table const& table,
                ordered_samples const& order, sorted_part_lists const& lists,
                std::uint32_t* keys) const;
};

/// Writes for each sample the number of its part in its step plus one.
struct read_given_parts {
  step_table table;
  given_parts given;
  std::uint32_t* number_of_sample;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const step = table.step_of(i);
    if (step == table.steps()) return;
    step_range const range = table[step];
    auto const position = static_cast<std::uint32_t>(i);
    if (position - range.first >= range.size || !is_inside(step, position)) return;
    std::uint32_t const sample = given.groups.item(position);
    if (sample - range.first >= range.size) return;
    number_of_sample[sample] = given.part_at(step, position) + 1;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_inside(std::size_t step, std::uint32_t position) const {
    return given.groups.offset(step * given.parts) <= position &&
           position < given.groups.offset((step + 1) * given.parts);
  }
};

/// Writes the part of each place, and a key for each place. The places sorted by these keys are the
/// lists of all parts.
struct read_places {
  step_table table;
  given_parts given;
  std::uint32_t const* samples;
  std::uint32_t const* number_of_sample;
  std::uint32_t* part_of;
  std::uint32_t* places;
  std::uint32_t* keys;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const sample = samples[i];
    std::uint32_t const step = table.step_of(sample);
    std::uint32_t const first = step == table.steps() ? 0 : table[step].first;
    std::uint32_t const number = number_of_sample[sample];
    if (number == 0 && step != table.steps()) raise(table.faults(), fault::unknown_index);
    std::uint32_t const part = number == 0 ? 0 : number - 1;
    part_of[i] = part;
    places[i] = static_cast<std::uint32_t>(i) - first;
    keys[i] = step * given.parts + (step == table.steps() ? 0 : part);
  }
};

template <kernel_backend Backend>
void given_parts::read_all(Backend& backend, cost_steps const& steps, step_table const& table,
                           ordered_samples const& order, sorted_part_lists const& lists,
                           std::uint32_t* keys) const {
  std::size_t const count = steps.costs.size();
  backend.fill_zero(lists.next_places, count);
  backend.for_each(count, read_given_parts{table, *this, lists.next_places});
  backend.for_each(count, read_places{table, *this, order.samples, lists.next_places, lists.part_of,
                                      lists.places, keys});
  backend.sort_pairs(keys, lists.places, count, 0,
                     omnibal::detail::bit_width(steps.step_count * parts));
}

/// Finds the part of each place, and the places of each part, for dealt samples.
struct deal_places {
  step_table table;
  std::uint32_t parts;
  std::uint32_t const* samples;
  sorted_part_lists lists;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const step = table.step_of(samples[i]);
    step_range const range = step == table.steps() ? step_range{0, 0} : table[step];
    auto const place = static_cast<std::uint32_t>(i) - range.first;
    lists.part_of[i] = 0;
    if (place >= range.size) return;
    dealing const turns(range.size, parts);
    lists.part_of[i] = turns.part(place);
    lists.places[range.first + turns.position(place)] = place;
  }
};

/// The start of the search from the parts that `gpu::deal` computes. Arithmetic replaces the arrays
/// that `given_parts` reads.
struct dealt_parts {
  std::uint32_t parts;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void read(Block& block, step_table const& table, part_writer const& out,
                                std::size_t step, sorted_part_lists& lists) const {
    step_range const range = table[step];
    lists.samples = range.size;
    ordered_samples const order{lists.costs, lists.next_places};
    static_cast<void>(sort_costs_in_block(block, table, range, order));
    dealing const turns(range.size, parts);
    block.for_each(range.size, [&](std::size_t i) {
      auto const place = static_cast<std::uint32_t>(i);
      out.items[range.first + place] = range.first + order.samples[place];
      lists.part_of[place] = turns.part(place);
      lists.places[turns.position(place)] = place;
    });
  }

  template <kernel_backend Backend>
  void read_all(Backend& backend, cost_steps const& steps, step_table const& table,
                ordered_samples const& order, sorted_part_lists const& lists,
                std::uint32_t* /*keys*/) const {
    backend.for_each(steps.costs.size(), deal_places{table, parts, order.samples, lists});
  }
};

/// Returns the largest load at which the search may end: a lower bound times `1 + max_overload`, at
/// most the largest integer.
template <thread_block Block>
[[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t target_load(Block& block,
                                                            sorted_part_lists const& lists,
                                                            double max_overload) {
  std::uint64_t const sum = block.reduce(
      lists.samples, [&](std::size_t place) { return lists.costs[place]; }, add_saturating{},
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

/// Refines the parts of one step in shared memory. Until the result is written, its items contain
/// the sample at each place.
template <class Start>
struct refine_in_block {
  static constexpr int min_blocks = 1;
  static constexpr bool is_compact = true;

  step_table table;
  Start start;
  part_writer out;
  round_refiner search;
  double max_overload;

  template <array_arena Arena>
  OMNIBAL_HOST_DEVICE static void take(Arena&& arena, std::size_t samples, std::size_t parts,
                                       sorted_part_lists& lists, refine_memory& memory) {
    lists.take_samples(arena, static_cast<std::uint32_t>(samples));
    lists.take_parts(arena, static_cast<std::uint32_t>(parts));
    memory.take(arena, parts);
  }

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    sorted_part_lists lists{};
    refine_memory memory{};
    take(block, table.largest(), out.parts, lists, memory);
    start.read(block, table, out, step, lists);
    step_range const range{table[step].first, lists.samples};
    lists.sum_up(block);
    search(block, lists, memory, target_load(block, lists, max_overload));
    write(block, step, range, lists);
  }

 private:
  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void write(Block& block, std::size_t step, step_range const& range,
                                 sorted_part_lists const& lists) const {
    write_part_offsets(block, out, step, range, lists.sizes);
    block.for_each_load(range.size, [&](std::size_t place) {
      lists.next_places[out.items[range.first + place] - range.first] = lists.part_of[place];
    });
    write_parts_in_block(block, out, range, lists.next_places, lists.places);
  }
};

/// Refines the parts of one step whose lists are in device memory. The arrays by part are in shared
/// or in device memory.
template <class Arrays>
struct refine_of_sorted {
  static constexpr int min_blocks = 1;

  step_table table;
  part_writer out;
  round_refiner search;
  double max_overload;
  /// The lists of all steps.
  sorted_part_lists all;
  Arrays arrays;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    sorted_part_lists lists = all;
    refine_memory memory{};
    auto&& arena = arrays.of(block, step);
    lists.take_parts(arena, out.parts);
    memory.take(arena, out.parts);
    step_range const range = table[step];
    lists.samples = range.size;
    lists.costs += range.first;
    lists.part_of += range.first;
    lists.places += range.first;
    lists.next_places += range.first;
    lists.sum_up(block);
    if (check_sum_of(block, table, range, [&](std::size_t i) { return lists.costs[i]; })) {
      search(block, lists, memory, target_load(block, lists, max_overload));
    }
    write_part_offsets(block, out, step, range, lists.sizes);
  }
};

/// Runs `gpu::refine_parts` on any backend, from given or dealt parts.
template <kernel_backend Backend, class Start>
void refine_parts(Backend& backend, cost_steps const& steps, Start const& start,
                  double max_overload, round_refiner const& search, part_span const& out) {
  std::size_t const parts = start.parts;
  step_table const table = with_whole_costs(backend, steps, out.faults.data());
  part_writer const writer(steps, parts, out);
  if (steps.step_count == 0) return backend.for_each(1, write_no_steps{writer});
  sorted_part_lists lists{};
  refine_memory memory{};
  std::size_t const bytes = arena_bytes([&](arena_meter& arena) {
    refine_in_block<Start>::take(arena, steps.largest_step, parts, lists, memory);
  });
  if (bytes <= max_shared_bytes) {
    backend.template for_each_block<refine_tuning::threads>(
        steps.step_count, bytes,
        refine_in_block<Start>{table, start, writer, search, max_overload});
    return;
  }
  std::size_t const count = steps.costs.size();
  ordered_samples const order = sort_all_costs(backend, steps, table);
  lists.costs = order.costs;
  lists.part_of = backend.template scratch<std::uint32_t>(count);
  lists.places = backend.template scratch<std::uint32_t>(count);
  lists.next_places = backend.template scratch<std::uint32_t>(count);
  auto* const keys = backend.template scratch<std::uint32_t>(count);
  start.read_all(backend, steps, table, order, lists, keys);
  std::size_t const of_parts = arena_bytes([&](arena_meter& arena) {
    lists.take_parts(arena, static_cast<std::uint32_t>(parts));
    memory.take(arena, parts);
  });
  for_each_block_with_arrays<refine_tuning::threads>(
      backend, steps.step_count, of_parts, [&]<class Arrays>(Arrays arrays) {
        return refine_of_sorted<Arrays>{table, writer, search, max_overload, lists, arrays};
      });
  write_parts_of_places(backend, steps, table, writer, order.samples, lists.part_of, keys);
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
