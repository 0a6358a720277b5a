// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchanges on a stream, on any backend: the copies of rows and the order of the steps.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/exclusive_sum.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

namespace omnibal::inline v0::nccl::detail {

/// Returns the position of the first of ascending numbers that is not below `value`.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t position_of(std::uint32_t const* numbers,
                                                                   std::uint32_t count,
                                                                   std::uint32_t value) {
  return gpu::detail::first_false(std::uint32_t{0}, count,
                                  [&](std::uint32_t k) { return numbers[k] < value; });
}

/// Returns the owner of `position`: the last of `owners` whose offset is not above `position`.
/// Precondition: `position < offsets[owners]`.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t owner_of(std::uint32_t const* offsets,
                                                                std::uint32_t owners,
                                                                std::uint32_t position) {
  return position_of(offsets, owners + 1, position + 1) - 1;
}

/// The samples of a rank before and after an exchange, in the order in which they are sent: by
/// destination and by source, and then in the order of arrival. Both sides know this order. A
/// sample that remains has the rank itself as destination and source. Trivially copyable.
struct plan_tables {
  device_plan_view plan;
  std::uint32_t rank;
  /// The positions of the samples before the exchange, in the order of their slots.
  std::uint32_t* leaving;
  /// The slots, in the order of `leaving`.
  std::uint32_t* leaving_slots;
  /// The positions of the samples after the exchange, in the order of their sources.
  std::uint32_t* coming;
  /// The sources, in the order of `coming`.
  std::uint32_t* coming_from;
  /// The first element of `leaving` for each destination, and the end.
  std::uint32_t* send_begin;
  /// The first element of `coming` from each source, and the end.
  std::uint32_t* receive_begin;
  /// Positions on the wire, in one array by one scan: of the samples that are sent, that are
  /// received, and that are kept. Kept samples count as if they were sent. Each list has an end.
  std::uint64_t* positions;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* sent() const { return positions; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* received() const {
    return positions + plan.max_home;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* kept() const {
    return received() + plan.max_arrivals;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t home_count() const {
    std::uint32_t const count = plan.home_offsets[rank + 1] - plan.home_offsets[rank];
    return count < plan.max_home ? count : plan.max_home;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t arrival_count() const {
    std::uint32_t const count = plan.arrival_offsets[rank + 1] - plan.arrival_offsets[rank];
    return count < plan.max_arrivals ? count : plan.max_arrivals;
  }

  /// Returns true if the k-th sample of `leaving` remains on this rank.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool leaves_to_itself(std::uint32_t k) const {
    return k >= send_begin[rank] && k < send_begin[rank + 1];
  }
  /// Returns true if the k-th sample of `coming` remains on this rank.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool comes_from_itself(std::uint32_t k) const {
    return k >= receive_begin[rank] && k < receive_begin[rank + 1];
  }

  /// Returns the index in the global batch of the k-th sample of `leaving`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample_leaving(std::uint32_t k) const {
    return plan.home_offsets[rank] + leaving[k];
  }
  /// Returns the index in the global batch of the k-th sample of `coming`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample_coming(std::uint32_t k) const {
    return plan.item_at[plan.arrival_offsets[rank] + coming[k]];
  }
};

/// Writes the keys by which both lists are sorted. Elements of the arrays without a sample have the
/// largest keys, so that they are at the end.
struct write_plan_keys {
  plan_tables tables;
  gpu::fault* faults;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    auto const& plan = tables.plan;
    auto const k = static_cast<std::uint32_t>(i);
    std::uint32_t const samples = plan.home_offsets[plan.ranks];
    if (k < plan.max_home) {
      bool const is_there = k < tables.home_count();
      tables.leaving[k] = k;
      tables.leaving_slots[k] =
          is_there ? plan.slot_of[plan.home_offsets[tables.rank] + k] : plan.max_samples;
    }
    if (k < plan.max_arrivals) {
      std::uint32_t source = plan.ranks;
      if (k < tables.arrival_count()) {
        std::uint32_t const sample = plan.item_at[plan.arrival_offsets[tables.rank] + k];
        if (sample < samples) {
          source = owner_of(plan.home_offsets, plan.ranks, sample);
        } else {
          gpu::detail::raise(faults, gpu::fault::unknown_index);
        }
      }
      tables.coming[k] = k;
      tables.coming_from[k] = source;
    }
    if (k != 0) return;
    bool const fits =
        plan.home_offsets[tables.rank + 1] - plan.home_offsets[tables.rank] <= plan.max_home &&
        plan.arrival_offsets[tables.rank + 1] - plan.arrival_offsets[tables.rank] <=
            plan.max_arrivals;
    if (!fits) gpu::detail::raise(faults, gpu::fault::no_room);
  }
};

