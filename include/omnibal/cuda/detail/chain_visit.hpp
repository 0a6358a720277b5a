#pragma once

/// \file
/// What the walk of a chain visits: with the place where it enters a chunk, a block marks the visited
/// positions there by walking rows, segments and positions, 16 steps each.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

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
  chain_links links;
  Visitor visitor;

  static constexpr std::size_t shared_bytes =
      (banked<2>(chain_chunk) + 2 * chain_chunk + 3 * chain_segments + 16) * sizeof(std::uint16_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    chain_part const part(chain, links.chunk_count, index);
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

/// Calls `visitor(block, visited_chunk)` for each chunk of each chain that the walk enters, with
/// `Visitor::shared_bytes` of further shared memory. One launch.
template <class Backend, class Chain, class Visitor>
void visit_chains(Backend& backend, chain_links const& links, Chain const& chain,
                  Visitor const& visitor, std::size_t chains = 1) {
  if (links.chunk_count == 0) return;
  using visit = visit_chunk<Chain, Visitor>;
  backend.template for_each_block<chain_threads>(chains * links.chunk_count,
                                                 visit::shared_bytes + Visitor::shared_bytes,
                                                 visit{chain, links, visitor});
}

}  // namespace omnibal::inline v0::gpu::detail
