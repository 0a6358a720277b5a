#pragma once

/// \file
/// The end of a round of `isf`: what it keeps goes to the result, the rest back into the pool.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/feistel.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/isf_state.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The items at the beginning of a chunk that belong to a group from before.
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

/// Adds what the chunks keep and makes the state before the next round.
struct isf_advance {
  isf_arrays arrays;
  isf_state const* now;
  isf_state* then;
  rng::feistel shuffle;
  std::uint64_t next_round;
  bool is_next_last;
  double min_gain;

  static constexpr int threads = 1024;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint32_t const size = now->pool_size;
    if (size == 0) {
      block.once([&] { *then = *now; });
      return;
    }
    std::size_t const chunks = parts_of(size, chain_chunk);
    block.for_each(chunks, [&](std::size_t c) {
      chain_part const part(whole_pool{size}, arrays.links.chunk_count, c);
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
      state.order = order_of(shuffle, state.pool_size, next_round);
      *then = state;
    });
  }

 private:
  struct whole_pool {
    std::uint32_t pool_size;
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size(std::size_t) const { return pool_size; }
  };
};

/// Appends the kept groups of a chunk to the result and puts the other samples back into the pool.
struct isf_move {
  isf_arrays arrays;
  isf_state const* now;
  isf_output out;

  static constexpr std::size_t shared_bytes = 2 * chain_segments * sizeof(std::uint32_t);

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size(std::size_t) const { return now->pool_size; }

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(*this, arrays.links.chunk_count, index);
    if (part.count == 0) return;
    auto* const marks = block.template shared<std::uint32_t>(chain_segments);
    auto* const before = block.template shared<std::uint32_t>(chain_segments);
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
      out.items[first_item + items] = sample;
      if ((mark >> 16 >> bit & 1) == 0) return;
      std::uint32_t const group =
          first_group + (before[i / chain_segment] >> 16) + count_bits(mark >> 16 & lower);
      if (group < out.offset_room) out.offsets[group] = first_item + items;
    });
  }
};

}  // namespace omnibal::inline v0::gpu::detail
