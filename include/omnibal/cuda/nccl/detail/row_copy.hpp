#pragma once

/// \file
/// Copies of many rows at the bandwidth of the memory.

#include <omnibal/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace omnibal::inline v0::nccl::detail {

/// The bytes that a block copies.
inline constexpr std::size_t copy_tile_bytes = 16384;
inline constexpr int copy_threads = 256;

/// The blocks that copy so many bytes.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t tile_count(std::size_t bytes) {
  return bytes / copy_tile_bytes + (bytes % copy_tile_bytes == 0 ? 0 : 1);
}

[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t round_up(std::uint64_t bytes,
                                                                   std::uint32_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Copies at most 16 bytes, by the widest words that both addresses allow.
OMNIBAL_HOST_DEVICE inline void copy_word(std::byte* to, std::byte const* from,
                                          std::uint32_t bytes) {
#if defined(__CUDA_ARCH__)
  struct alignas(16) wide {
    std::uint64_t low;
    std::uint64_t high;
  };
  auto const addresses =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (bytes == 16 && addresses % 16 == 0) {
    *reinterpret_cast<wide*>(to) = *reinterpret_cast<wide const*>(from);
    return;
  }
  std::uint32_t done = 0;
  if (addresses % 8 == 0) {
    for (; done + 8 <= bytes; done += 8) {
      *reinterpret_cast<std::uint64_t*>(to + done) =
          *reinterpret_cast<std::uint64_t const*>(from + done);
    }
  } else if (addresses % 4 == 0) {
    for (; done + 4 <= bytes; done += 4) {
      *reinterpret_cast<std::uint32_t*>(to + done) =
          *reinterpret_cast<std::uint32_t const*>(from + done);
    }
  }
  for (; done < bytes; ++done) to[done] = from[done];
#else
  std::memcpy(to, from, bytes);
#endif
}

/// Copies the bytes [begin, end) of `rows`, of which row k takes [rows.at(k), rows.at(k + 1)), for
/// rows [first, last): `rows.copy(k, inner, bytes)` copies a word of row k. Words are of `word`
/// bytes, which divides the beginnings of all rows.
template <class Block, class Rows>
OMNIBAL_HOST_DEVICE void copy_tile(Block& block, Rows const& rows, std::uint32_t first,
                                   std::uint32_t last, std::uint64_t begin, std::uint64_t end,
                                   std::uint32_t word) {
  // The last row that begins at or before a byte has it: rows before it that begin there are empty.
  auto const row_of = [&](std::uint64_t byte, std::uint32_t low, std::uint32_t high) {
    while (high - low > 1) {
      std::uint32_t const middle = low + (high - low) / 2;
      if (rows.at(middle) <= byte) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  };
  if (begin >= end) return;
  std::uint32_t const low = row_of(begin, first, last);
  std::uint32_t const high = row_of(end - 1, low, last) + 1;
  block.for_each((end - begin + word - 1) / word, [&](std::size_t i) {
    std::uint64_t const byte = begin + i * word;
    std::uint32_t const row = row_of(byte, low, high);
    rows.copy(row, byte - rows.at(row), word);
  });
}

}  // namespace omnibal::inline v0::nccl::detail