/// Finds, in the sorted lists, the first sample that goes to each rank and the first sample that
/// comes from each rank.
struct find_plan_begins {
  plan_tables tables;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t peer) const {
    auto const& plan = tables.plan;
    tables.send_begin[peer] =
        position_of(tables.leaving_slots, plan.max_home, plan.arrival_offsets[peer]);
    tables.receive_begin[peer] =
        position_of(tables.coming_from, plan.max_arrivals, static_cast<std::uint32_t>(peer));
  }
};

/// Returns the number of elements of 32 bits in the tables of a plan.
[[nodiscard]] inline std::size_t index_count(device_plan_view const& plan) {
  return 2 * (std::size_t{plan.max_home} + plan.max_arrivals + plan.ranks + 1);
}
/// Returns the number of elements of 64 bits in the tables of a plan.
[[nodiscard]] inline std::size_t position_count(device_plan_view const& plan) {
  return 2 * std::size_t{plan.max_home} + plan.max_arrivals + 1;
}

/// Returns the tables, in memory from `take(n)`, which returns n elements of 32 bits.
template <class Take>
[[nodiscard]] plan_tables take_plan_tables(Take const& take, std::uint64_t* positions,
                                           device_plan_view const& plan, std::uint32_t rank) {
  plan_tables tables{};
  tables.plan = plan;
  tables.rank = rank;
  tables.leaving = take(plan.max_home);
  tables.leaving_slots = take(plan.max_home);
  tables.coming = take(plan.max_arrivals);
  tables.coming_from = take(plan.max_arrivals);
  tables.send_begin = take(std::size_t{plan.ranks} + 1);
  tables.receive_begin = take(std::size_t{plan.ranks} + 1);
  tables.positions = positions;
  return tables;
}

/// Fills the tables by two radix sorts, whose keys are as short as the plan allows.
template <gpu::detail::kernel_backend Backend>
void make_plan_tables(Backend& b, plan_tables const& tables, gpu::fault* faults) {
  auto const& plan = tables.plan;
  std::uint32_t const most = plan.max_home > plan.max_arrivals ? plan.max_home : plan.max_arrivals;
  int const slot_bits = static_cast<int>(std::bit_width(plan.max_samples));
  int const rank_bits = static_cast<int>(std::bit_width(plan.ranks));
  b.for_each(std::size_t{most} + 1, write_plan_keys{tables, faults});
  b.sort_pairs(tables.leaving_slots, tables.leaving, plan.max_home, 0, slot_bits);
  b.sort_pairs(tables.coming_from, tables.coming, plan.max_arrivals, 0, rank_bits);
  b.for_each(std::size_t{plan.ranks} + 1, find_plan_begins{tables});
}

/// Returns the number of bytes of element i of the lists in `plan_tables::positions`.
struct wire_size {
  plan_tables tables;
  payload load;

  OMNIBAL_HOST_DEVICE std::uint64_t operator()(std::size_t i) const {
    std::size_t const home = tables.plan.max_home;
    std::size_t const arrivals = tables.plan.max_arrivals;
    if (i < home) return leaving(static_cast<std::uint32_t>(i), false);
    if (i < home + arrivals) {
      auto const k = static_cast<std::uint32_t>(i - home);
      bool const is_there = k < tables.receive_begin[tables.plan.ranks];
      if (!is_there || tables.comes_from_itself(k)) return 0;
      return load.wire_bytes(tables.sample_coming(k));
    }
    if (i < 2 * home + arrivals)
      return leaving(static_cast<std::uint32_t>(i - home - arrivals), true);
    return 0;
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t leaving(std::uint32_t k, bool is_kept) const {
    if (k >= tables.home_count() || tables.leaves_to_itself(k) != is_kept) return 0;
    return load.wire_bytes(tables.sample_leaving(k));
  }
};

/// Returns the number of elements of each arrival, for the offsets of payloads.
struct arrival_elements {
  plan_tables tables;
  payload load;
  gpu::fault* faults;

