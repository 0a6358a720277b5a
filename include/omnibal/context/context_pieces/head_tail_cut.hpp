// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Load-balanced sharding of a sequence for causal attention: heads and tails.

#include <algorithm>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// A range of neighboring blocks of a sequence.
struct block_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Load-balanced sharding: rank 0 has the outermost blocks of a sequence at both of its ends, rank
/// 1 the blocks next to them, and the last rank the middle. All ranks have the same number of
/// blocks, except that the `extra` ranks from `first_extra` on have one more. These ranks wrap
/// around to rank 0. If a rank has an odd number of blocks, the odd block comes from the end of the
/// sequence that has fewer assigned blocks, so that the remaining blocks stay in the middle.
struct head_tail_cut {
  std::uint64_t blocks = 0;
  std::uint64_t each = 0;
  std::uint32_t ranks = 1;
  std::uint32_t extra = 0;
  std::uint32_t first_extra = 0;

  head_tail_cut() = default;
  head_tail_cut(std::uint64_t of_blocks, std::uint32_t among, std::uint32_t extra_from)
      : blocks(of_blocks),
        each(of_blocks / among),
        ranks(among),
        extra(static_cast<std::uint32_t>(of_blocks % among)),
        first_extra(extra_from) {}

  /// Returns the first rank with an extra block of the next sequence. No rank has two extra blocks
  /// more than another.
  [[nodiscard]] std::uint32_t next_extra() const {
    return static_cast<std::uint32_t>((std::uint64_t{first_extra} + extra) % ranks);
  }

  /// Returns the head of a rank. The head of the last rank is the middle, which is its head and its
  /// tail.
  [[nodiscard]] block_range head(std::uint32_t rank) const {
    return {heads_before(rank), rank + 1 == ranks ? tails_from(rank) : heads_before(rank + 1)};
  }
  /// Returns the tail of a rank. The last rank has no tail.
  [[nodiscard]] block_range tail(std::uint32_t rank) const {
    return {rank + 1 == ranks ? tails_from(rank) : tails_from(rank + 1), tails_from(rank)};
  }

  /// Returns the number of pieces with blocks.
  [[nodiscard]] std::uint64_t pieces() const {
    std::uint32_t const last = ranks - 1;
    bool const has_middle = heads_before(last) != tails_from(last);
    return head_number(last) + (has_middle ? 1 : 0) + tails_of(last);
  }
  /// Return the numbers of the head and the tail of a rank, counted along the sequence over all
  /// pieces with blocks. Precondition: the piece has blocks.
  [[nodiscard]] std::uint64_t head_number(std::uint32_t rank) const {
    return std::min<std::uint64_t>(rank, heads_before(rank));
  }
  [[nodiscard]] std::uint64_t tail_number(std::uint32_t rank) const {
    return pieces() - 1 - tails_of(rank);
  }

 private:
  /// Returns the number of blocks of all ranks before a rank.
  [[nodiscard]] std::uint64_t blocks_before(std::uint32_t rank) const {
    std::uint64_t const end = std::uint64_t{first_extra} + extra;
    std::uint64_t const behind = std::min<std::uint64_t>(end, rank);
    std::uint64_t const around = end > ranks ? end - ranks : 0;
    return rank * each + (behind > first_extra ? behind - first_extra : 0) +
           std::min<std::uint64_t>(around, rank);
  }
  [[nodiscard]] std::uint64_t heads_before(std::uint32_t rank) const {
    return (blocks_before(rank) + 1) / 2;
  }
  [[nodiscard]] std::uint64_t tails_from(std::uint32_t rank) const {
    return blocks - blocks_before(rank) / 2;
  }
  /// Returns the number of ranks before a rank that have tails. If a rank has two blocks, all ranks
  /// have tails. Otherwise each tail is one block.
  [[nodiscard]] std::uint64_t tails_of(std::uint32_t rank) const {
    return std::min<std::uint64_t>(rank, blocks - tails_from(rank));
  }
};

}  // namespace omnibal::inline v0::detail
