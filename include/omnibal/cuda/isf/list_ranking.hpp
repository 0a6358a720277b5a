#pragma once

/// \file
/// What the walk of a chain visits: with the place where it enters a chunk, a block marks the visited
/// positions there by walking rows, segments and positions, 16 steps each.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Numbers that decide how fast `gpu::isf` is, not what it finds: no device has measured them.
struct isf_tuning {
  /// Samples that a block measures, and samples whose demands it adds at once.
  static constexpr std::uint32_t share = 4096;
  static constexpr std::uint32_t tile = 1024;
  static constexpr int share_threads = 512;
  static constexpr int tile_threads = 256;
  static constexpr int chunk_threads = 512;
  /// Where one block looks at what all have found.
  static constexpr int single_block_threads = 1024;
  /// Four positions each, fetched from the beginning of a chunk; chunks fetched at once.
  static constexpr std::uint32_t window_quads = 64;
  static constexpr std::uint32_t batch = 32;
};

inline constexpr std::uint32_t chain_segment = 16;
inline constexpr std::uint32_t chain_row = 16 * chain_segment;
inline constexpr std::uint32_t chain_chunk = 16 * chain_row;
inline constexpr std::uint32_t chain_segments = chain_chunk / chain_segment;

/// Where nothing enters, and what nothing covers.
inline constexpr std::uint32_t no_position = 0xffffffffu;
inline constexpr std::uint16_t no_place = 0xffffu;

/// The place of an element in an array in which threads that each walk through 16 elements of their
/// own do not meet in a bank of the shared memory; `Width` elements fill a bank.
template <std::uint32_t Width>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t banked(std::uint32_t i) {
  return i + i / chain_segment * Width;
}

/// Positions that are loaded at once.
struct alignas(16) position_quad {
  std::uint32_t at[4];
};

/// What is known of the links of a chain. Block `index` of a launch has chunk `index`. Positions in
/// a chunk are relative to its beginning; `chain_chunk` is one behind it.
struct list_links {
  std::size_t chunk_count;
  std::uint16_t* next;           ///< where the link of a position leads
  std::uint16_t* after_segment;  ///< where a walk from it leaves its segment
  std::uint16_t* after_row;      ///< where a walk from it leaves its row
  position_quad* after_chunk;    ///< where a walk from it leaves its chunk, in the chain
  std::uint32_t* entries;        ///< where the walk from position 0 enters a chunk, in the chain

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t leaves(std::size_t index, std::uint32_t i) const {
    return after_chunk[(index * chain_chunk + i) / 4].at[i % 4];
  }
};

/// Links of a chain of at most `bound` positions.
template <class Backend>
[[nodiscard]] list_links make_links(Backend& backend, std::size_t bound) {
  std::size_t const chunk_count = parts_of(bound, chain_chunk);
  std::size_t const positions = chunk_count * chain_chunk;
  return {chunk_count,
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<position_quad>(positions / 4),
          backend.template scratch<std::uint32_t>(chunk_count)};
}

/// A chunk of a chain of `size` positions.
struct chain_part {
  std::uint32_t begin;
  std::uint32_t count;  ///< zero behind the end of the chain

  OMNIBAL_HOST_DEVICE chain_part(std::uint32_t size, std::size_t index)
      : begin(static_cast<std::uint32_t>(index * chain_chunk)),
        count(begin < size ? smaller_of(chain_chunk, size - begin) : 0) {}
};

/// Finds for every position of a chunk where walks from it lead.
template <class Chain>
struct resolve_chunk {
  Chain chain;
  list_links links;

