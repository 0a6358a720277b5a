// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The first pool of `isf`: measured and checked samples, without the oversized ones.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/isf/list_ranking.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// The demands of the caller: resources or plain weights, of integers.
template <class Amount, std::size_t R>
struct isf_input {
  Amount const* demands;
  std::size_t size;
  resources<R> capacity;

  /// Returns the demand of sample i in a resource. A value above the largest signed integer becomes
  /// negative.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t amount(std::size_t i, std::size_t kind) const {
    return static_cast<std::int64_t>(weight_at(demands[i], kind));
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_valid(std::size_t i) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && amount(i, r) >= 0;
    return result;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool fits(std::size_t i) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && amount(i, r) <= capacity[r];
    return result;
  }
};

/// The state before a round.
struct isf_state {
  std::uint32_t pool_size;
  std::uint32_t item_count;   ///< items in kept groups
  std::uint32_t group_count;  ///< kept groups
  std::uint32_t below_keep;
  std::uint32_t oversized_count;
  std::uint32_t is_last;
  std::uint64_t rounds;
  std::uint64_t item_rounds;
  std::uint64_t lower_bound;
  /// The permutation by which the round shuffles the pool.
  rng::permutation order;
};

/// Prefix sums of the demands in the shuffled pool: for each tile the sum of the tiles before it,
/// and for each sample the sum of the samples before it in its tile. The position behind the last
/// sample also has a sum.
struct isf_sums {
  std::int64_t* in_tile;
  std::size_t in_tile_stride;  ///< from one resource to the next
  std::int64_t* of_tiles;
  std::size_t of_tiles_stride;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t before(std::uint32_t i, std::size_t kind) const {
    return of_tiles[kind * of_tiles_stride + i / isf_tuning::tile] +
           in_tile[kind * in_tile_stride + i];
  }
};

/// The arrays in scratch that the rounds use.
struct isf_arrays {
  /// Two states: a round reads one and writes the other.
  isf_state* states;
  std::uint32_t* pool;
  std::uint32_t* shuffled;
  isf_sums sums;
  list_links links;
  /// A word for each segment of a chain. Its lower half marks the items in kept groups, and its
  /// upper half marks the first items of these groups.
  std::uint32_t* marks;

  // The following arrays have an element for each chunk of a chain.
  std::uint32_t* is_carried;   ///< 1 if the group that extends into the chunk is kept
  std::uint32_t* kept_items;   ///< the number in the chunk, later the number before it
  std::uint32_t* kept_groups;  ///< the number in the chunk, later the number before it
  std::uint32_t* below_keep;
};

template <std::size_t R, class Backend>
[[nodiscard]] isf_arrays make_isf_arrays(Backend& backend, std::size_t samples) {
  std::size_t const sum_stride = samples + 1;
  std::size_t const tile_stride = parts_of(samples, isf_tuning::tile) + 1;
  list_links const links = make_links(backend, samples);
  std::size_t const chunks = links.chunk_count;
  return {.states = backend.template scratch<isf_state>(2),
          .pool = backend.template scratch<std::uint32_t>(samples),
          .shuffled = backend.template scratch<std::uint32_t>(samples),
          .sums = {.in_tile = backend.template scratch<std::int64_t>(R * sum_stride),
                   .in_tile_stride = sum_stride,
                   .of_tiles = backend.template scratch<std::int64_t>(R * tile_stride),
                   .of_tiles_stride = tile_stride},
          .links = links,
          .marks = backend.template scratch<std::uint32_t>(chunks * chain_segments),
          .is_carried = backend.template scratch<std::uint32_t>(chunks),
          .kept_items = backend.template scratch<std::uint32_t>(chunks),
          .kept_groups = backend.template scratch<std::uint32_t>(chunks),
          .below_keep = backend.template scratch<std::uint32_t>(chunks)};
}

/// The measurements of the samples of one block.
template <std::size_t R>
struct isf_measured {
  std::uint32_t valid;
  std::uint32_t large[R];   ///< samples that fit, above half of the capacity
  std::uint64_t volume[R];  ///< sum of the samples that fit
};

template <class Amount, std::size_t R>
struct isf_measure {
  isf_input<Amount, R> input;
  isf_measured<R>* shares;
  std::uint32_t* fitting;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const begin = index * isf_tuning::share;
    std::size_t const count = smaller_of<std::size_t>(isf_tuning::share, input.size - begin);
    std::uint32_t const valid = block.reduce(
        count, [&](std::size_t i) { return std::uint32_t{input.is_valid(begin + i)}; }, add{},
        std::uint32_t{0});
    std::uint32_t const fit = block.reduce(
        count, [&](std::size_t i) { return std::uint32_t{input.fits(begin + i)}; }, add{},
        std::uint32_t{0});
    block.once([&] {
      shares[index].valid = valid;
      fitting[index] = fit;
    });
    for (std::size_t r = 0; r != R; ++r) {
      std::uint32_t const large = block.reduce(
          count,
          [&](std::size_t i) {
            std::int64_t const amount = input.amount(begin + i, r);
            return std::uint32_t{input.fits(begin + i) && amount > input.capacity[r] / 2};
          },
          add{}, std::uint32_t{0});
      std::uint64_t const volume = block.reduce(
          count,
          [&](std::size_t i) {
            return input.fits(begin + i) ? static_cast<std::uint64_t>(input.amount(begin + i, r))
                                         : 0;
          },
          add_saturating{}, std::uint64_t{0});
      block.once([&] {
        shares[index].large[r] = large;
        shares[index].volume[r] = volume;
      });
    }
  }
};

