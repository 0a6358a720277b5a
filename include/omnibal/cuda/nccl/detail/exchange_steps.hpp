#pragma once

/// \file
/// The steps of an exchange on a device: what a rank sends, keeps and gets, and what all must know.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl::detail {

/// The first position of ascending numbers that is not below `value`.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t position_of(std::uint32_t const* numbers,
                                                                   std::uint32_t count,
                                                                   std::uint32_t value) {
  return gpu::detail::first_false(std::uint32_t{0}, count,
                                  [&](std::uint32_t k) { return numbers[k] < value; });
}

/// The last of `owners` whose offset is not above `position`: that which has it. Precondition:
/// `position < offsets[owners]`.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t owner_of(std::uint32_t const* offsets,
                                                                std::uint32_t owners,
                                                                std::uint32_t position) {
  return position_of(offsets, owners + 1, position + 1) - 1;
}

/// The samples of a rank before and after an exchange, in the order in which they travel: by
/// destination and by source, and then as they arrive, which both sides know. What stays is sent to
/// oneself. Trivially copyable.
struct plan_tables {
  device_plan_view plan;
  std::uint32_t rank;
  /// The positions of the samples before, by slot, and the slots.
  std::uint32_t* leaving;
  std::uint32_t* leaving_slots;
  /// The positions of the samples after, by source, and the sources.
  std::uint32_t* coming;
  std::uint32_t* coming_from;
  /// The first of `leaving` for each rank and of `coming` from each, and the ends.
  std::uint32_t* send_begin;
  std::uint32_t* receive_begin;
  /// Positions on the wire, all in one array by one scan: of what is sent, of what is received, and
  /// of what is kept, as if it were sent. Each list has an end.
  std::uint64_t* positions;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* sent() const { return positions; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* received() const {
    return positions + plan.most_home;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* kept() const {
    return received() + plan.most_arrivals;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t home_count() const {
    std::uint32_t const count = plan.home_offsets[rank + 1] - plan.home_offsets[rank];
    return count < plan.most_home ? count : plan.most_home;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t arrival_count() const {
    std::uint32_t const count = plan.arrival_offsets[rank + 1] - plan.arrival_offsets[rank];
    return count < plan.most_arrivals ? count : plan.most_arrivals;
  }

  /// Whether the k-th that leaves, or comes, is one that stays.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool leaves_to_itself(std::uint32_t k) const {
    return k >= send_begin[rank] && k < send_begin[rank + 1];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool comes_from_itself(std::uint32_t k) const {
    return k >= receive_begin[rank] && k < receive_begin[rank + 1];
  }

  /// The sample of the global batch that leaves or comes k-th.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample_leaving(std::uint32_t k) const {
    return plan.home_offsets[rank] + leaving[k];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample_coming(std::uint32_t k) const {
    return plan.item_at[plan.arrival_offsets[rank] + coming[k]];
  }
};

/// Keys by which both lists are sorted; what is padding goes to the end.
struct write_plan_keys {
  plan_tables tables;
  gpu::fault* faults;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    auto const& plan = tables.plan;
    auto const k = static_cast<std::uint32_t>(i);
    std::uint32_t const samples = plan.home_offsets[plan.ranks];
    if (k < plan.most_home) {
      bool const is_there = k < tables.home_count();
      tables.leaving[k] = k;
      tables.leaving_slots[k] =
          is_there ? plan.slot_of[plan.home_offsets[tables.rank] + k] : plan.most_samples;
    }
    if (k < plan.most_arrivals) {
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
        plan.home_offsets[tables.rank + 1] - plan.home_offsets[tables.rank] <= plan.most_home &&
        plan.arrival_offsets[tables.rank + 1] - plan.arrival_offsets[tables.rank] <=
            plan.most_arrivals;
    if (!fits) gpu::detail::raise(faults, gpu::fault::no_room);
  }
};

/// Where the samples for each rank, and from each, begin in the sorted lists.
struct find_plan_begins {
  plan_tables tables;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t peer) const {
    auto const& plan = tables.plan;
    tables.send_begin[peer] =
        position_of(tables.leaving_slots, plan.most_home, plan.arrival_offsets[peer]);
    tables.receive_begin[peer] =
        position_of(tables.coming_from, plan.most_arrivals, static_cast<std::uint32_t>(peer));
  }
};

/// The elements of 32 bits that the tables of a plan take, and those of 64 bits.
[[nodiscard]] inline std::size_t index_count(device_plan_view const& plan) {
  return 2 * (std::size_t{plan.most_home} + plan.most_arrivals + plan.ranks + 1);
}
[[nodiscard]] inline std::size_t position_count(device_plan_view const& plan) {
  return 2 * std::size_t{plan.most_home} + plan.most_arrivals + 1;
}

/// The tables in memory of which `take(n)` gives so many indices.
template <class Take>
[[nodiscard]] plan_tables take_plan_tables(Take const& take, std::uint64_t* positions,
                                           device_plan_view const& plan, std::uint32_t rank) {
  plan_tables tables{};
  tables.plan = plan;
  tables.rank = rank;
  tables.leaving = take(plan.most_home);
  tables.leaving_slots = take(plan.most_home);
  tables.coming = take(plan.most_arrivals);
  tables.coming_from = take(plan.most_arrivals);
  tables.send_begin = take(std::size_t{plan.ranks} + 1);
  tables.receive_begin = take(std::size_t{plan.ranks} + 1);
  tables.positions = positions;
  return tables;
}

/// Fills the tables. Two sorts by radix, whose keys are as short as the plan allows.
template <class Backend>
void make_plan_tables(Backend& b, plan_tables const& tables, gpu::fault* faults) {
  auto const& plan = tables.plan;
  std::uint32_t const most =
      plan.most_home > plan.most_arrivals ? plan.most_home : plan.most_arrivals;
  int const slot_bits = static_cast<int>(std::bit_width(plan.most_samples));
  int const rank_bits = static_cast<int>(std::bit_width(plan.ranks));
  b.for_each(std::size_t{most} + 1, write_plan_keys{tables, faults});
  b.sort_pairs(tables.leaving_slots, tables.leaving, plan.most_home, 0, slot_bits);
  b.sort_pairs(tables.coming_from, tables.coming, plan.most_arrivals, 0, rank_bits);
  b.for_each(std::size_t{plan.ranks} + 1, find_plan_begins{tables});
}

/// The bytes of each entry of the lists of positions.
struct wire_size {
  plan_tables tables;
  payload load;

  OMNIBAL_HOST_DEVICE std::uint64_t operator()(std::size_t i) const {
    std::size_t const home = tables.plan.most_home;
    std::size_t const arrivals = tables.plan.most_arrivals;
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

/// The elements of each arrival, for the offsets of payloads.
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

/// The begin of a slot: what all ranks must know of the sender.
struct slot_header {
  std::uint64_t largest_message;
  std::uint32_t faults;
  std::uint32_t unused;
};
inline constexpr std::uint64_t header_bytes = sizeof(slot_header);

/// Fills the report of this rank, and the headers of the slots or the sizes of the messages. One
/// block.
struct describe_exchange {
  plan_tables tables;
  payload load;
  exchange_report* report;
  /// Those of all fields so far.
  gpu::fault* faults;
  /// The slots to fill and their size, or none.
  std::byte* slots;
  std::uint64_t slot_bytes;
  /// For the host, or null: the bytes that go to each rank, those that come from each, those that
  /// are kept, and the faults of this rank, as a word that travels.
  std::uint64_t* words;

  template <class Block>
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
      report->sent_bytes = bytes(tables.sent(), 0, tables.plan.most_home);
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
      words[2 * ranks] = bytes(tables.kept(), 0, tables.plan.most_home);
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
  /// The caller's offsets of a payload contradict the sizes that all ranks know.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool wrong_size(std::size_t i) const {
    if (load.in_offsets == nullptr) return false;
    std::uint64_t const size = load.in_offsets[i + 1] - load.in_offsets[i];
    auto const sample = static_cast<std::uint32_t>(tables.plan.home_offsets[tables.rank] + i);
    return load.in_offsets[i + 1] < load.in_offsets[i] || load.in_offsets[i + 1] > load.in_room ||
           !load.is_sound(sample) || load.elements(sample) != size;
  }
};

/// What the headers that came say: after it the report has the faults of all ranks. One block.
struct read_slot_headers {
  std::byte const* slots;
  std::uint64_t slot_bytes;
  std::uint32_t rank;
  std::uint32_t ranks;
  exchange_report* report;

  template <class Block>
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

}  // namespace omnibal::inline v0::nccl::detail