  static constexpr std::size_t shared_bytes = banked<1>(chain_chunk) * sizeof(std::uint32_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(chain.size(), index);
    if (part.count == 0) return;
    auto* const reached = block.template shared<std::uint32_t>(banked<1>(chain_chunk));
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

/// Walks from chunk to chunk, in one block. Where a walk enters a chunk near its
/// beginning, as it does unless links are long, what it reads has been fetched to shared memory.
template <class Chain>
struct walk_chunks {
  Chain chain;
  list_links links;

  static constexpr std::uint32_t window_quads = isf_tuning::window_quads;
  static constexpr std::uint32_t batch = isf_tuning::batch;
  static constexpr int threads = isf_tuning::single_block_threads;
  static constexpr std::size_t shared_bytes = 2 * batch * window_quads * sizeof(position_quad) + 16;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint32_t const size = chain.size();
    if (size == 0) return;
    auto* const fetched = block.template shared<position_quad>(2 * batch * window_quads);
    auto* const position = block.template shared<std::uint32_t>(1);
    auto const batches = static_cast<std::uint32_t>(parts_of(parts_of(size, chain_chunk), batch));

    block.for_each(batch * window_quads, [&](std::size_t quad) {
      fetch(fetched, size, 0, static_cast<std::uint32_t>(quad));
      if (quad == 0) *position = 0;
    });
    for (std::uint32_t b = 0; b != batches; ++b) {
      // The threads of other warps fetch while thread 0 walks.
      block.for_each(threads, [&](std::size_t thread) {
        if (thread == 0) walk(fetched, *position, size, b);
        if (thread < 32) return;
        for (auto quad = static_cast<std::uint32_t>(thread) - 32; quad < batch * window_quads;
             quad += threads - 32) {
          fetch(fetched, size, b + 1, quad);
        }
      });
    }
  }

 private:
  OMNIBAL_HOST_DEVICE void fetch(position_quad* fetched, std::uint32_t size, std::uint32_t b,
                                 std::uint32_t quad) const {
    std::size_t const chunk = std::size_t{b} * batch + quad / window_quads;
    std::size_t const in_chunk = quad % window_quads;
    if (chunk * chain_chunk + in_chunk * 4 >= size) return;
    fetched[b % 2 * batch * window_quads + quad] =
        links.after_chunk[chunk * (chain_chunk / 4) + in_chunk];
  }

  OMNIBAL_HOST_DEVICE void walk(position_quad const* fetched, std::uint32_t& position,
                                std::uint32_t size, std::uint32_t b) const {
    position_quad const* const windows = fetched + b % 2 * batch * window_quads;
    std::uint32_t const behind = static_cast<std::uint32_t>(
        smaller_of<std::uint64_t>(size, (b + std::uint64_t{1}) * batch * chain_chunk));
    std::uint32_t p = position;
    while (p < behind) {
      std::uint32_t const chunk = p / chain_chunk;
      std::uint32_t const i = p % chain_chunk;
      links.entries[chunk] = p;
      p = i < 4 * window_quads ? windows[(chunk - b * batch) * window_quads + i / 4].at[i % 4]
                               : links.leaves(chunk, i);
    }
    position = p;
  }
};

/// Walks a chain: `chain.size()` is the number of its positions, known on the device, at most the
/// bound of the links, and `chain.next(i)` in (i, size] the end of link i; then `entries` is right.
/// Two launches.
template <class Backend, class Chain>
void walk_chain(Backend& backend, list_links const& links, Chain const& chain) {
  if (links.chunk_count == 0) return;
  using resolve = resolve_chunk<Chain>;
  backend.template for_each_block<isf_tuning::chunk_threads>(
      links.chunk_count, resolve::shared_bytes, resolve{chain, links});
  using walk = walk_chunks<Chain>;
  backend.template for_each_block<walk::threads>(1, walk::shared_bytes, walk{chain, links});
}

/// What a walk visits in a chunk that it enters. Positions are relative to `part.begin`.
struct visited_chunk {
  std::size_t index;
  chain_part part;
  std::uint32_t entry;
  std::uint32_t leaves;         ///< where the walk goes on, in the chain
  std::uint16_t const* next;    ///< use `next_of`
  std::uint16_t const* heads;   ///< bit j of heads[s]: position 16 s + j is visited
  std::uint16_t const* covers;  ///< the last position visited before segment s, or `no_place`

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_visited(std::uint32_t i) const {
    return (heads[i / chain_segment] >> i % chain_segment & 1) != 0;
  }
  /// The position visited after i, `chain_chunk` where that is outside.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t next_of(std::uint32_t i) const {
    return next[banked<2>(i)];
  }
};

/// Marks what the walk visits in each chunk that it enters, and calls `visitor(block, chunk)`.
template <class Chain, class Visitor>
struct visit_chunk {
  Chain chain;
  list_links links;
  Visitor visitor;

  static constexpr std::size_t shared_bytes =
      (banked<2>(chain_chunk) + 2 * chain_chunk + 3 * chain_segments + 16) * sizeof(std::uint16_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(chain.size(), index);
    if (part.count == 0 || links.entries[index] == no_position) return;
    std::uint32_t const entry = links.entries[index] - part.begin;

    auto* const next = block.template shared<std::uint16_t>(banked<2>(chain_chunk));
    auto* const after_segment = block.template shared<std::uint16_t>(chain_chunk);
    auto* const after_row = block.template shared<std::uint16_t>(chain_chunk);
    auto* const heads = block.template shared<std::uint16_t>(chain_segments);
    auto* const covers = block.template shared<std::uint16_t>(chain_segments);
    auto* const segment_entries = block.template shared<std::uint16_t>(chain_segments);
    auto* const row_entries = block.template shared<std::uint16_t>(16);

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
    visitor(block,
            visited_chunk{index, part, entry, links.leaves(index, entry), next, heads, covers});
  }
};

/// Calls `visitor(block, visited_chunk)` for each chunk of the chain that the walk enters, with
/// `Visitor::shared_bytes` of further shared memory. One launch.
template <class Backend, class Chain, class Visitor>
void visit_chain(Backend& backend, list_links const& links, Chain const& chain,
                 Visitor const& visitor) {
  if (links.chunk_count == 0) return;
  using visit = visit_chunk<Chain, Visitor>;
  backend.template for_each_block<isf_tuning::chunk_threads>(
      links.chunk_count, visit::shared_bytes + Visitor::shared_bytes, visit{chain, links, visitor});
}

}  // namespace omnibal::inline v0::gpu::detail
