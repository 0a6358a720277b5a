#pragma once

/// \file
/// The positions that a chain of links visits: list ranking by chunks.
///
/// A chain leads from position 0 over `next(i) > i` to its end, which no single thread may walk: a
/// step costs the latency of the memory. So a chunk of 4096 positions is one block's work. It
/// resolves for *every* position where a walk that enters the chunk there leaves it, in shared
/// memory and in three levels of 16: within segments of 16 positions, within rows of 16 segments,
/// within the chunk, each from the back to the front, so that the work stays linear. Then one
/// thread walks from chunk to chunk, while the other threads of its block fetch what it reads next.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Finds for every position of a chunk where walks from it lead.
template <class Chain>
struct resolve_chunk {
  Chain chain;
  chain_links links;

  static constexpr std::size_t shared_bytes = banked<1>(chain_chunk) * sizeof(std::uint32_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(chain, links.chunk_count, index);
    if (part.count == 0) return;
    auto* const reached = block.template shared<std::uint32_t>(banked<1>(chain_chunk));
    block.for_each(part.count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      reached[banked<1>(i)] = chain.next(part.chain, part.begin + i) - part.begin;
      if (i == 0) links.entries[index] = no_position;
    });
    store(block, reached, part.count, links.next + index * chain_chunk);

    block.for_each(parts_of(part.count, chain_segment), [&](std::size_t segment) {
      auto const first = static_cast<std::uint32_t>(segment) * chain_segment;
      std::uint32_t const last = smaller_of(first + chain_segment, part.count);
      for (std::uint32_t i = last; i-- != first;) follow(reached, i, last);
    });
    store(block, reached, part.count, links.after_segment + index * chain_chunk);

    for (std::uint32_t segment = 16; segment-- != 0;) {
      block.for_each(chain_row, [&](std::size_t lane) {
        auto const row = static_cast<std::uint32_t>(lane) / chain_segment * chain_row;
        auto const i =
            row + segment * chain_segment + static_cast<std::uint32_t>(lane) % chain_segment;
        if (i < part.count) follow(reached, i, smaller_of(row + chain_row, part.count));
      });
    }
    store(block, reached, part.count, links.after_row + index * chain_chunk);

    for (auto row = static_cast<std::uint32_t>(parts_of(part.count, chain_row)); row-- != 0;) {
      block.for_each(chain_row, [&](std::size_t lane) {
        std::uint32_t const i = row * chain_row + static_cast<std::uint32_t>(lane);
        if (i < part.count) follow(reached, i, part.count);
      });
    }
    // Whole quads, as they are loaded.
    block.for_each(parts_of(part.count, 4) * 4, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      links.after_chunk[(index * chain_chunk + i) / 4].at[i % 4] =
          i < part.count ? part.begin + reached[banked<1>(i)] : 0;
    });
  }

 private:
  /// Goes on from where a walk from i stands, unless that is at `last` or behind it.
  OMNIBAL_HOST_DEVICE static void follow(std::uint32_t* reached, std::uint32_t i,
                                         std::uint32_t last) {
    std::uint32_t const stop = reached[banked<1>(i)];
    if (stop < last) reached[banked<1>(i)] = reached[banked<1>(stop)];
  }

  template <class Block>
  OMNIBAL_HOST_DEVICE static void store(Block& block, std::uint32_t const* reached,
                                        std::uint32_t count, std::uint16_t* to) {
    block.for_each(count, [&](std::size_t i) {
      to[i] = static_cast<std::uint16_t>(
          smaller_of(reached[banked<1>(static_cast<std::uint32_t>(i))], chain_chunk));
    });
  }
};

/// Walks from chunk to chunk, one block for each chain. Where a walk enters a chunk near its
/// beginning, as it does unless links are long, what it reads has been fetched to shared memory.
template <class Chain>
struct walk_chunks {
  Chain chain;
  chain_links links;

  static constexpr std::uint32_t window_quads = 64;  ///< fetched from each chunk
  static constexpr std::uint32_t batch = 32;         ///< chunks fetched at once
  static constexpr std::size_t shared_bytes = 2 * batch * window_quads * sizeof(position_quad) + 16;
  static constexpr int threads = 1024;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::uint32_t const size = chain.size(index);
    if (size == 0) return;
    auto* const fetched = block.template shared<position_quad>(2 * batch * window_quads);
    auto* const position = block.template shared<std::uint32_t>(1);
    std::size_t const first_chunk = index * links.chunk_count;
    auto const batches = static_cast<std::uint32_t>(parts_of(parts_of(size, chain_chunk), batch));

    block.for_each(batch * window_quads, [&](std::size_t quad) {
      fetch(fetched, first_chunk, size, 0, static_cast<std::uint32_t>(quad));
      if (quad == 0) *position = 0;
    });
    for (std::uint32_t b = 0; b != batches; ++b) {
      // The threads of other warps fetch while thread 0 walks.
      block.for_each(threads, [&](std::size_t thread) {
        if (thread == 0) walk(fetched, *position, first_chunk, size, b);
        if (thread < 32) return;
        for (auto quad = static_cast<std::uint32_t>(thread) - 32; quad < batch * window_quads;
             quad += threads - 32) {
          fetch(fetched, first_chunk, size, b + 1, quad);
        }
      });
    }
  }

 private:
  OMNIBAL_HOST_DEVICE void fetch(position_quad* fetched, std::size_t first_chunk,
                                 std::uint32_t size, std::uint32_t b, std::uint32_t quad) const {
    std::size_t const chunk = std::size_t{b} * batch + quad / window_quads;
    std::size_t const in_chunk = quad % window_quads;
    if (chunk * chain_chunk + in_chunk * 4 >= size) return;
    fetched[b % 2 * batch * window_quads + quad] =
        links.after_chunk[(first_chunk + chunk) * (chain_chunk / 4) + in_chunk];
  }

  OMNIBAL_HOST_DEVICE void walk(position_quad const* fetched, std::uint32_t& position,
                                std::size_t first_chunk, std::uint32_t size,
                                std::uint32_t b) const {
    position_quad const* const windows = fetched + b % 2 * batch * window_quads;
    std::uint32_t const behind = static_cast<std::uint32_t>(
        smaller_of<std::uint64_t>(size, (b + std::uint64_t{1}) * batch * chain_chunk));
    std::uint32_t p = position;
    while (p < behind) {
      std::uint32_t const chunk = p / chain_chunk;
      std::uint32_t const i = p % chain_chunk;
      links.entries[first_chunk + chunk] = p;
      p = i < 4 * window_quads ? windows[(chunk - b * batch) * window_quads + i / 4].at[i % 4]
                               : links.leaves(first_chunk + chunk, i);
    }
    position = p;
  }
};

/// Walks the chains: `chain.size(k)` is the number of positions of chain k, known on the device, at
/// most the bound of the links, and `chain.next(k, i)` in (i, size] the end of its link i; then
/// `entries` is right. Two launches.
template <class Backend, class Chain>
void walk_chains(Backend& backend, chain_links const& links, Chain const& chain,
                 std::size_t chains = 1) {
  if (links.chunk_count == 0) return;
  using resolve = resolve_chunk<Chain>;
  backend.template for_each_block<chain_threads>(chains * links.chunk_count, resolve::shared_bytes,
                                                 resolve{chain, links});
  using walk = walk_chunks<Chain>;
  backend.template for_each_block<walk::threads>(chains, walk::shared_bytes, walk{chain, links});
}

}  // namespace omnibal::inline v0::gpu::detail
