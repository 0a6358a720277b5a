#pragma once

/// \file
/// `minimax` on the device as a sequence of launches.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/minimax_by_chain.hpp>
#include <omnibal/cuda/detail/minimax_by_stages.hpp>
#include <omnibal/cuda/detail/minimax_state.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace omnibal::inline v0::gpu::detail {

/// How a chain is probed.
enum class minimax_search {
  /// A warp for each limit, which walks from stage to stage: time is that of the stages.
  by_stages,
  /// All positions at once, and a walk by chunks: time is that of the layers.
  by_chain,
};

struct minimax_plan {
  minimax_search search;
  /// Limits that are probed in one pass, a power of two less one.
  std::size_t candidates;

  /// After so many passes a range of `bits` bits has become a single number.
  [[nodiscard]] std::size_t passes(int bits) const {
    int gained = 0;
    while ((candidates + 1) >> (gained + 1) != 0) ++gained;
    return parts_of(static_cast<std::size_t>(bits), static_cast<std::size_t>(gained));
  }
};

/// The plan for a chain. A step from stage to stage takes a few accesses to memory, one after the
/// other, whatever the number of limits; a pass over all positions takes as long as it has
/// positions, so that few limits are probed where there are many.
[[nodiscard]] inline minimax_plan plan_minimax(std::size_t layers, std::size_t stages) {
  if (stages <= 48 + layers / 10000) return {minimax_search::by_stages, 4095};
  std::size_t const candidates = layers <= std::size_t{1} << 18   ? 7
                                 : layers <= std::size_t{1} << 21 ? 3
                                                                  : 1;
  return {minimax_search::by_chain, candidates};
}

struct minimax_output {
  std::uint32_t* boundaries;
  std::int64_t* bottleneck;
  fault* faults;
};

/// Three launches for the sums, two or four for each pass, two or six for the cuts.
template <class Backend, class T>
void run_minimax(Backend& backend, T const* costs, std::size_t layers, std::size_t stages,
                 std::size_t fewest, minimax_output const& out, minimax_plan const& plan) {
  auto* const state = backend.template scratch<minimax_state>(1);
  auto* const sums = backend.template scratch<std::uint64_t>(layers + 1);
  auto* const probed = backend.template scratch<probed_stages>(plan.candidates);
  minimax_chain const chain{sums, state, static_cast<std::uint32_t>(layers / stages)};

  std::size_t const tiles = parts_of(layers, layer_tile);
  auto* const sums_of_tiles = backend.template scratch<std::uint64_t>(tiles);
  auto* const largest_of_tiles = backend.template scratch<std::uint64_t>(tiles);
  layer_costs<T> const given{costs, layers};
  backend.template for_each_block<layer_threads>(
      tiles, 0, measure_layers<T>{given, sums_of_tiles, largest_of_tiles});
  backend.template for_each_block<begin_minimax::threads>(
      1, 0,
      begin_minimax{sums, sums_of_tiles, largest_of_tiles, layers, stages, state, probed,
                    plan.candidates, out.faults});
  backend.template for_each_block<layer_threads>(tiles, write_sums<T>::shared_bytes,
                                                 write_sums<T>{given, sums_of_tiles, sums});

  bool const by_stages = plan.search == minimax_search::by_stages;
  chain_links const links =
      by_stages ? chain_links{} : make_links(backend, layers, plan.candidates);
  // The range is at most the largest cost.
  int const bits = smaller_of(std::numeric_limits<T>::digits, 63);
  for (std::size_t pass = 0; pass != plan.passes(bits); ++pass) {
    if (by_stages) {
      probe_by_stages(backend, chain, plan.candidates, stages, probed);
    } else {
      probe_by_chain(backend, chain, links, plan.candidates, probed);
    }
    backend.template for_each_block<narrow_minimax::threads>(
        1, 0, narrow_minimax{state, probed, plan.candidates, stages});
  }

  backend.for_each(stages + 1,
                   write_no_cuts{state, stages, fewest, out.boundaries, out.bottleneck});
  if (by_stages) {
    cut_by_stages(backend, chain, stages, fewest, out.boundaries);
  } else {
    auto* const counts = backend.template scratch<std::uint32_t>(links.chunk_count);
    cut_by_chain(backend, chain, links, counts, stages, fewest, out.boundaries);
  }
}

}  // namespace omnibal::inline v0::gpu::detail
