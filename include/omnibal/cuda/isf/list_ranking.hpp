// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The positions that a walk along the links of a chain visits, found in parallel. List ranking
/// resolves the links from segments up to regions; the walk then proceeds from regions down to
/// segments.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Tuning constants of the speed of `gpu::isf`; they do not change its result.
struct isf_tuning {
  /// The number of samples that a block measures, and the number of samples in a tile, whose
  /// demands a block sums.
  static constexpr std::uint32_t share = 4096;
  static constexpr std::uint32_t tile = 1024;
  static constexpr int share_threads = 512;
  static constexpr int tile_threads = 256;
  static constexpr int chunk_threads = 512;
  /// The number of threads of a launch in which a single block reads the results of all blocks.
  static constexpr int single_block_threads = 1024;
  /// The number of positions at the beginning of a region from which walks to its end are computed,
  /// one by each thread. The walk enters a region at one of these positions unless its links are
  /// long.
  static constexpr std::uint32_t window = chunk_threads;
};

inline constexpr std::uint32_t chain_segment = 16;
inline constexpr std::uint32_t chain_row = 16 * chain_segment;
inline constexpr std::uint32_t chain_chunk = 16 * chain_row;
inline constexpr std::uint32_t chain_segments = chain_chunk / chain_segment;
inline constexpr std::uint32_t chain_region = 16 * chain_chunk;

/// `no_position` marks a chunk or region that no walk enters. `no_place` marks a segment that no
/// visited position covers.
inline constexpr std::uint32_t no_position = 0xffffffffu;
inline constexpr std::uint16_t no_place = 0xffffu;

/// Returns the index of element i in an array in shared memory with padding after every 16
/// elements. The padding avoids bank conflicts among threads that each walk through their own 16
/// elements. `Width` elements fill a bank.
template <std::uint32_t Width>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t banked(std::uint32_t i) {
  return i + i / chain_segment * Width;
}

/// The resolved links of a chain. Block `index` of a launch has chunk `index`. Positions in a chunk
/// are relative to its beginning; `chain_chunk` is the position behind the chunk.
struct list_links {
  std::size_t chunk_count;
  std::uint16_t* next;           ///< the end of the link of a position
  std::uint16_t* after_segment;  ///< the end of a walk from it behind its segment
  std::uint16_t* after_row;      ///< the end of a walk from it behind its row
  std::uint32_t* after_chunk;    ///< the end of a walk from it behind its chunk, in the chain
  std::uint32_t* after_region;  ///< the end of a walk from a window behind its region, in the chain
  std::uint32_t* entries;       ///< the entry into a chunk of the walk from 0, in the chain
  std::uint32_t* region_entries;
  /// The counters of finished blocks for `is_last_of`: first the counter of regions, then a counter
  /// of chunks for each region.
  std::uint32_t* arrived;
};

/// Allocates the links of a chain of at most `bound` positions.
template <kernel_backend Backend>
[[nodiscard]] list_links make_links(Backend& backend, std::size_t bound) {
  std::size_t const chunk_count = parts_of(bound, chain_chunk);
  std::size_t const positions = chunk_count * chain_chunk;
  std::size_t const regions = parts_of(bound, chain_region);
  auto* const arrived = backend.template scratch<std::uint32_t>(regions + 1);
  backend.fill_zero(arrived, regions + 1);
  return {chunk_count,
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint32_t>(positions),
          backend.template scratch<std::uint32_t>(regions * isf_tuning::window),
          backend.template scratch<std::uint32_t>(chunk_count),
          backend.template scratch<std::uint32_t>(regions),
          arrived};
}

/// A chunk or a region of a chain of `size` positions.
struct chain_part {
  std::uint32_t begin;
  std::uint32_t count;  ///< zero behind the end of the chain

  OMNIBAL_HOST_DEVICE chain_part(std::uint32_t size, std::size_t index,
                                 std::uint32_t width = chain_chunk)
      : begin(static_cast<std::uint32_t>(index * width)),
        count(begin < size ? smaller_of(width, size - begin) : 0) {}
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t end() const { return begin + count; }
};

/// Ranks the list in one chunk: finds for every position the ends of walks from it behind its
/// segment, its row and its chunk. The last block of a region finds the ends, behind the region, of
/// walks from the window of the region. The last block of all walks through the chain.
template <class Chain>
struct resolve_chunk {
  static constexpr int min_blocks = 2;

