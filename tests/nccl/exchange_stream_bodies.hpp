// SPDX-License-Identifier: Apache-2.0
#pragma once

// What exchanges on a stream must do.

#include "stream_batches.hpp"

#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_bounded.cuh>
#include <omnibal/cuda/nccl/exchange_exact.cuh>
#include <omnibal/cuda/nccl/exchange_samples.hpp>
#include <omnibal/cuda/nccl/permuted.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace test {

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

struct both_forms {
  bool is_bounded;
  std::size_t slot_bytes;
};

template <class T, class Comm>
void check_rows(Comm& comm, gpu::execution<> const& exec, omnibal::exchange_plan const& plan,
                std::size_t length, both_forms const& form) {
  std::size_t const rank = comm.rank();
  auto const before = rows_of<T>(homes(plan, rank), length);
  auto const after = rows_of<T>(plan.arrivals(rank), length);
  auto const uploaded = nccl::device_plan<>::upload(exec, plan, rank);
  auto const in = gpu::upload(exec, before);
  gpu::device_array<T> out(exec, after.size());
  gpu::device_array<T> back(exec, before.size());
  gpu::device_array<nccl::exchange_report> const report(exec, 1);
  auto const exchange = [&](nccl::device_plan_view const& view, gpu::device_array<T> const& from,
                            gpu::device_array<T> const& to) {
    nccl::device_rows<T const> const rows_in{constant(from), length};
    nccl::device_rows<T> const rows_out{to, length};
    if (form.is_bounded) {
      nccl::exchange_bounded_options const options{.slot_bytes = form.slot_bytes};
      with_scratch(exec, nccl::exchange_bounded.scratch_bytes(view, options),
                   [&](auto const& given) {
                     nccl::exchange_bounded(given, comm, view, rows_in, options, rows_out, report);
                   });
    } else {
      std::vector<nccl::stream_field> const field{{rows_in, rows_out}};
      with_scratch(exec, nccl::exchange_exact.scratch_bytes(view, field), [&](auto const& given) {
        nccl::exchange_exact(given, comm, view, rows_in, rows_out, report);
      });
    }
    return to_host(exec, comm, report)[0];
  };
  auto const found = exchange(uploaded, in, out);
  require(found.faults == gpu::fault::none, "no fault");
  require(found.arrivals == plan.arrivals(rank).size(), "the number of arrivals");
  require(to_host(exec, comm, out) == after, "the rows of the plan");
  exchange(uploaded.view().inverse(), out, back);
  require(to_host(exec, comm, back) == before, "the rows again");

  // Straight, without a kernel.
  gpu::device_array<T> straight(exec, after.size());
  nccl::exchange_samples(exec, comm, plan, nccl::device_rows<T const>{constant(in), length},
                         nccl::device_rows<T>{straight, length});
  require(to_host(exec, comm, straight) == after, "the rows of the plan, straight");
}

