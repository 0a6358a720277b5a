// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A gather of different numbers of values by a collective that requires equal numbers.

#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace omnibal::inline v0::detail {

/// Bytes that are not initialized. Allocates only beyond the largest size so far.
class byte_buffer {
 public:
  /// Returns this number of bytes with any contents; bytes of earlier calls become invalid.
  [[nodiscard]] std::span<std::byte> take(std::size_t bytes) {
    if (bytes > capacity_) {
      bytes_.reset();
      capacity_ = 0;
      bytes_.reset(new std::byte[bytes]);
      capacity_ = bytes;
    }
    return {bytes_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

/// A gather of blocks that are padded to the longest block. Later calls reuse its memory.
class padded_gather {
 public:
  /// Writes the values of all ranks to `result`. Rank r has `counts[r]` values, and every rank
  /// knows all counts.
  template <class T, class Comm>
  void run(Comm& comm, std::span<T const> own, std::span<std::uint64_t const> counts,
           ragged<T>& result) {
    result.shape(counts);
    std::uint64_t const most = *std::max_element(counts.begin(), counts.end());
    if (most == 0) return;
    if (most == *std::min_element(counts.begin(), counts.end())) {
      comm.all_gather(std::as_bytes(own), std::as_writable_bytes(result.values()));
      return;
    }
    read(gather(comm, std::as_bytes(own), most * sizeof(T)), 0, result);
  }

  /// Fills the rows from the blocks, after `skipped` other bytes in each block.
  template <class T>
  static void read(std::span<std::byte const> blocks, std::size_t skipped, ragged<T>& result) {
    for (std::size_t rank = 0; rank != result.size(); ++rank) {
      auto const row = std::as_writable_bytes(result[rank]);
      auto const from = blocks.subspan(rank * (blocks.size() / result.size()) + skipped);
      std::copy_n(from.begin(), row.size(), row.begin());
    }
  }

  /// Returns the bytes of all ranks, each padded with zeros to `block_bytes`; valid until the next
  /// call.
  template <class Comm>
  [[nodiscard]] std::span<std::byte const> gather(Comm& comm, std::span<std::byte const> own,
                                                  std::size_t block_bytes) {
    auto const block = own_.take(block_bytes);
    auto const rest = std::copy(own.begin(), own.end(), block.begin());
    std::fill(rest, block.end(), std::byte{0});
    auto const blocks = all_.take(block_bytes * rank_count(comm));
    comm.all_gather(std::span<std::byte const>(block), blocks);
    return blocks;
  }

 private:
  byte_buffer own_;
  byte_buffer all_;
};

}  // namespace omnibal::inline v0::detail
