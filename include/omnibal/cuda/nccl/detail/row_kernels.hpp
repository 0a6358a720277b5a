#pragma once

/// \file
/// The steps that copy rows at the bandwidth of the memory: to the wire, from it, and past it.

#include <omnibal/config.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/exchange_steps.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace omnibal::inline v0::nccl::detail {

/// Numbers that decide how fast exchanges are, not what they do: no device has measured them.
struct exchange_tuning {
  /// The bytes that a block copies.
  static constexpr std::size_t tile_bytes = 16384;
  static constexpr int threads = 256;
};

/// The blocks that copy so many bytes.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t tile_count(std::size_t bytes) {
  return bytes / exchange_tuning::tile_bytes + (bytes % exchange_tuning::tile_bytes == 0 ? 0 : 1);
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
    return gpu::detail::first_false(low + 1, high,
                                    [&](std::uint32_t k) { return rows.at(k) <= byte; }) -
           1;
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

/// Some rows of a list, one after the other on the wire.
struct row_run {
  /// Positions on the wire, `origin` more than from `wire`.
  std::uint64_t const* positions;
  std::uint64_t origin;
  std::uint32_t first;
  std::uint32_t last;
  std::byte* wire;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t at(std::uint32_t k) const {
    return positions[k] - origin;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t bytes() const { return at(last); }
};

[[nodiscard]] OMNIBAL_HOST_DEVICE inline row_run run_of(std::uint64_t const* positions,
                                                        std::uint32_t first, std::uint32_t last,
                                                        std::byte* wire) {
  return {positions, positions[first], first, last, wire};
}

/// Copies a tile of the bytes of a run.
template <class Block, class Rows>
OMNIBAL_HOST_DEVICE void copy_own_tile(Block& block, Rows const& rows, std::size_t tile) {
  std::uint64_t const bytes = rows.bytes();
  std::uint64_t const begin = tile * exchange_tuning::tile_bytes;
  std::uint64_t const end =
      begin + exchange_tuning::tile_bytes < bytes ? begin + exchange_tuning::tile_bytes : bytes;
  copy_tile(block, rows, rows.first, rows.last, begin, end, rows.load->word);
}

/// Which runs a step copies: a slot for each rank, or all in one.
struct wire_layout {
  std::byte* wire = nullptr;
  /// 0 where messages lie one after the other, without headers.
  std::uint64_t slot_bytes = 0;
  std::uint64_t tiles = 0;

  /// The blocks of a step.
  [[nodiscard]] std::size_t blocks(std::uint32_t ranks) const {
    return slot_bytes == 0 ? tiles : tiles * ranks;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE row_run run(std::uint64_t const* positions,
                                                std::uint32_t const* begin, std::uint32_t ranks,
                                                std::size_t region) const {
    if (slot_bytes == 0) return run_of(positions, 0, begin[ranks], wire);
    row_run const result = run_of(positions, begin[region], begin[region + 1],
                                  wire + region * slot_bytes + header_bytes);
    // What does not fit is reported, and not sent.
    bool const fits = result.first != result.last && result.bytes() <= slot_bytes - header_bytes;
    return fits ? result : row_run{positions, positions[0], 0, 0, wire};
  }
};

/// What a step does with rows: those that leave go to the wire, where the rest of a last word is
/// zeros, those that have come go from it to their places, and those that stay past it.
enum class row_step { pack, unpack, keep };

/// Copies the rows of a step, unless there is a fault.
template <row_step Step>
struct copy_rows {
  plan_tables tables;
  payload load;
  wire_positions positions;
  wire_layout layout;
  exchange_report const* report;

  struct run : row_run {
    plan_tables const* tables;
    payload const* load;

    /// A word that begins after `inner` bytes of row k.
    OMNIBAL_HOST_DEVICE void copy(std::uint32_t k, std::uint64_t inner, std::uint32_t word) const {
      std::uint64_t const left = load->bytes(sample(k)) - inner;
      auto const count = static_cast<std::uint32_t>(left < word ? left : word);
      if constexpr (Step == row_step::unpack) {
        copy_word(load->row_out(tables->coming[k]) + inner, wire + at(k) + inner, count);
      } else if constexpr (Step == row_step::keep) {
        // Both lists have what stays in the order of its slots.
        std::uint32_t const place = tables->receive_begin[tables->rank] + (k - first);
        copy_word(load->row_out(tables->coming[place]) + inner,
                  load->row_in(tables->leaving[k]) + inner, count);
      } else {
        std::byte* const to = wire + at(k) + inner;
        copy_word(to, load->row_in(tables->leaving[k]) + inner, count);
        for (std::uint32_t rest = count; rest < word; ++rest) to[rest] = std::byte{0};
      }
    }
    [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample(std::uint32_t k) const {
      return Step == row_step::unpack ? tables->sample_coming(k) : tables->sample_leaving(k);
    }
  };

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    if (report->faults != gpu::fault::none) return;
    run const rows{rows_of(index / layout.tiles), &tables, &load};
    copy_own_tile(block, rows, index % layout.tiles);
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE row_run rows_of(std::size_t region) const {
    std::uint32_t const* const begin =
        Step == row_step::unpack ? tables.receive_begin : tables.send_begin;
    if constexpr (Step == row_step::keep) {
      return run_of(positions.kept(), begin[tables.rank], begin[tables.rank + 1], nullptr);
    } else {
      return layout.run(Step == row_step::pack ? positions.sent() : positions.received(), begin,
                        tables.plan.ranks, region);
    }
  }
};

}  // namespace omnibal::inline v0::nccl::detail