template <class T, class Comm>
void check_payloads(Comm& comm, gpu::execution<> const& exec, omnibal::exchange_plan const& plan,
                    std::vector<std::int64_t> const& sizes, both_forms const& form) {
  std::size_t const rank = comm.rank();
  auto const home = homes(plan, rank);
  auto const before = payloads_of<T>(home, sizes);
  auto const after = payloads_of<T>(plan.arrivals(rank), sizes);
  auto const offsets_before = offsets_of(home, sizes);
  auto const offsets_after = offsets_of(plan.arrivals(rank), sizes);
  auto const uploaded = nccl::device_plan<>::upload(exec, plan, rank);
  auto const all_sizes = gpu::upload(exec, sizes);
  auto const in = gpu::upload(exec, before);
  auto const in_offsets = gpu::upload(exec, offsets_before);
  gpu::device_array<T> const out(exec, after.size());
  gpu::device_array<std::uint64_t> const out_offsets(exec, offsets_after.size());
  gpu::device_array<nccl::exchange_report> const report(exec, 1);
  nccl::device_payloads<T const> const from{constant(in), constant(in_offsets)};
  nccl::device_payloads<T> const to{out, out_offsets};
  if (form.is_bounded) {
    nccl::exchange_bounded_options const options{.slot_bytes = form.slot_bytes};
    std::size_t const bytes = nccl::exchange_bounded.scratch_bytes(uploaded, options);
    auto const exchange = [&](auto const& given) {
      nccl::exchange_bounded(given, comm, uploaded, constant(all_sizes), from, options, to, report);
    };
    require(error_of<std::length_error, omnibal::communication_error>(
                [&] { with_scratch(exec, bytes - 1, exchange); }) == seen::own,
            "a byte of scratch too little");
    with_scratch(exec, bytes, exchange);
  } else {
    std::vector<nccl::stream_field> const field{{constant(all_sizes), from, to}};
    with_scratch(exec, nccl::exchange_exact.scratch_bytes(uploaded, field), [&](auto const& given) {
      nccl::exchange_exact(given, comm, uploaded, constant(all_sizes), from, to, report);
    });
  }
  auto const found = to_host(exec, comm, report)[0];
  require(found.faults == gpu::fault::none, "no fault");
  require(found.elements == after.size(), "the number of elements");
  require(to_host(exec, comm, out) == after, "the payloads of the plan");
  require(to_host(exec, comm, out_offsets) == offsets_after, "where the payloads begin");

  gpu::device_array<std::int64_t> const moved(exec, sizes.size());
  nccl::permuted(exec, uploaded, constant(all_sizes), moved.span());
  require(to_host(exec, comm, moved) == plan.permuted(sizes), "the sizes after the exchange");
  gpu::device_array<T> const back(exec, before.size());
  gpu::device_array<std::uint64_t> const back_offsets(exec, offsets_before.size());
  nccl::exchange_exact(exec, comm, uploaded.view().inverse(), constant(moved),
                       nccl::device_payloads<T const>{constant(out), constant(out_offsets)},
                       nccl::device_payloads<T>{back, back_offsets}, report);
  require(to_host(exec, comm, back) == before, "the payloads again");

  gpu::device_array<T> straight(exec, after.size());
  auto const begins =
      nccl::exchange_samples(exec, comm, plan, sizes, constant(in), straight.span());
  require(begins == offsets_after, "where the payloads begin, straight");
  require(to_host(exec, comm, straight) == after, "the payloads of the plan, straight");
  auto const inverse = plan.inverse();
  gpu::device_array<T> again(exec, before.size());
  nccl::exchange_samples(exec, comm, inverse, plan.permuted(sizes), constant(straight),
                         again.span());
  require(to_host(exec, comm, again) == before, "the payloads again, straight");
  // Sizes in another order, or a buffer with room, are no silent mistake.
  gpu::device_array<T> const roomy(exec, after.size() + 1);
  require(error_of<std::invalid_argument, omnibal::communication_error>([&] {
            nccl::exchange_samples(exec, comm, inverse, plan.permuted(sizes), constant(roomy),
                                   again.span());
          }) == seen::own,
          "elements to send that the sizes do not have");
}

struct expected_fields {
  std::vector<std::int64_t> tokens;
  std::vector<float> rows;
  std::vector<std::uint8_t> pixels;
};