/// Adds up the measurements of the blocks, and writes the state before the first round.
template <class Amount, std::size_t R>
struct isf_begin {
  isf_input<Amount, R> input;
  isf_measured<R> const* shares;
  std::uint32_t* fitting;
  isf_state* state;
  packing_span out;
  rng::feistel shuffle;
  bool is_last;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::size_t const blocks = parts_of(input.size, isf_tuning::share);
    auto const size = static_cast<std::uint32_t>(input.size);
    std::uint32_t const valid = block.reduce(
        blocks, [&](std::size_t b) { return shares[b].valid; }, add{}, std::uint32_t{0});
    std::uint64_t bound = size == 0 ? 0 : 1;
    bool overflows = false;
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t const large = block.reduce(
          blocks, [&](std::size_t b) { return std::uint64_t{shares[b].large[r]}; }, add{},
          std::uint64_t{0});
      std::uint64_t const volume = block.reduce(
          blocks, [&](std::size_t b) { return shares[b].volume[r]; }, add_saturating{},
          std::uint64_t{0});
      auto const capacity = static_cast<std::uint64_t>(input.capacity[r]);
      bound = larger_of(bound, large);
      bound = larger_of(bound, volume / capacity + (volume % capacity != 0 ? 1 : 0));
      overflows = overflows || (volume >> 63) != 0;
    }
    std::uint32_t const fit = block.exclusive_sum(fitting, blocks);
    bool const is_good = valid == size && !overflows;

    block.once([&] {
      std::uint32_t const pool_size = is_good ? fit : 0;
      std::uint32_t const oversized = is_good ? size - fit : 0;
      if (valid != size) raise(out.faults.data(), fault::invalid_amount);
      if (valid == size && overflows) raise(out.faults.data(), fault::overflow);
      if (oversized > out.oversized.size()) raise(out.faults.data(), fault::no_room);
      if (!out.oversized_count.empty()) out.oversized_count[0] = oversized;
      *state = isf_state{.pool_size = pool_size,
                         .item_count = 0,
                         .group_count = 0,
                         .below_keep = 0,
                         .oversized_count = oversized,
                         .is_last = is_last,
                         .rounds = 0,
                         .item_rounds = 0,
                         .lower_bound = pool_size == 0 ? 0 : bound,
                         .order = shuffle.order(pool_size, 0)};
    });
  }
};

/// Lists the samples that fit and the samples that do not fit, each in the order of their indices.
template <class Amount, std::size_t R>
struct isf_split {
  isf_input<Amount, R> input;
  std::uint32_t const* fitting_before;
  isf_state const* state;
  std::uint32_t* pool;
  packing_span out;

  static constexpr std::size_t shared_bytes = isf_tuning::share * sizeof(std::uint32_t);

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    if (state->pool_size + state->oversized_count == 0) return;
    std::size_t const begin = index * isf_tuning::share;
    std::size_t const count = smaller_of<std::size_t>(isf_tuning::share, input.size - begin);
    auto* const before = block.template take<std::uint32_t>(isf_tuning::share);
    block.for_each(count, [&](std::size_t i) { before[i] = input.fits(begin + i); });
    block.exclusive_sum(before, count);
    block.for_each(count, [&](std::size_t i) {
      std::uint32_t const place = fitting_before[index] + before[i];
      auto const sample = static_cast<std::uint32_t>(begin + i);
      if (input.fits(sample)) {
        pool[place] = sample;
      } else if (sample - place < out.oversized.size()) {
        out.oversized[sample - place] = sample;
      }
    });
  }
};

/// Writes the first pool and the state before the first round, in three launches.
template <kernel_backend Backend, class Amount, std::size_t R>
void make_isf_pool(Backend& backend, isf_input<Amount, R> const& input, isf_arrays const& arrays,
                   packing_span const& out, rng::feistel const& shuffle, bool is_last) {
  std::size_t const blocks = parts_of(input.size, isf_tuning::share);
  auto* const shares = backend.template scratch<isf_measured<R>>(blocks);
  auto* const fitting = backend.template scratch<std::uint32_t>(blocks);
  backend.template for_each_block<isf_tuning::share_threads>(
      blocks, 0, isf_measure<Amount, R>{input, shares, fitting});
  using begin = isf_begin<Amount, R>;
  backend.template for_each_block<isf_tuning::single_block_threads>(
      1, 0, begin{input, shares, fitting, arrays.states, out, shuffle, is_last});
  using split = isf_split<Amount, R>;
  backend.template for_each_block<isf_tuning::share_threads>(
      blocks, split::shared_bytes, split{input, fitting, arrays.states, arrays.pool, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