  OMNIBAL_HOST_DEVICE std::uint64_t operator()(std::size_t i) const {
    if (i >= tables.arrival_count()) return 0;
    auto const& plan = tables.plan;
    std::uint32_t const sample = plan.item_at[plan.arrival_offsets[tables.rank] + i];
    if (sample >= plan.home_offsets[plan.ranks]) return 0;
    if (!load.is_sound(sample)) gpu::detail::raise(faults, gpu::fault::invalid_amount);
    return load.elements(sample);
  }
};

/// The header at the beginning of a slot: the facts about the sender that all ranks must know.
struct slot_header {
  std::uint64_t largest_message;
  std::uint32_t faults;
  std::uint32_t unused;
};
inline constexpr std::uint64_t header_bytes = sizeof(slot_header);

/// Fills the report of this rank, and the headers of the slots or the sizes of the messages, as one
/// block.
struct describe_exchange {
  plan_tables tables;
  payload load;
  exchange_report* report;
  /// The faults of all fields so far.
  gpu::fault* faults;
  /// The slots to fill and their size in bytes; null if there are no slots.
  std::byte* slots;
  std::uint64_t slot_bytes;
  /// Words for the host, or null: the bytes that go to each rank, the bytes that come from each
  /// rank, and the bytes that are kept. The last word has the faults of this rank, and is sent to
  /// all ranks.
  std::uint64_t* words;

  template <gpu::detail::thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint32_t const ranks = tables.plan.ranks;
    std::uint64_t const largest = block.reduce(
        ranks, [&](std::size_t peer) { return sent_to(peer); }, gpu::detail::take_larger{},
        std::uint64_t{0});
    std::uint64_t const message = largest == 0 ? 0 : round_up(largest + header_bytes, 16);
    std::uint32_t const wrong = block.reduce(
        tables.home_count(), [&](std::size_t i) { return wrong_size(i) ? 1u : 0u; },
        gpu::detail::unite_bits{}, 0u);
    block.once([&] {
      std::uint32_t const arrivals = tables.arrival_count();
      std::uint64_t const elements =
          load.out_offsets == nullptr ? arrivals : load.out_offsets[arrivals];
      bool const is_read = load.in_offsets != nullptr || tables.home_count() <= load.in_room;
      bool const fits =
          is_read && elements <= load.out_room && (slots == nullptr || message <= slot_bytes);
      if (!fits) gpu::detail::raise(faults, gpu::fault::no_room);
      if (wrong != 0) gpu::detail::raise(faults, gpu::fault::invalid_amount);
      report->arrivals = arrivals;
      report->elements = elements;
      report->sent_bytes = bytes(tables.sent(), 0, tables.plan.max_home);
      report->largest_message = message;
    });
    auto const found = static_cast<std::uint32_t>(*faults);
    block.for_each(ranks, [&](std::size_t peer) {
      if (slots != nullptr) {
        *reinterpret_cast<slot_header*>(slots + peer * slot_bytes) = {message, found, 0};
      }
      if (words == nullptr) return;
      words[peer] = sent_to(peer);
      words[ranks + peer] =
          bytes(tables.received(), tables.receive_begin[peer], tables.receive_begin[peer + 1]);
      if (peer != 0) return;
      words[2 * ranks] = bytes(tables.kept(), 0, tables.plan.max_home);
      words[2 * ranks + 1] = found;
    });
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t sent_to(std::size_t peer) const {
    return bytes(tables.sent(), tables.send_begin[peer], tables.send_begin[peer + 1]);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE static std::uint64_t bytes(std::uint64_t const* positions,
                                                               std::uint32_t first,
                                                               std::uint32_t last) {
    return positions[last] - positions[first];
  }
  /// Returns true if the caller's offsets of a payload contradict the sizes that all ranks know.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool wrong_size(std::size_t i) const {
    if (load.in_offsets == nullptr) return false;
    std::uint64_t const size = load.in_offsets[i + 1] - load.in_offsets[i];
    auto const sample = static_cast<std::uint32_t>(tables.plan.home_offsets[tables.rank] + i);
    return load.in_offsets[i + 1] < load.in_offsets[i] || load.in_offsets[i + 1] > load.in_room ||
           !load.is_sound(sample) || load.elements(sample) != size;
  }
};

/// Adds the received headers to the report, as one block. Then the report has the faults of all
/// ranks.
struct read_slot_headers {
  std::byte const* slots;
  std::uint64_t slot_bytes;
  std::uint32_t rank;
  std::uint32_t ranks;
  exchange_report* report;