/// The same in messages of exact size.
template <class Comm>
void check_fields_exactly(Comm& comm, gpu::execution<> const& exec,
                          omnibal::exchange_plan const& plan,
                          std::vector<std::int64_t> const& sizes,
                          std::vector<std::int64_t> const& pixel_sizes,
                          expected_fields const& after) {
  std::size_t const rank = comm.rank();
  auto const home = homes(plan, rank);
  auto const uploaded = nccl::device_plan<>::upload(exec, plan, rank);
  auto const token_sizes = gpu::upload(exec, sizes);
  auto const all_pixel_sizes = gpu::upload(exec, pixel_sizes);
  auto const tokens_in = gpu::upload(exec, payloads_of<std::int64_t>(home, sizes));
  auto const tokens_at = gpu::upload(exec, offsets_of(home, sizes));
  auto const rows_in = gpu::upload(exec, rows_of<float>(home, 5));
  auto const pixels_in = gpu::upload(exec, payloads_of<std::uint8_t>(home, pixel_sizes));
  auto const pixels_at = gpu::upload(exec, offsets_of(home, pixel_sizes));
  gpu::device_array<std::int64_t> const tokens(exec, after.tokens.size());
  gpu::device_array<float> const rows(exec, after.rows.size());
  gpu::device_array<std::uint8_t> const pixels(exec, after.pixels.size());
  gpu::device_array<std::uint64_t> const token_begins(exec, plan.arrivals(rank).size() + 1);
  gpu::device_array<std::uint64_t> const pixel_begins(exec, plan.arrivals(rank).size() + 1);
  gpu::device_array<nccl::exchange_report> const reports(exec, 3);
  auto const move = [&](std::size_t missing) {
    gpu::device_span<std::uint8_t> const places(pixels.data(), pixels.size() - missing);
    std::vector<nccl::stream_field> const fields{
        {constant(token_sizes),
         nccl::device_payloads<std::int64_t const>{constant(tokens_in), constant(tokens_at)},
         nccl::device_payloads<std::int64_t>{tokens, token_begins}},
        {nccl::device_rows<float const>{constant(rows_in), 5}, nccl::device_rows<float>{rows, 5}},
        {constant(all_pixel_sizes),
         nccl::device_payloads<std::uint8_t const>{constant(pixels_in), constant(pixels_at)},
         nccl::device_payloads<std::uint8_t>{places, pixel_begins}}};
    with_scratch(
        exec, nccl::exchange_exact.scratch_bytes(uploaded, fields),
        [&](auto const& given) { nccl::exchange_exact(given, comm, uploaded, fields, reports); });
  };
  // Too little room for the last field on one rank is an error on all, and the next call succeeds.
  if (plan.elements_after(0, pixel_sizes) != 0) {
    auto const found =
        error_of<std::length_error, omnibal::communication_error>([&] { move(rank == 0 ? 1 : 0); });
    require(found == (rank == 0 ? seen::own : seen::remote), "no room for a field");
  }
  move(0);
  auto const found = to_host(exec, comm, reports);
  require(found[1].arrivals == plan.arrivals(rank).size(), "the arrivals of each field");
  require(found[2].elements == after.pixels.size(), "the elements of each field");
  require(to_host(exec, comm, tokens) == after.tokens, "the tokens in exact messages");
  require(to_host(exec, comm, rows) == after.rows, "the rows in exact messages");
  require(to_host(exec, comm, pixels) == after.pixels, "the pixels in exact messages");
  require(to_host(exec, comm, pixel_begins) == offsets_of(plan.arrivals(rank), pixel_sizes),
          "where the pixels begin, in exact messages");
}

