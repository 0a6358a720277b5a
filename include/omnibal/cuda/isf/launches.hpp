#pragma once

/// \file
/// `isf` on the device as a sequence of launches.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/atomics.hpp>
#include <omnibal/cuda/detail/scratch_meter.hpp>
#include <omnibal/cuda/isf/list_ranking.hpp>
#include <omnibal/cuda/isf/pool.hpp>
#include <omnibal/cuda/isf/round.hpp>
#include <omnibal/pack/isf_options.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Writes what is known after the last round, and the offsets of groups that do not exist.
struct isf_finish {
  isf_state const* state;
  isf_output out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    if (i >= state->group_count) out.offsets[i] = state->item_count;
    if (i != 0) return;
    if (state->group_count >= out.offset_room) raise(out.faults, fault::no_room);
    if (out.group_count != nullptr) *out.group_count = state->group_count;
    if (out.report == nullptr) return;
    packing_report report;
    report.lower_bound = state->lower_bound;
    report.rounds = state->rounds;
    report.item_rounds = state->item_rounds;
    report.below_keep = state->below_keep;
    *out.report = report;
  }
};

/// Seven launches for each round that may run, and four besides. The rounds that are not needed
/// find an empty pool.
template <class Backend, class Amount, std::size_t R, class Keep>
void run_isf(Backend& backend, isf_input<Amount, R> const& input, isf_options const& options,
             Keep const& keep, rng::feistel const& shuffle, isf_output const& out) {
  isf_arrays const arrays = make_isf_arrays<R>(backend, input.size);
  make_isf_pool(backend, input, arrays, out, shuffle, options.rounds == 1);

  std::size_t const tiles = parts_of(input.size, isf_tile);
  std::size_t const rounds = input.size == 0 ? 0 : options.rounds;
  for (std::size_t round = 0; round != rounds; ++round) {
    isf_state* const now = arrays.states + round % 2;
    isf_state* const then = arrays.states + (round + 1) % 2;

    using gather = isf_gather<Amount, R>;
    backend.template for_each_block<gather::threads>(
        tiles, gather::shared_bytes, gather{input, now, arrays.pool, arrays.shuffled, arrays.sums});
    using add_tiles = isf_add_tiles<R>;
    backend.template for_each_block<add_tiles::threads>(1, 0, add_tiles{now, arrays.sums});

    isf_chain<R> const chain{now, arrays.sums, input.capacity};
    walk_chains(backend, arrays.links, chain);
    visit_chains(backend, arrays.links, chain, isf_judge<R, Keep>{chain, arrays, keep});

    backend.template for_each_block<isf_advance::threads>(
        1, 0,
        isf_advance{arrays, now, then, shuffle, round + 1, round + 2 == options.rounds,
                    options.min_gain});
    backend.template for_each_block<chain_threads>(arrays.links.chunk_count, isf_move::shared_bytes,
                                                   isf_move{arrays, now, out});
  }
  backend.for_each(out.offset_room, isf_finish{arrays.states + rounds % 2, out});
}

/// The scratch that the rounds take, whatever options, demands and keep rule are.
template <std::size_t R>
[[nodiscard]] std::size_t isf_scratch_bytes(std::size_t samples) {
  scratch_meter meter;
  run_isf(meter, isf_input<resources<R>, R>{nullptr, samples, {}}, isf_options{.rounds = 1},
          reaches_any<resources<R>>{}, rng::feistel{}, isf_output{});
  return meter.scratch_bytes();
}

}  // namespace omnibal::inline v0::gpu::detail
