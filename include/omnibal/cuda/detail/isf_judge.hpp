#pragma once

/// \file
/// Which groups of a round of `isf` are kept.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/chain_visit.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/isf_chain.hpp>
#include <omnibal/cuda/detail/isf_state.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Judges the groups that begin in a chunk and marks their items there.
template <std::size_t R, class Keep>
struct isf_judge {
  isf_chain<R> chain;
  isf_arrays arrays;
  Keep keep;

  static constexpr std::size_t shared_bytes = chain_chunk + 16;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, visited_chunk const& chunk) const {
    std::uint32_t const count = chunk.part.count;
    bool const is_last = chain.state->is_last != 0;
    auto* const verdicts = block.template shared<std::uint8_t>(chain_chunk);
    auto* const last_verdict = block.template shared<std::uint32_t>(1);
    block.for_each(count, [&](std::size_t place) {
      auto const i = static_cast<std::uint32_t>(place);
      if (!chunk.is_visited(i)) return;
      std::uint32_t const next = chunk.next_of(i);
      std::uint32_t const end = next < count ? chunk.part.begin + next : chunk.leaves;
      bool const is_full = keep(chain.load(chunk.part.begin + i, end));
      bool const is_kept = is_full || is_last;
      verdicts[i] = static_cast<std::uint8_t>(is_full ? full : is_kept ? kept_below : returned);
      if (next >= count) *last_verdict = is_kept;
    });

    std::size_t const segments = parts_of(count, chain_segment);
    std::uint32_t* const marks = arrays.marks + chunk.index * chain_segments;
    block.for_each(segments, [&](std::size_t segment) {
      std::uint16_t const cover = chunk.covers[segment];
      bool is_kept = cover != no_place && verdicts[cover] != returned;
      std::uint32_t items = 0;
      std::uint32_t heads = 0;
      auto const first = static_cast<std::uint32_t>(segment) * chain_segment;
      std::uint32_t const size = smaller_of(chain_segment, count - first);
      for (std::uint32_t j = 0; j != size; ++j) {
        bool const is_head = chunk.is_visited(first + j);
        if (is_head) is_kept = verdicts[first + j] != returned;
        items |= std::uint32_t{is_kept} << j;
        heads |= std::uint32_t{is_head && is_kept} << j;
      }
      marks[segment] = items | heads << chain_segment;
    });

    std::uint64_t const kept = block.reduce(
        segments,
        [&](std::size_t segment) {
          return std::uint64_t{count_bits(marks[segment] >> chain_segment)} << 32 |
                 count_bits(marks[segment] & 0xffffu);
        },
        add{}, std::uint64_t{0});
    std::uint32_t below = 0;
    if (is_last) {
      below = block.reduce(
          count,
          [&](std::size_t i) {
            return std::uint32_t{chunk.is_visited(static_cast<std::uint32_t>(i)) &&
                                 verdicts[i] == kept_below};
          },
          add{}, std::uint32_t{0});
    }
    block.once([&] {
      arrays.kept_items[chunk.index] = static_cast<std::uint32_t>(kept);
      arrays.kept_groups[chunk.index] = static_cast<std::uint32_t>(kept >> 32);
      arrays.below_keep[chunk.index] = below;
    });
    // The chunks into which the last group reaches.
    block.for_each(parts_of(chunk.leaves, chain_chunk) - chunk.index - 1,
                   [&](std::size_t c) { arrays.is_carried[chunk.index + 1 + c] = *last_verdict; });
  }

 private:
  static constexpr std::uint8_t returned = 0;
  static constexpr std::uint8_t kept_below = 1;
  static constexpr std::uint8_t full = 2;
};

}  // namespace omnibal::inline v0::gpu::detail