/// Several fields at once are what each of them alone is.
template <class Comm>
void check_fields(Comm& comm, gpu::execution<> const& exec, omnibal::exchange_plan const& plan,
                  std::vector<std::int64_t> const& sizes) {
  std::size_t const rank = comm.rank();
  auto const home = homes(plan, rank);
  auto const arrivals = plan.arrivals(rank);
  // As pixels, of three values for each token.
  auto pixel_sizes = sizes;
  for (std::int64_t& size : pixel_sizes) size *= 3;
  auto const tokens = payloads_of<std::int64_t>(arrivals, sizes);
  auto const rows = rows_of<float>(arrivals, 5);
  auto const pixels = payloads_of<std::uint8_t>(arrivals, pixel_sizes);
  auto const tokens_in = gpu::upload(exec, payloads_of<std::int64_t>(home, sizes));
  auto const rows_in = gpu::upload(exec, rows_of<float>(home, 5));
  auto const pixels_in = gpu::upload(exec, payloads_of<std::uint8_t>(home, pixel_sizes));
  gpu::device_array<std::int64_t> const tokens_out(exec, tokens.size());
  gpu::device_array<float> const rows_out(exec, rows.size());
  gpu::device_array<std::uint8_t> const pixels_out(exec, pixels.size());
  std::vector<nccl::device_field> fields{
      {sizes, constant(tokens_in), tokens_out.span()},
      {nccl::device_rows<float const>{constant(rows_in), 5}, nccl::device_rows<float>{rows_out, 5}},
      {pixel_sizes, constant(pixels_in), pixels_out.span()}};
  auto const begins = nccl::exchange_samples(exec, comm, plan, fields);
  require(begins.size() == 3 && begins[1].empty(), "a result for each field");
  require(begins[0] == offsets_of(arrivals, sizes), "where the tokens begin");
  require(begins[2] == offsets_of(arrivals, pixel_sizes), "where the pixels begin");
  require(static_cast<std::int64_t>(begins[0].back()) == plan.elements_after(rank, sizes),
          "the elements that were asked for");
  require(to_host(exec, comm, tokens_out) == tokens, "the tokens of the plan");
  require(to_host(exec, comm, rows_out) == rows, "the rows of the plan, with others");
  require(to_host(exec, comm, pixels_out) == pixels, "the pixels of the plan");
  check_fields_exactly(comm, exec, plan, sizes, pixel_sizes, {tokens, rows, pixels});
  // One field that is refused on all ranks, after others that are not.
  pixel_sizes.push_back(1);
  fields[2] = {pixel_sizes, constant(pixels_in), pixels_out.span()};
  require(error_of<std::invalid_argument, omnibal::communication_error>([&] {
            static_cast<void>(nccl::exchange_samples(exec, comm, plan, fields));
          }) == seen::own,
          "sizes of another batch");
}

/// What a wide row or payload takes on the wire, in a slot that fits all.
inline std::size_t slot_for(std::size_t samples, std::size_t bytes) {
  return 16 + (samples * (bytes + 15) / 16 + samples + 1) * 16;
}

template <class Comm>
void exchange_on_stream(Comm& comm, std::uint64_t rounds) {
  own_stream const stream;
  auto const exec = gpu::on(stream);
  for (std::uint64_t round = 0; round != rounds; ++round) {
    batch const all = batch_of(round, comm.size());
    auto const plan = plan_of(round / 2, all);
    std::size_t const samples = all.samples();
    std::size_t most = 0;
    for (std::int64_t const size : all.sizes) most = std::max(most, static_cast<std::size_t>(size));
    both_forms const form{round % 2 == 0, slot_for(samples, std::max<std::size_t>(4 * most, 8192))};
    switch (round % 5) {
      case 0: check_rows<float>(comm, exec, plan, 4, form); break;
      case 1: check_rows<std::uint8_t>(comm, exec, plan, 3, form); break;
      case 2: check_rows<std::uint16_t>(comm, exec, plan, 515, form); break;
      case 3: check_rows<std::uint64_t>(comm, exec, plan, 1, form); break;
      default: check_rows<std::uint32_t>(comm, exec, plan, 1001, form); break;
    }
    if (round % 4 < 2) {
      check_payloads<std::uint32_t>(comm, exec, plan, all.sizes, form);
    } else {
      check_payloads<std::uint8_t>(comm, exec, plan, all.sizes, form);
    }
    check_fields(comm, exec, plan, all.sizes);
  }
}

