#pragma once

/// \file
/// The links of chains of positions, by chunks of 4096, each one block's work.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

inline constexpr std::uint32_t chain_segment = 16;
inline constexpr std::uint32_t chain_row = 16 * chain_segment;
inline constexpr std::uint32_t chain_chunk = 16 * chain_row;
inline constexpr std::uint32_t chain_segments = chain_chunk / chain_segment;
inline constexpr int chain_threads = 512;

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

/// What is known of the links of one or several chains with the same number of chunks. Block `index`
/// of a launch has chunk `index % chunk_count` of chain `index / chunk_count`. Positions in a chunk
/// are relative to its beginning; `chain_chunk` is one behind it.
struct chain_links {
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

/// Links of `chains` chains of at most `bound` positions each.
template <class Backend>
[[nodiscard]] chain_links make_links(Backend& backend, std::size_t bound, std::size_t chains = 1) {
  std::size_t const chunk_count = parts_of(bound, chain_chunk);
  std::size_t const positions = chains * chunk_count * chain_chunk;
  return {chunk_count,
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<std::uint16_t>(positions),
          backend.template scratch<position_quad>(positions / 4),
          backend.template scratch<std::uint32_t>(chains * chunk_count)};
}

/// A chunk of a chain.
struct chain_part {
  std::size_t chain;
  std::uint32_t begin;
  std::uint32_t count;  ///< zero behind the end of the chain

  template <class Chain>
  OMNIBAL_HOST_DEVICE chain_part(Chain const& of, std::size_t chunk_count, std::size_t index)
      : chain(index / chunk_count),
        begin(static_cast<std::uint32_t>(index % chunk_count * chain_chunk)) {
    std::uint32_t const size = of.size(chain);
    count = begin < size ? smaller_of(chain_chunk, size - begin) : 0;
  }
};

}  // namespace omnibal::inline v0::gpu::detail
