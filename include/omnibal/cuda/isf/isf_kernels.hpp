// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rounds of `isf` on the device as a sequence of launches.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/isf/list_ranking.hpp>
#include <omnibal/cuda/isf/pool.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Each block writes one tile of the shuffled pool, the prefix sums of its demands and their sum.
/// The last block writes the prefix sums of the sums of all tiles.
template <class Amount, std::size_t R>
struct isf_gather {
  static constexpr int min_blocks = 4;

  isf_input<Amount, R> input;
  isf_state const* state;
  std::uint32_t const* pool;
  std::uint32_t* shuffled;
  isf_sums sums;
  std::uint32_t* arrived;

  static constexpr std::size_t shared_bytes = R * isf_tuning::tile * sizeof(std::int64_t);

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::uint32_t const size = state->pool_size;
    auto const begin = static_cast<std::uint32_t>(index) * isf_tuning::tile;
    if (begin >= size) return;
    std::uint32_t const count = smaller_of(isf_tuning::tile, size - begin);
    bool const is_end = size - begin == count;
    rng::permutation const order = state->order;
    auto* const amounts = block.template take<std::int64_t>(R * isf_tuning::tile);
    block.for_each(count, [&](std::size_t i) {
      std::uint32_t const sample = pool[order(begin + i)];
      shuffled[begin + i] = sample;
      for (std::size_t r = 0; r != R; ++r)
        amounts[r * isf_tuning::tile + i] = input.amount(sample, r);
    });
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t* const of_kind = amounts + r * isf_tuning::tile;
      std::int64_t const sum = block.exclusive_sum(of_kind, count);
      std::int64_t* const in_tile = sums.in_tile + r * sums.in_tile_stride + begin;
      block.for_each(count, [&](std::size_t i) {
        in_tile[i] = of_kind[i];
        if (i != 0) return;
        sums.of_tiles[r * sums.of_tiles_stride + index] = sum;
        // The end of the pool also has a prefix sum, even if it is the beginning of a tile.
        if (is_end) in_tile[count] = count == isf_tuning::tile ? 0 : sum;
      });
    }
    std::size_t const tiles = parts_of(size, isf_tuning::tile);
    if (!block.is_last_of(tiles, arrived)) return;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t* const of_tiles = sums.of_tiles + r * sums.of_tiles_stride;
      std::int64_t const sum = block.exclusive_sum(of_tiles, tiles);
      block.once([&] { of_tiles[tiles] = sum; });
    }
  }
};

/// The groups of next-fit as a chain: the link of a position is the end of the group that would
/// begin there.
template <std::size_t R>
struct isf_chain {
  isf_state const* state;
  isf_sums sums;
  resources<R> capacity;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size() const { return state->pool_size; }

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t next(std::uint32_t i) const {
    std::uint32_t const end = state->pool_size;
    resources<R> const start = before(i);
    // The search doubles its step, and then halves the interval. A single sample always fits.
    std::uint32_t low = i + 1;
    std::uint32_t high = end;
    for (std::uint32_t step = 1; low != end; step *= 2) {
      std::uint32_t const probe = end - low <= step ? end : low + step;
      if (!fits(start, probe)) {
        high = probe;
        break;
      }
      low = probe;
    }
    auto const holds = [&](std::uint32_t probe) { return fits(start, probe); };
    return low == end ? end : first_false(low + 1, high, holds) - 1;
  }