/// A slot that is one step too small is reported on all ranks, with the one that is enough.
template <class Comm>
void report_overflow(Comm& comm) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const exec = gpu::on(stream);
  // All samples of rank 0 go to the last rank.
  std::vector<std::uint32_t> offsets(ranks + 1, 5);
  offsets[0] = 0;
  auto const to_last = [](auto const& costs, std::size_t parts, auto const&) {
    omnibal::grouping result;
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::uint32_t i = 0; p + 1 == parts && i != costs.size(); ++i) result.push(i);
      result.close();
    }
    return result;
  };
  std::vector<std::int64_t> const ones(5, 1);
  std::vector<std::int64_t> const nothing(5, 0);
  auto const plan = omnibal::make_plan(offsets, ones, nothing, {}, to_last);
  auto const uploaded = nccl::device_plan<>::upload(exec, plan, rank);
  bool const is_moving = plan.arrivals(0).empty();
  constexpr std::size_t length = 7;
  auto const before = rows_of<std::uint64_t>(homes(plan, rank), length);
  auto const after = rows_of<std::uint64_t>(plan.arrivals(rank), length);
  auto const in = gpu::upload(exec, before);
  gpu::device_array<std::uint64_t> const out(exec, after.size());
  gpu::device_array<nccl::exchange_report> const report(exec, 1);
  nccl::device_rows<std::uint64_t> const from{in, length};
  nccl::device_rows<std::uint64_t> const to{out, length};
  // 5 * 56 bytes and the header are 296, rounded up to words of 16.
  constexpr std::size_t enough = 304;
  nccl::exchange_bounded(exec, comm, uploaded, from, {.slot_bytes = enough - 16}, to, report);
  auto const small = to_host(exec, comm, report)[0];
  if (is_moving) {
    require(small.faults == gpu::fault::no_room, "a slot that is too small");
    require(small.largest_message == enough, "the slot that is enough");
  }
  nccl::exchange_bounded(exec, comm, uploaded, from, {.slot_bytes = enough}, to, report);
  auto const found = to_host(exec, comm, report)[0];
  require(found.faults == gpu::fault::none, "a slot that is enough");
  require(to_host(exec, comm, out) == after, "the rows after an overflow");
  if (is_moving) {
    require(found.sent_bytes == (rank == 0 ? 5 * length * 8 : 0), "the bytes that were sent");
    double const factor = nccl::padding_factor(found, enough, ranks);
    require(rank != 0 || factor == static_cast<double>(304 * (ranks - 1)) / 280.0, "the padding");
  }

  // An output that is too small on one rank.
  bool const is_last = rank + 1 == ranks;
  nccl::device_rows<std::uint64_t> const less{
      {out.data(), is_last ? after.size() - length : after.size()}, length};
  nccl::exchange_bounded(exec, comm, uploaded, from, {.slot_bytes = enough}, less, report);
  require(to_host(exec, comm, report)[0].faults == gpu::fault::no_room, "too small an output");
  seen const wanted = is_last ? seen::own : seen::remote;
  auto const caught = error_of<std::length_error, omnibal::communication_error>(
      [&] { nccl::exchange_exact(exec, comm, uploaded, from, less, report); });
  require(caught == wanted, "too small an output is an error on all ranks");
  nccl::exchange_exact(exec, comm, uploaded, from, to, report);
  require(to_host(exec, comm, out) == after, "the rows after an error");

  // Offsets that contradict the sizes.
  auto const sizes = gpu::upload(exec, std::vector<std::int64_t>(5, 2));
  std::vector<std::uint64_t> wrong{0};
  for (std::size_t i = 0; i != plan.home_count(rank); ++i) wrong.push_back(wrong.back() + 3);
  auto const in_offsets = gpu::upload(exec, wrong);
  gpu::device_array<std::uint64_t> const out_offsets(exec, plan.arrivals(rank).size() + 1);
  nccl::exchange_bounded(
      exec, comm, uploaded, constant(sizes),
      nccl::device_payloads<std::uint64_t const>{constant(in), constant(in_offsets)},
      {.slot_bytes = 1024}, nccl::device_payloads<std::uint64_t>{out, out_offsets}, report);
  require(to_host(exec, comm, report)[0].faults == gpu::fault::invalid_amount,
          "offsets that contradict the sizes");
}

}  // namespace test
