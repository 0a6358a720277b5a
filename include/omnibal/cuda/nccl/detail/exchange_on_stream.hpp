#pragma once

/// \file
/// Exchanges on a stream, for any backend.

#include <omnibal/cuda/nccl/detail/exchange_steps.hpp>
#include <omnibal/cuda/nccl/detail/row_kernels.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::nccl::detail {

/// The tables of a plan and what lies where on the wire.
struct exchange_state {
  plan_tables tables;
  wire_positions positions;
};

/// Takes the memory of a state: `take_indices(n)` and `take_positions(n)` give arrays.
template <class TakeIndices, class TakePositions>
[[nodiscard]] exchange_state take_state(TakeIndices const& take_indices,
                                        TakePositions const& take_positions,
                                        device_plan_view const& plan, std::uint32_t rank) {
  exchange_state state{take_plan_tables(take_indices, plan, rank),
                       {nullptr, plan.most_home, plan.most_arrivals}};
  state.positions.all = take_positions(state.positions.size());
  return state;
}

/// The elements of 32 bits that the tables of a plan take.
[[nodiscard]] inline std::size_t index_count(device_plan_view const& plan) {
  return 2 * (std::size_t{plan.most_home} + plan.most_arrivals + plan.ranks + 1);
}

/// Finds out what goes where. The faults of the report must be set before.
template <class Backend>
void find_routes(Backend& b, exchange_state const& state, payload const& load,
                 exchange_report* report, std::byte* slots, std::uint64_t slot_bytes,
                 message_sizes const& sizes) {
  auto const& [tables, positions] = state;
  gpu::fault* const faults = &report->faults;
  make_plan_tables(b, tables, faults);
  b.exclusive_sum_of(positions.size(), wire_size{tables, load}, positions.all);
  if (load.out_offsets != nullptr) {
    b.exclusive_sum_of(std::size_t{tables.plan.most_arrivals} + 1,
                       arrival_elements{tables, load, faults}, load.out_offsets);
  }
  b.template for_each_block<exchange_tuning::threads>(
      1, 0, describe_exchange{tables, load, positions, report, slots, slot_bytes, sizes});
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
  auto const take_indices = [&](std::size_t n) { return b.template scratch<std::uint32_t>(n); };
  auto const take_positions = [&](std::size_t n) { return b.template scratch<std::uint64_t>(n); };
  exchange_state const state = take_state(take_indices, take_positions, plan, wire.rank());
  auto const& [tables, positions] = state;
  auto* const sent = b.template scratch<std::byte>(slot_bytes * ranks);
  auto* const received = b.template scratch<std::byte>(slot_bytes * ranks);

  find_routes(b, state, load, report, sent, slot_bytes, {});
  wire_layout layout{sent, slot_bytes, tile_count(slot_bytes - header_bytes)};
  b.template for_each_block<exchange_tuning::threads>(
      layout.blocks(ranks), 0, copy_rows<row_step::pack>{tables, load, positions, layout, report});
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
      layout.blocks(ranks), 0,
      copy_rows<row_step::unpack>{tables, load, positions, layout, report});
  layout = {nullptr, 0, tile_count(most_kept(plan, load))};
  b.template for_each_block<exchange_tuning::threads>(
      layout.tiles, 0, copy_rows<row_step::keep>{tables, load, positions, layout, report});
}

/// The first half of the exact form: what the host must know comes to `sizes`, with the faults of
/// all ranks in `all_faults`.
template <class Backend, class Wire>
void find_messages(Backend& b, Wire const& wire, exchange_state const& state, payload const& load,
                   exchange_report* report, message_sizes const& sizes, std::uint64_t* all_faults) {
  find_routes(b, state, load, report, nullptr, 0, sizes);
  wire.all_gather(sizes.faults, all_faults, sizeof(std::uint64_t));
}

/// What the host knows of the messages of a rank, in bytes.
struct known_messages {
  std::span<std::uint64_t const> sent;
  std::span<std::uint64_t const> received;
  std::uint64_t kept = 0;
};

/// The second half: messages of exact sizes.
template <class Backend, class Wire>
void exchange_messages(Backend& b, Wire const& wire, exchange_state const& state,
                       payload const& load, known_messages const& messages,
                       exchange_report const* report) {
  auto const& [tables, positions] = state;
  auto const sum = [](std::span<std::uint64_t const> bytes) {
    std::uint64_t result = 0;
    for (std::uint64_t const message : bytes) result += message;
    return result;
  };
  std::uint64_t const sent_bytes = sum(messages.sent);
  std::uint64_t const received_bytes = sum(messages.received);
  auto* const sent = b.template scratch<std::byte>(sent_bytes);
  auto* const received = b.template scratch<std::byte>(received_bytes);
  wire_layout layout{sent, 0, tile_count(sent_bytes)};
  b.template for_each_block<exchange_tuning::threads>(
      layout.tiles, 0, copy_rows<row_step::pack>{tables, load, positions, layout, report});
  wire.exchange([&](auto const& send, auto const& receive) {
    std::byte const* from = sent;
    std::byte* to = received;
    for (std::size_t peer = 0; peer != messages.sent.size(); ++peer) {
      send(peer, from, messages.sent[peer]);
      receive(peer, to, messages.received[peer]);
      from += messages.sent[peer];
      to += messages.received[peer];
    }
  });
  layout = {nullptr, 0, tile_count(messages.kept)};
  b.template for_each_block<exchange_tuning::threads>(
      layout.tiles, 0, copy_rows<row_step::keep>{tables, load, positions, layout, report});
  layout = {received, 0, tile_count(received_bytes)};
  b.template for_each_block<exchange_tuning::threads>(
      layout.tiles, 0, copy_rows<row_step::unpack>{tables, load, positions, layout, report});
}

}  // namespace omnibal::inline v0::nccl::detail