  template <gpu::detail::thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint64_t const largest = block.reduce(
        ranks, [&](std::size_t peer) { return peer == rank ? 0 : header(peer).largest_message; },
        gpu::detail::take_larger{}, std::uint64_t{0});
    std::uint32_t const faults = block.reduce(
        ranks, [&](std::size_t peer) { return peer == rank ? 0 : header(peer).faults; },
        gpu::detail::unite_bits{}, 0u);
    block.once([&] {
      report->faults = report->faults | static_cast<gpu::fault>(faults);
      if (largest > report->largest_message) report->largest_message = largest;
    });
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE slot_header const& header(std::size_t peer) const {
    return *reinterpret_cast<slot_header const*>(slots + peer * slot_bytes);
  }
};

/// Tuning constants of the speed of exchanges, not tuned on a device; they do not change results.
struct exchange_tuning {
  /// The number of bytes that a block copies.
  static constexpr std::size_t tile_bytes = 16384;
  static constexpr int threads = 256;
};

/// Returns the number of blocks that copy `bytes` bytes.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t tile_count(std::size_t bytes) {
  return bytes / exchange_tuning::tile_bytes + (bytes % exchange_tuning::tile_bytes == 0 ? 0 : 1);
}

/// Copies at most 16 bytes with the widest words that both addresses allow.
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