  Chain chain;
  list_links links;

  static constexpr std::size_t shared_bytes = banked<1>(chain_chunk) * sizeof(std::uint32_t);

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(chain.size(), index);
    if (part.count == 0) return;
    auto* const reached = block.template take<std::uint32_t>(banked<1>(chain_chunk));
    block.for_each(part.count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      reached[banked<1>(i)] = chain.next(part.begin + i) - part.begin;
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
    block.for_each(part.count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      links.after_chunk[part.begin + i] = part.begin + reached[banked<1>(i)];
    });

    std::size_t const region = index / (chain_region / chain_chunk);
    chain_part const around(chain.size(), region, chain_region);
    if (!block.is_last_of(parts_of(around.count, chain_chunk), links.arrived + 1 + region)) return;
    block.for_each(smaller_of(isf_tuning::window, around.count), [&](std::size_t i) {
      auto const first = around.begin + static_cast<std::uint32_t>(i);
      links.after_region[region * isf_tuning::window + i] = leave(first, around.end());
    });
    std::size_t const regions = parts_of(chain.size(), chain_region);
    if (block.is_last_of(regions, links.arrived)) walk(block, regions);
  }

 private:
  /// Walks from p chunk by chunk. Returns the first position of the walk at or behind `end`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t leave(std::uint32_t p, std::uint32_t end) const {
    while (p < end) p = links.after_chunk[p];
    return p;
  }

  /// Walks from region to region in one thread, and then in all regions at the same time from chunk
  /// to chunk. Writes the entries into regions and chunks.
  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void walk(Block& block, std::size_t regions) const {
    std::uint32_t const size = chain.size();
    block.for_each(regions, [&](std::size_t r) { links.region_entries[r] = no_position; });
    block.once([&] {
      for (std::uint32_t p = 0; p < size;) {
        std::uint32_t const region = p / chain_region;
        std::uint32_t const i = p % chain_region;
        links.region_entries[region] = p;
        p = i < isf_tuning::window
                ? links.after_region[std::size_t{region} * isf_tuning::window + i]
                : leave(p, chain_part(size, region, chain_region).end());
      }
    });
    block.for_each(regions, [&](std::size_t r) {
      std::uint32_t const end = chain_part(size, r, chain_region).end();
      for (std::uint32_t p = links.region_entries[r]; p < end; p = links.after_chunk[p]) {
        links.entries[p / chain_chunk] = p;
      }
    });
  }

  /// Extends the walk from i by the walk from its end, unless this end is at `last` or behind it.
  OMNIBAL_HOST_DEVICE static void follow(std::uint32_t* reached, std::uint32_t i,
                                         std::uint32_t last) {
    std::uint32_t const stop = reached[banked<1>(i)];
    if (stop < last) reached[banked<1>(i)] = reached[banked<1>(stop)];
  }

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE static void store(Block& block, std::uint32_t const* reached,
                                        std::uint32_t count, std::uint16_t* to) {
    block.for_each(count, [&](std::size_t i) {
      to[i] = static_cast<std::uint16_t>(
          smaller_of(reached[banked<1>(static_cast<std::uint32_t>(i))], chain_chunk));
    });
  }
};

/// Walks from position 0 through a chain, in one launch that writes `links.entries`. The number of
/// positions is `chain.size()`, known on the device and at most the bound of the links. Link i ends
/// at `chain.next(i)`, in (i, size].
template <kernel_backend Backend, class Chain>
void walk_chain(Backend& backend, list_links const& links, Chain const& chain) {
  using resolve = resolve_chunk<Chain>;
  backend.template for_each_block<isf_tuning::chunk_threads>(
      links.chunk_count, resolve::shared_bytes, resolve{chain, links});
}

/// The positions of a chunk that a walk visits after entering it. Positions are relative to
/// `part.begin`.
struct visited_chunk {
  std::size_t index;
  chain_part part;
  std::uint32_t entry;
  std::uint32_t leaves;         ///< the position in the chain at which the walk continues
  std::uint16_t const* next;    ///< use `next_of`
  std::uint16_t const* heads;   ///< bit j of heads[s]: position 16 s + j is visited
  std::uint16_t const* covers;  ///< the last position visited before segment s, or `no_place`

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_visited(std::uint32_t i) const {
    return (heads[i / chain_segment] >> i % chain_segment & 1) != 0;
  }
  /// Returns the position visited after i, or `chain_chunk` if that position is outside of the
  /// chunk.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t next_of(std::uint32_t i) const {
    return next[banked<2>(i)];
  }
};