  /// Returns the sum of the demands of the samples [first, last) of the shuffled pool.
  [[nodiscard]] OMNIBAL_HOST_DEVICE resources<R> load(std::uint32_t first,
                                                      std::uint32_t last) const {
    return before(last) - before(first);
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE resources<R> before(std::uint32_t i) const {
    resources<R> result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = sums.before(i, r);
    return result;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool fits(resources<R> const& start, std::uint32_t end) const {
    return (before(end) - start).fits(capacity);
  }
};

/// The items at the beginning of a chunk that belong to a group of an earlier chunk.
struct isf_carried {
  std::uint32_t count;
  bool is_kept;

  OMNIBAL_HOST_DEVICE isf_carried(isf_arrays const& arrays, chain_part const& part,
                                  std::size_t index) {
    std::uint32_t const entry = arrays.links.entries[index];
    count = entry == no_position ? part.count : entry - part.begin;
    is_kept = count != 0 && arrays.is_carried[index] != 0;
  }
};

/// Adds up the kept groups of the chunks, and writes the state before the next round.
struct isf_advance {
  isf_arrays arrays;
  isf_state const* now;
  isf_state* then;
  rng::feistel shuffle;
  std::uint64_t next_round;
  bool is_next_last;
  double min_gain;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block) const {
    std::uint32_t const size = now->pool_size;
    if (size == 0) {
      block.once([&] { *then = *now; });
      return;
    }
    std::size_t const chunks = parts_of(size, chain_chunk);
    block.for_each(chunks, [&](std::size_t c) {
      chain_part const part(size, c);
      isf_carried const carried(arrays, part, c);
      bool const is_entered = arrays.links.entries[c] != no_position;
      arrays.kept_items[c] =
          (is_entered ? arrays.kept_items[c] : 0) + (carried.is_kept ? carried.count : 0);
      if (is_entered) return;
      arrays.kept_groups[c] = 0;
      arrays.below_keep[c] = 0;
    });
    std::uint32_t const below = block.reduce(
        chunks, [&](std::size_t c) { return arrays.below_keep[c]; }, add{}, std::uint32_t{0});
    std::uint32_t const kept = block.exclusive_sum(arrays.kept_items, chunks);
    std::uint32_t const groups = block.exclusive_sum(arrays.kept_groups, chunks);
    block.once([&] {
      bool const gains = static_cast<double>(kept) >= min_gain * static_cast<double>(size);
      isf_state state = *now;
      state.pool_size -= kept;
      state.item_count += kept;
      state.group_count += groups;
      state.below_keep += below;
      state.is_last = is_next_last || !gains;
      state.rounds += 1;
      state.item_rounds += size;
      state.order = shuffle.order(state.pool_size, next_round);
      *then = state;
    });
  }
};

/// Applies the keep rule to the groups that begin in a chunk, and marks their items in the chunk;
/// `finish` writes the state before the next round.
template <std::size_t R, class Keep>
struct isf_judge {
  isf_chain<R> chain;
  isf_arrays arrays;
  Keep keep;
  isf_advance advance;

  static constexpr std::size_t shared_bytes = chain_chunk + 16;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, visited_chunk const& chunk) const {
    std::uint32_t const count = chunk.part.count;
    bool const is_last = chain.state->is_last != 0;
    auto* const verdicts = block.template take<std::uint8_t>(chain_chunk);
    auto* const last_verdict = block.template take<std::uint32_t>(1);
    block.for_each(count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      if (!chunk.is_visited(i)) return;
      std::uint32_t const next = chunk.next_of(i);
      std::uint32_t const end = next < count ? chunk.part.begin + next : chunk.leaves;
      bool const is_full = keep(chain.load(chunk.part.begin + i, end));
      bool const is_kept = is_full || is_last;
      verdicts[i] = static_cast<std::uint8_t>(is_full ? full : is_kept ? kept_below : returned);
      if (next >= count) *last_verdict = is_kept;
    });

    std::size_t const segments = parts_of(count, chain_segment);
    std::uint32_t* const marks = arrays.marks + chunk.index * chain_segments;
    block.for_each(segments, [&](std::size_t segment) {
      std::uint16_t const cover = chunk.covers[segment];
      bool is_kept = cover != no_place && verdicts[cover] != returned;
      std::uint32_t items = 0;
      std::uint32_t heads = 0;
      auto const first = static_cast<std::uint32_t>(segment) * chain_segment;
      std::uint32_t const size = smaller_of(chain_segment, count - first);
      for (std::uint32_t j = 0; j != size; ++j) {
        bool const is_head = chunk.is_visited(first + j);
        if (is_head) is_kept = verdicts[first + j] != returned;
        items |= std::uint32_t{is_kept} << j;
        heads |= std::uint32_t{is_head && is_kept} << j;
      }
      marks[segment] = items | heads << chain_segment;
    });

    std::uint64_t const kept = block.reduce(
        segments,
        [&](std::size_t segment) {
          return std::uint64_t{count_bits(marks[segment] >> chain_segment)} << 32 |
                 count_bits(marks[segment] & 0xffffu);
        },
        add{}, std::uint64_t{0});
    std::uint32_t below = 0;
    if (is_last) {
      below = block.reduce(
          count,
          [&](std::size_t i) {
            return std::uint32_t{chunk.is_visited(static_cast<std::uint32_t>(i)) &&
                                 verdicts[i] == kept_below};
          },
          add{}, std::uint32_t{0});
    }
    block.once([&] {
      arrays.kept_items[chunk.index] = static_cast<std::uint32_t>(kept);
      arrays.kept_groups[chunk.index] = static_cast<std::uint32_t>(kept >> 32);
      arrays.below_keep[chunk.index] = below;
    });
    // The last group that begins in this chunk extends into these chunks.
    block.for_each(parts_of(chunk.leaves, chain_chunk) - chunk.index - 1,
                   [&](std::size_t c) { arrays.is_carried[chunk.index + 1 + c] = *last_verdict; });
  }

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void finish(Block& block) const {
    advance(block);
  }

 private:
  static constexpr std::uint8_t returned = 0;
  static constexpr std::uint8_t kept_below = 1;
  static constexpr std::uint8_t full = 2;
};

