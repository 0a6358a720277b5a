#pragma once

/// \file
/// Exchanges on a stream, for any backend: copies of rows at the bandwidth of the memory, and the
/// order of the steps.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/exclusive_sum.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/exchange_steps.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

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
      return run_of(tables.kept(), begin[tables.rank], begin[tables.rank + 1], nullptr);
    } else {
      return layout.run(Step == row_step::pack ? tables.sent() : tables.received(), begin,
                        tables.plan.ranks, region);
    }
  }
};

/// Finds out what of a field goes where, when the tables are filled.
template <class Backend>
void find_routes(Backend& b, plan_tables const& tables, payload const& load,
                 exchange_report* report, gpu::fault* faults, std::byte* slots,
                 std::uint64_t slot_bytes, std::uint64_t* words) {
  gpu::detail::exclusive_sum_of(b, position_count(tables.plan), wire_size{tables, load},
                                tables.positions);
  if (load.out_offsets != nullptr) {
    gpu::detail::exclusive_sum_of(b, std::size_t{tables.plan.most_arrivals} + 1,
                                  arrival_elements{tables, load, faults}, load.out_offsets);
  }
  b.template for_each_block<exchange_tuning::threads>(
      1, 0, describe_exchange{tables, load, report, faults, slots, slot_bytes, words});
}

/// The most bytes that stay, as far as the host knows.
[[nodiscard]] inline std::size_t most_kept(device_plan_view const& plan, payload const& load) {
  return load.in_room * load.element_bytes + std::size_t{plan.most_home} * (load.word - 1);
}

/// The bounded form: every rank sends a slot to every other one. The faults of the report must be
/// set before, to those of this rank.
template <class Backend, class Wire>
void exchange_in_slots(Backend& b, Wire const& wire, device_plan_view const& plan,
                       payload const& load, std::uint64_t slot_bytes, exchange_report* report) {
  std::uint32_t const ranks = wire.size();
  auto const take = [&](std::size_t n) { return b.template scratch<std::uint32_t>(n); };
  auto* const positions = b.template scratch<std::uint64_t>(position_count(plan));
  plan_tables const tables = take_plan_tables(take, positions, plan, wire.rank());
  auto* const sent = b.template scratch<std::byte>(slot_bytes * ranks);
  auto* const received = b.template scratch<std::byte>(slot_bytes * ranks);

  make_plan_tables(b, tables, &report->faults);
  find_routes(b, tables, load, report, &report->faults, sent, slot_bytes, nullptr);
  wire_layout layout{sent, slot_bytes, tile_count(slot_bytes - header_bytes)};
  b.template for_each_block<exchange_tuning::threads>(
      layout.blocks(ranks), 0, copy_rows<row_step::pack>{tables, load, layout, report});
  wire.exchange([&](auto const& send, auto const& receive) {
    for (std::uint32_t peer = 0; peer != ranks; ++peer) {
      if (peer == wire.rank()) continue;
      send(peer, sent + peer * slot_bytes, slot_bytes);
      receive(peer, received + peer * slot_bytes, slot_bytes);
    }
  });
  b.template for_each_block<exchange_tuning::threads>(
      1, 0, read_slot_headers{received, slot_bytes, wire.rank(), ranks, report});
  layout.wire = received;
  b.template for_each_block<exchange_tuning::threads>(
      layout.blocks(ranks), 0, copy_rows<row_step::unpack>{tables, load, layout, report});
  layout = {nullptr, 0, tile_count(most_kept(plan, load))};
  b.template for_each_block<exchange_tuning::threads>(
      layout.tiles, 0, copy_rows<row_step::keep>{tables, load, layout, report});
}

/// What the host knows of the messages of a rank, in bytes.
struct known_messages {
  std::span<std::uint64_t const> sent;
  std::span<std::uint64_t const> received;
  std::uint64_t kept = 0;
};

/// A field on its way: tables with positions of its own, and its messages, when they are known.
struct moved_field {
  plan_tables tables;
  payload load;
  known_messages messages{};
  std::byte* sent = nullptr;
  std::byte* received = nullptr;
};

/// The first half of the exact form: what the host must know of each field comes to `words`, and
/// after it the faults of all ranks.
template <class Backend, class Wire>
void find_messages(Backend& b, Wire const& wire, std::span<moved_field const> fields,
                   exchange_report* reports, std::uint64_t* words) {
  gpu::fault* const all_faults = &reports->faults;
  make_plan_tables(b, fields[0].tables, all_faults);
  std::uint64_t* faults = words;
  for (moved_field const& field : fields) {
    // Behind its words are the faults so far, until those of the next field come there.
    find_routes(b, field.tables, field.load, reports++, all_faults, nullptr, 0, faults);
    faults += 2 * std::size_t{field.tables.plan.ranks} + 1;
  }
  wire.all_gather(faults, faults + 1, sizeof(std::uint64_t));
}

/// The second half: messages of exact sizes, those of all fields in a group.
template <class Backend, class Wire>
void exchange_messages(Backend& b, Wire const& wire, std::span<moved_field> fields,
                       exchange_report const* report) {
  auto const sum = [](std::span<std::uint64_t const> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  };
  for (auto& [tables, load, messages, sent, received] : fields) {
    std::uint64_t const bytes = sum(messages.sent);
    sent = b.template scratch<std::byte>(bytes);
    received = b.template scratch<std::byte>(sum(messages.received));
    wire_layout const layout{sent, 0, tile_count(bytes)};
    b.template for_each_block<exchange_tuning::threads>(
        layout.tiles, 0, copy_rows<row_step::pack>{tables, load, layout, report});
  }
  wire.exchange([&](auto const& send, auto const& receive) {
    for (auto const& [tables, load, messages, sent, received] : fields) {
      messages_in_rows(sent, messages.sent, received, messages.received)(send, receive);
    }
  });
  for (auto const& [tables, load, messages, sent, received] : fields) {
    wire_layout layout{nullptr, 0, tile_count(messages.kept)};
    b.template for_each_block<exchange_tuning::threads>(
        layout.tiles, 0, copy_rows<row_step::keep>{tables, load, layout, report});
    layout = {received, 0, tile_count(sum(messages.received))};
    b.template for_each_block<exchange_tuning::threads>(
        layout.tiles, 0, copy_rows<row_step::unpack>{tables, load, layout, report});
  }
}

}  // namespace omnibal::inline v0::nccl::detail