/// Marks the visited positions in each chunk that the walk enters, and calls `visitor(block,
/// chunk)`. The last block calls `visitor.finish(block)`, also if the chain has no positions.
template <class Chain, class Visitor>
struct visit_chunk {
  Chain chain;
  list_links links;
  Visitor visitor;

  static constexpr std::size_t shared_bytes =
      (banked<2>(chain_chunk) + 2 * chain_chunk + 3 * chain_segments + 16) * sizeof(std::uint16_t);

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(chain.size(), index);
    if (part.count != 0 && links.entries[index] != no_position) visit(block, index, part);
    std::size_t const chunks = parts_of(chain.size(), chain_chunk);
    if (chunks == 0 ? index == 0 : index < chunks && block.is_last_of(chunks, links.arrived)) {
      visitor.finish(block);
    }
  }

 private:
  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void visit(Block& block, std::size_t index, chain_part const& part) const {
    std::uint32_t const entry = links.entries[index] - part.begin;
    auto* const next = block.template take<std::uint16_t>(banked<2>(chain_chunk));
    auto* const after_segment = block.template take<std::uint16_t>(chain_chunk);
    auto* const after_row = block.template take<std::uint16_t>(chain_chunk);
    auto* const heads = block.template take<std::uint16_t>(chain_segments);
    auto* const covers = block.template take<std::uint16_t>(chain_segments);
    auto* const segment_entries = block.template take<std::uint16_t>(chain_segments);
    auto* const row_entries = block.template take<std::uint16_t>(16);

    std::size_t const first = index * chain_chunk;
    block.for_each(part.count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      next[banked<2>(i)] = links.next[first + i];
      after_segment[i] = links.after_segment[first + i];
      after_row[i] = links.after_row[first + i];
    });
    block.for_each(chain_segments, [&](std::size_t s) {
      heads[s] = 0;
      covers[s] = no_place;
      segment_entries[s] = no_place;
      if (s < 16) row_entries[s] = no_place;
    });

    block.once([&] {
      for (std::uint32_t i = entry; i < part.count; i = after_row[i]) {
        row_entries[i / chain_row] = static_cast<std::uint16_t>(i);
      }
    });
    block.for_each(16, [&](std::size_t row) {
      auto const last = smaller_of((static_cast<std::uint32_t>(row) + 1) * chain_row, part.count);
      for (std::uint32_t i = row_entries[row]; i < last; i = after_segment[i]) {
        segment_entries[i / chain_segment] = static_cast<std::uint16_t>(i);
      }
    });
    block.for_each(parts_of(part.count, chain_segment), [&](std::size_t place) {
      auto const segment = static_cast<std::uint32_t>(place);
      if (segment_entries[segment] == no_place) return;
      std::uint32_t const last = smaller_of((segment + 1) * chain_segment, part.count);
      std::uint32_t visited = 0;
      std::uint32_t head = 0;
      for (std::uint32_t i = segment_entries[segment]; i < last; i = next[banked<2>(i)]) {
        visited |= 1u << i % chain_segment;
        head = i;
      }
      heads[segment] = static_cast<std::uint16_t>(visited);
      std::uint32_t const stop = smaller_of<std::uint32_t>(next[banked<2>(head)], chain_chunk - 1);
      for (std::uint32_t s = segment + 1; s <= stop / chain_segment; ++s) {
        covers[s] = static_cast<std::uint16_t>(head);
      }
    });
    visitor(block, visited_chunk{index, part, entry, links.after_chunk[part.begin + entry], next,
                                 heads, covers});
  }
};

/// Calls `visitor(block, visited_chunk)` for each chunk of the chain that the walk enters, with
/// `Visitor::shared_bytes` of further shared memory. One launch.
template <kernel_backend Backend, class Chain, class Visitor>
void visit_chain(Backend& backend, list_links const& links, Chain const& chain,
                 Visitor const& visitor) {
  using visit = visit_chunk<Chain, Visitor>;
  backend.template for_each_block<isf_tuning::chunk_threads>(
      links.chunk_count, visit::shared_bytes + Visitor::shared_bytes, visit{chain, links, visitor});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