/// Copies the bytes [begin, end) of the rows [first, last). Row k has the bytes [rows.at(k),
/// rows.at(k + 1)), and `rows.copy(k, inner, bytes)` copies a word of row k. A word has `word`
/// bytes, a divisor of the positions of all rows.
template <gpu::detail::thread_block Block, class Rows>
OMNIBAL_HOST_DEVICE void copy_tile(Block& block, Rows const& rows, std::uint32_t first,
                                   std::uint32_t last, std::uint64_t begin, std::uint64_t end,
                                   std::uint32_t word) {
  // A byte belongs to the last row that begins at or before it: earlier rows that begin there are
  // empty.
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

/// The rows [first, last) of a list, which are one after the other on the wire.
struct row_run {
  /// The position of each row in bytes. Row k begins at `wire` + `positions[k]` - `origin`.
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
template <gpu::detail::thread_block Block, class Rows>
OMNIBAL_HOST_DEVICE void copy_own_tile(Block& block, Rows const& rows, std::size_t tile) {
  std::uint64_t const bytes = rows.bytes();
  std::uint64_t const begin = tile * exchange_tuning::tile_bytes;
  std::uint64_t const end =
      begin + exchange_tuning::tile_bytes < bytes ? begin + exchange_tuning::tile_bytes : bytes;
  copy_tile(block, rows, rows.first, rows.last, begin, end, rows.load->word);
}

/// The division of the wire into runs that blocks copy: a slot for each rank, or one run of all
/// messages.
struct wire_layout {
  std::byte* wire = nullptr;
  /// The size of a slot in bytes, or 0 if messages follow each other without headers.
  std::uint64_t slot_bytes = 0;
  std::uint64_t tiles = 0;

  /// Returns the number of blocks of threads that copy the runs of a step.
  [[nodiscard]] std::size_t blocks(std::uint32_t ranks) const {
    return slot_bytes == 0 ? tiles : tiles * ranks;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE row_run run(std::uint64_t const* positions,
                                                std::uint32_t const* begin, std::uint32_t ranks,
                                                std::size_t region) const {
    if (slot_bytes == 0) return run_of(positions, 0, begin[ranks], wire);
    row_run const result = run_of(positions, begin[region], begin[region + 1],
                                  wire + region * slot_bytes + header_bytes);
    // A message that does not fit is reported and not sent.
    bool const fits = result.first != result.last && result.bytes() <= slot_bytes - header_bytes;
    return fits ? result : row_run{positions, positions[0], 0, 0, wire};
  }
};

/// The steps of copying rows. `pack` copies leaving rows to the wire and fills the rest of a last
/// word with zeros. The step `unpack` copies received rows from the wire to their places. `keep`
/// copies the rows that remain, without the wire.
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

    /// Copies the word that begins after `inner` bytes of row k.
    OMNIBAL_HOST_DEVICE void copy(std::uint32_t k, std::uint64_t inner, std::uint32_t word) const {
      std::uint64_t const left = load->bytes(sample(k)) - inner;
      auto const count = static_cast<std::uint32_t>(left < word ? left : word);
      if constexpr (Step == row_step::unpack) {
        copy_word(load->row_out(tables->coming[k]) + inner, wire + at(k) + inner, count);
      } else if constexpr (Step == row_step::keep) {
        // Both lists have the samples that remain in the order of their slots.
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

  template <gpu::detail::thread_block Block>
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

/// Finds the positions of the samples of a field on the wire. The tables must be filled.
template <gpu::detail::kernel_backend Backend>
void find_routes(Backend& b, plan_tables const& tables, payload const& load,
                 exchange_report* report, gpu::fault* faults, std::byte* slots,
                 std::uint64_t slot_bytes, std::uint64_t* words) {
  gpu::detail::exclusive_sum_of(b, position_count(tables.plan), wire_size{tables, load},
                                tables.positions);
  if (load.out_offsets != nullptr) {
    gpu::detail::exclusive_sum_of(b, std::size_t{tables.plan.max_arrivals} + 1,
                                  arrival_elements{tables, load, faults}, load.out_offsets);
  }
  b.template for_each_block<exchange_tuning::threads>(
      1, 0, describe_exchange{tables, load, report, faults, slots, slot_bytes, words});
}

/// Returns an upper bound on the bytes that are kept, from sizes that the host knows.
[[nodiscard]] inline std::size_t max_kept(device_plan_view const& plan, payload const& load) {
  return load.in_room * load.element_bytes + std::size_t{plan.max_home} * (load.word - 1);
}

/// Runs the bounded form: every rank sends a slot to every other rank. `report->faults` must have
/// the faults of this rank before the call.
template <gpu::detail::kernel_backend Backend, class Wire>
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
  layout = {nullptr, 0, tile_count(max_kept(plan, load))};
  b.template for_each_block<exchange_tuning::threads>(
      layout.tiles, 0, copy_rows<row_step::keep>{tables, load, layout, report});
}

/// The messages of a rank as the host knows them, in bytes.
struct known_messages {
  std::span<std::uint64_t const> sent;
  std::span<std::uint64_t const> received;
  std::uint64_t kept = 0;
};

/// A field in an exchange: the tables of the plan with the positions of this field, and its
/// messages after the first half of the exchange.
struct moved_field {
  plan_tables tables;
  payload load;
  known_messages messages{};
  std::byte* sent = nullptr;
  std::byte* received = nullptr;
};

/// Runs the first half of the exact form. Writes to `words` the sizes that the host must know of
/// each field, and after them the faults of all ranks.
template <gpu::detail::kernel_backend Backend, class Wire>
void find_messages(Backend& b, Wire const& wire, std::span<moved_field const> fields,
                   exchange_report* reports, std::uint64_t* words) {
  gpu::fault* const all_faults = &reports->faults;
  make_plan_tables(b, fields[0].tables, all_faults);
  std::uint64_t* faults = words;
  for (moved_field const& field : fields) {
    // The word behind the words of this field has the faults so far. The next field overwrites it.
    find_routes(b, field.tables, field.load, reports++, all_faults, nullptr, 0, faults);
    faults += 2 * std::size_t{field.tables.plan.ranks} + 1;
  }
  wire.all_gather(faults, faults + 1, sizeof(std::uint64_t));
}

/// Runs the second half of the exact form: messages of exact sizes, of all fields in one group.
template <gpu::detail::kernel_backend Backend, class Wire>
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
