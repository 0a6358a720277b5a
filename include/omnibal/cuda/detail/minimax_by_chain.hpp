#pragma once

/// \file
/// Probes of a chain at once for all positions at which a stage could begin.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/atomics.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/chain_visit.hpp>
#include <omnibal/cuda/detail/chain_walk.hpp>
#include <omnibal/cuda/detail/furthest.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/minimax_state.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Stages that are as long as a limit allows, from the first layer on; a chain for each limit.
struct probe_links {
  minimax_chain of;
  std::size_t candidates;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size(std::size_t) const {
    return of.state->is_found() ? 0 : of.state->size;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t next(std::size_t k, std::uint32_t i) const {
    std::uint64_t const most = of.sums[i] + of.state->limit(k, candidates);
    return i + furthest([&](std::uint32_t d) { return of.sums[i + d] <= most; }, of.state->size - i,
                        of.likely);
  }
};

/// Adds the stages of a chunk to what a probe has seen.
struct gather_probed {
  minimax_chain of;
  probed_stages* probed;

  static constexpr std::size_t shared_bytes = 0;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, visited_chunk const& chunk) const {
    probed_stages const seen = block.reduce(
        chunk.part.count,
        [&](std::size_t place) {
          auto const i = static_cast<std::uint32_t>(place);
          if (!chunk.is_visited(i)) return nothing_probed;
          std::uint32_t const next = chunk.next_of(i);
          std::uint32_t const end =
              next < chunk.part.count ? chunk.part.begin + next : chunk.leaves;
          std::uint64_t const start = of.sums[chunk.part.begin + i];
          return probed_stages{of.sums[end] - start,
                               end < of.state->size ? of.sums[end + 1] - start : ~std::uint64_t{0},
                               1};
        },
        merge_probed{}, nothing_probed);
    block.once([&] {
      probed_stages& to = probed[chunk.part.chain];
      atomic_max(&to.realised, seen.realised);
      atomic_min(&to.overflow, seen.overflow);
      atomic_add(&to.count, seen.count);
    });
  }
};

/// Stages that are as long as the bottleneck allows, from the last layer on: position m is the
/// boundary m layers before the end.
struct cut_links {
  minimax_chain of;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size(std::size_t) const { return of.state->size; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t next(std::size_t, std::uint32_t m) const {
    std::uint32_t const end = of.state->size - m;
    return m +
           furthest(
               [&](std::uint32_t d) { return of.sums[end] - of.sums[end - d] <= of.state->high; },
               end, of.likely);
  }
};

/// Counts the boundaries of a chunk.
struct count_cuts {
  std::uint32_t* counts;

  static constexpr std::size_t shared_bytes = 0;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, visited_chunk const& chunk) const {
    std::uint32_t const count = block.reduce(
        parts_of(chunk.part.count, chain_segment),
        [&](std::size_t segment) { return count_bits(chunk.heads[segment]); }, add{},
        std::uint32_t{0});
    block.once([&] { counts[chunk.index] = count; });
  }
};

/// Makes the counts those of the chunks before.
struct add_cuts {
  chain_links links;
  minimax_state const* state;
  std::uint32_t* counts;

  static constexpr int threads = 1024;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::size_t const chunks = parts_of(state->size, chain_chunk);
    block.for_each(chunks, [&](std::size_t c) {
      if (links.entries[c] == no_position) counts[c] = 0;
    });
    block.exclusive_sum(counts, chunks);
  }
};

/// Writes the boundaries of a chunk; in all there are as many as stages, or fewer.
struct write_cuts {
  minimax_state const* state;
  std::uint32_t const* counts;
  std::size_t stages;
  std::size_t fewest;
  std::uint32_t* boundaries;

  static constexpr std::size_t shared_bytes = chain_segments * sizeof(std::uint32_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, visited_chunk const& chunk) const {
    auto* const before = block.template shared<std::uint32_t>(chain_segments);
    std::size_t const segments = parts_of(chunk.part.count, chain_segment);
    block.for_each(segments, [&](std::size_t s) { before[s] = count_bits(chunk.heads[s]); });
    block.exclusive_sum(before, segments);
    block.for_each(chunk.part.count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      if (!chunk.is_visited(i)) return;
      std::uint32_t const lower = (1u << i % chain_segment) - 1;
      std::size_t const stages_after = counts[chunk.index] + before[i / chain_segment] +
                                       count_bits(chunk.heads[i / chain_segment] & lower);
      if (stages_after == 0) return;
      std::size_t const s = stages - stages_after;
      boundaries[s] = static_cast<std::uint32_t>(
          larger_of<std::size_t>(s * fewest, state->size - (chunk.part.begin + i)));
    });
  }
};

/// The probes of one pass. Three launches.
template <class Backend>
void probe_by_chain(Backend& backend, minimax_chain const& of, chain_links const& links,
                    std::size_t candidates, probed_stages* probed) {
  probe_links const chains{of, candidates};
  walk_chains(backend, links, chains, candidates);
  visit_chains(backend, links, chains, gather_probed{of, probed}, candidates);
}

/// The leftmost cuts with the smallest bottleneck. Five launches.
template <class Backend>
void cut_by_chain(Backend& backend, minimax_chain const& of, chain_links const& links,
                  std::uint32_t* counts, std::size_t stages, std::size_t fewest,
                  std::uint32_t* boundaries) {
  cut_links const chain{of};
  walk_chains(backend, links, chain);
  visit_chains(backend, links, chain, count_cuts{counts});
  backend.template for_each_block<add_cuts::threads>(1, 0, add_cuts{links, of.state, counts});
  visit_chains(backend, links, chain, write_cuts{of.state, counts, stages, fewest, boundaries});
}

}  // namespace omnibal::inline v0::gpu::detail