/// Appends the kept groups of a chunk to the result and puts the other samples back into the pool.
struct isf_move {
  isf_arrays arrays;
  isf_state const* now;
  packing_span out;

  static constexpr std::size_t shared_bytes = 2 * chain_segments * sizeof(std::uint32_t);

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(now->pool_size, index);
    if (part.count == 0) return;
    auto* const marks = block.template take<std::uint32_t>(chain_segments);
    auto* const before = block.template take<std::uint32_t>(chain_segments);
    isf_carried const carried(arrays, part, index);
    bool const is_entered = arrays.links.entries[index] != no_position;
    std::size_t const segments = parts_of(part.count, chain_segment);
    block.for_each(segments, [&](std::size_t segment) {
      std::uint32_t mark = is_entered ? arrays.marks[index * chain_segments + segment] : 0;
      auto const first = static_cast<std::uint32_t>(segment) * chain_segment;
      if (carried.is_kept && carried.count > first) {
        mark |= (1u << smaller_of(chain_segment, carried.count - first)) - 1;
      }
      marks[segment] = mark;
      before[segment] = count_bits(mark & 0xffffu) | count_bits(mark >> 16) << 16;
    });
    block.exclusive_sum(before, segments);

    std::uint32_t const items_before = arrays.kept_items[index];
    std::uint32_t const first_item = now->item_count + items_before;
    std::uint32_t const first_group = now->group_count + arrays.kept_groups[index];
    block.for_each(part.count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      std::uint32_t const mark = marks[i / chain_segment];
      std::uint32_t const bit = i % chain_segment;
      std::uint32_t const lower = (1u << bit) - 1;
      std::uint32_t const items = (before[i / chain_segment] & 0xffffu) + count_bits(mark & lower);
      std::uint32_t const sample = arrays.shuffled[part.begin + i];
      if ((mark >> bit & 1) == 0) {
        arrays.pool[part.begin + i - items_before - items] = sample;
        return;
      }
      out.groups.items[first_item + items] = sample;
      if ((mark >> 16 >> bit & 1) == 0) return;
      std::uint32_t const group =
          first_group + (before[i / chain_segment] >> 16) + count_bits(mark >> 16 & lower);
      if (group < out.groups.offsets.size()) out.groups.offsets[group] = first_item + items;
    });
  }
};

/// Writes the number of groups and the report after the last round, and the offsets of groups that
/// do not exist.
struct isf_finish {
  isf_state const* state;
  packing_span out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    if (i >= state->group_count) out.groups.offsets[i] = state->item_count;
    if (i != 0) return;
    if (state->group_count >= out.groups.offsets.size()) raise(out.faults.data(), fault::no_room);
    if (!out.groups.group_count.empty()) out.groups.group_count[0] = state->group_count;
    if (out.report.empty()) return;
    packing_report report;
    report.lower_bound = state->lower_bound;
    report.rounds = state->rounds;
    report.item_rounds = state->item_rounds;
    report.below_keep = state->below_keep;
    out.report[0] = report;
  }
};

/// Runs `isf` with four launches for each round that may run, and five more. Rounds that are not
/// needed find an empty pool.
template <kernel_backend Backend, class Amount, std::size_t R, class Keep>
void run_isf(Backend& backend, isf_input<Amount, R> const& input, isf_options const& options,
             Keep const& keep, rng::feistel const& shuffle, packing_span const& out) {
  isf_arrays const arrays = make_isf_arrays<R>(backend, input.size);
  make_isf_pool(backend, input, arrays, out, shuffle, options.rounds == 1);

  std::size_t const tiles = parts_of(input.size, isf_tuning::tile);
  std::size_t const rounds = input.size == 0 ? 0 : options.rounds;
  for (std::size_t round = 0; round != rounds; ++round) {
    isf_state* const now = arrays.states + round % 2;
    isf_state* const then = arrays.states + (round + 1) % 2;

    using gather = isf_gather<Amount, R>;
    backend.template for_each_block<isf_tuning::tile_threads>(
        tiles, gather::shared_bytes,
        gather{input, now, arrays.pool, arrays.shuffled, arrays.sums, arrays.links.arrived});

    isf_chain<R> const chain{now, arrays.sums, input.capacity};
    walk_chain(backend, arrays.links, chain);
    isf_advance const advance{
        arrays, now, then, shuffle, round + 1, round + 2 == options.rounds, options.min_gain};
    visit_chain(backend, arrays.links, chain, isf_judge<R, Keep>{chain, arrays, keep, advance});
    backend.template for_each_block<isf_tuning::chunk_threads>(
        arrays.links.chunk_count, isf_move::shared_bytes, isf_move{arrays, now, out});
  }
  backend.for_each(out.groups.offsets.size(), isf_finish{arrays.states + rounds % 2, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
