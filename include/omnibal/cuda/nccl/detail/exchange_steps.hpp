#pragma once

/// \file
/// The steps of an exchange on a device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/plan_tables.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl::detail {

/// Positions on the wire, all in one array by one scan: of what is sent, of what is received, and
/// of what is kept, as if it were sent. Each list has an end.
struct wire_positions {
  std::uint64_t* all;
  std::uint32_t most_home;
  std::uint32_t most_arrivals;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t size() const {
    return 2 * std::size_t{most_home} + most_arrivals + 1;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* sent() const { return all; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* received() const {
    return all + most_home;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t const* kept() const {
    return all + most_home + most_arrivals;
  }
};

/// The bytes of each entry of these lists.
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

/// What goes to each rank and comes from each, in bytes, for the host.
struct message_sizes {
  /// For each rank; null where nobody asks.
  std::uint64_t* sent = nullptr;
  std::uint64_t* received = nullptr;
  std::uint64_t* kept = nullptr;
  /// The faults of this rank, as a word that travels.
  std::uint64_t* faults = nullptr;
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
  wire_positions at;
  exchange_report* report;
  /// The slots to fill and their size, or none.
  std::byte* slots;
  std::uint64_t slot_bytes;
  message_sizes sizes;

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
      if (!fits) gpu::detail::raise(&report->faults, gpu::fault::no_room);
      if (wrong != 0) gpu::detail::raise(&report->faults, gpu::fault::invalid_amount);
      report->arrivals = arrivals;
      report->elements = elements;
      report->sent_bytes = at.sent()[at.most_home] - at.sent()[0];
      report->largest_message = message;
    });
    auto const faults = static_cast<std::uint32_t>(report->faults);
    block.for_each(ranks, [&](std::size_t peer) {
      if (slots != nullptr) {
        *reinterpret_cast<slot_header*>(slots + peer * slot_bytes) = {message, faults, 0};
      }
      if (sizes.sent == nullptr) return;
      sizes.sent[peer] = sent_to(peer);
      sizes.received[peer] =
          at.received()[tables.receive_begin[peer + 1]] - at.received()[tables.receive_begin[peer]];
      if (peer != 0) return;
      *sizes.kept = at.kept()[at.most_home] - at.kept()[0];
      *sizes.faults = faults;
    });
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t sent_to(std::size_t peer) const {
    return at.sent()[tables.send_begin[peer + 1]] - at.sent()[tables.send_begin[peer]];
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
