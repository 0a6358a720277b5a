#pragma once

// What the calls on a stream must do. The same bodies run over the stand-in, by threads, and over
// real NCCL, by processes with a device. `Calls` has the calls of cuda/nccl/*.cuh.

#include "rank_checks.hpp"
#include "samples.hpp"

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>
#include <omnibal/cuda/nccl/exchange_samples.hpp>
#include <omnibal/cuda/nccl/gathered_lengths.hpp>
#include <omnibal/cuda/nccl/post_balance_options.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace test {

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

/// A stream of our own.
class own_stream {
 public:
  own_stream() { gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  own_stream(own_stream const&) = delete;
  own_stream& operator=(own_stream const&) = delete;
  ~own_stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

template <class T>
gpu::device_span<T const> constant(gpu::device_array<T> const& array) {
  return array;
}

/// To the host, waiting as a trainer should.
template <class Comm, class T>
std::vector<std::remove_const_t<T>> to_host(gpu::execution<> const& exec, Comm& comm,
                                            gpu::device_span<T> values) {
  comm.wait(exec.stream());
  return gpu::download(exec, values);
}
template <class Comm, class T>
std::vector<T> to_host(gpu::execution<> const& exec, Comm& comm,
                       gpu::device_array<T> const& values) {
  return to_host(exec, comm, values.span());
}

/// The global batch of a round, which every rank can make.
struct batch {
  std::vector<std::uint32_t> offsets;
  std::vector<std::int64_t> costs;
  /// The elements of each sample.
  std::vector<std::int64_t> sizes;

  [[nodiscard]] std::size_t samples() const { return costs.size(); }
  [[nodiscard]] std::size_t count(std::size_t rank) const {
    return offsets[rank + 1] - offsets[rank];
  }
  [[nodiscard]] std::size_t most() const {
    std::size_t result = 0;
    for (std::size_t rank = 0; rank + 1 < offsets.size(); ++rank) {
      result = std::max(result, count(rank));
    }
    return result;
  }
  [[nodiscard]] std::span<std::int64_t const> of(std::size_t rank,
                                                 std::vector<std::int64_t> const& all) const {
    return std::span(all).subspan(offsets[rank], count(rank));
  }
};

inline batch batch_of(std::uint64_t round, std::size_t ranks) {
  random_amounts random(round * 977 + ranks);
  batch result;
  result.offsets.push_back(0);
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    std::int64_t count = random.between(0, 12);
    if (round % 7 == 1) count = 0;
    if (round % 7 == 2) count = rank + 1 == ranks ? 30 : 0;
    if (round % 7 == 3) count = rank % 2 == 0 ? 0 : count;
    if (round % 11 == 4) count = 1;
    result.offsets.push_back(result.offsets.back() + static_cast<std::uint32_t>(count));
  }
  for (std::size_t i = 0; i != result.offsets.back(); ++i) {
    result.costs.push_back(round % 13 == 5 ? 1 : random.heavy_tail(1'000'000));
    std::int64_t size = random.heavy_tail(round % 50 == 49 ? 20'000 : 100);
    if (round % 9 == 8) size = 0;
    result.sizes.push_back(size);
  }
  return result;
}

/// The i-th element of a sample.
template <class T>
T element_of(std::size_t sample, std::size_t i) {
  return static_cast<T>(sample * 7919 + i * 31 + 1);
}

template <class T>
std::vector<T> rows_of(std::span<std::uint32_t const> samples, std::size_t length) {
  std::vector<T> result;
  for (std::uint32_t const sample : samples) {
    for (std::size_t i = 0; i != length; ++i) result.push_back(element_of<T>(sample, i));
  }
  return result;
}

template <class T>
std::vector<T> payloads_of(std::span<std::uint32_t const> samples,
                           std::vector<std::int64_t> const& sizes) {
  std::vector<T> result;
  for (std::uint32_t const sample : samples) {
    for (std::size_t i = 0; i != static_cast<std::size_t>(sizes[sample]); ++i) {
      result.push_back(element_of<T>(sample, i));
    }
  }
  return result;
}

inline std::vector<std::uint64_t> offsets_of(std::span<std::uint32_t const> samples,
                                             std::vector<std::int64_t> const& sizes) {
  std::vector<std::uint64_t> result{0};
  for (std::uint32_t const sample : samples) {
    result.push_back(result.back() + static_cast<std::uint64_t>(sizes[sample]));
  }
  return result;
}

/// The indices of the samples of a rank before an exchange.
inline std::vector<std::uint32_t> homes(omnibal::exchange_plan const& plan, std::size_t rank) {
  std::vector<std::uint32_t> result(plan.home_count(rank));
  std::iota(result.begin(), result.end(), plan.home_offsets()[rank]);
  return result;
}

/// A plan as rounds go: few bytes, even loads with all order changed, or nonsense that permutes.
inline omnibal::exchange_plan plan_of(std::uint64_t round, batch const& all) {
  auto const reversed = [](auto const& costs, std::size_t parts, auto const& cost) {
    auto const even = omnibal::lpt(costs, parts, cost);
    omnibal::grouping result;
    for (std::size_t p = parts; p-- != 0;) {
      for (std::size_t k = even[p].size(); k-- != 0;) result.push(even[p][k]);
      result.close();
    }
    return result;
  };
  auto const to_last = [](auto const& costs, std::size_t parts, auto const&) {
    omnibal::grouping result;
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::size_t i = costs.size(); p + 1 == parts && i-- != 0;) {
        result.push(static_cast<std::uint32_t>(i));
      }
      result.close();
    }
    return result;
  };
  if (round % 3 == 0) return omnibal::make_plan(all.offsets, all.costs, all.sizes);
  if (round % 3 == 1) return omnibal::make_plan(all.offsets, all.costs, all.sizes, {}, reversed);
  return omnibal::make_plan(all.offsets, all.costs, all.sizes, {}, to_last);
}

/// Lengths of every rank, with one collective and with two, several of a sample, and counts that
/// only the device knows.
template <class Calls, class Comm>
void gather_on_stream(Calls const& calls, Comm& comm, std::uint64_t rounds) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const exec = gpu::on(stream);
  for (std::uint64_t round = 0; round != rounds; ++round) {
    batch const all = batch_of(round, ranks);
    auto const own = all.of(rank, all.costs);
    auto const local = gpu::upload(exec, own);
    gpu::device_array<std::uint32_t> offsets(exec, ranks + 1);
    gpu::device_array<std::int64_t> lengths(exec, all.samples());
    auto const faults = gpu::upload(exec, std::vector(1, gpu::fault::none));
    nccl::gathered_lengths<> const out{offsets, lengths, faults};
    std::size_t const most = all.most() + round % 3;
    switch (round % 4) {
      case 0:
        calls.gather_lengths(exec, comm, nccl::local_lengths<>(constant(local)), out,
                             {.most_samples = most});
        break;
      case 1: calls.gather_lengths(exec, comm, nccl::local_lengths<>(constant(local)), out); break;
      default: {
        // More memory than lengths.
        std::vector<std::int64_t> padded(own.begin(), own.end());
        padded.resize(most + 3, -1);
        auto const values = gpu::upload(exec, padded);
        auto const count =
            gpu::upload(exec, std::vector(1, static_cast<std::uint32_t>(own.size())));
        calls.gather_lengths(exec, comm, nccl::local_lengths<>(constant(values), constant(count)),
                             out, {.most_samples = most});
        comm.wait(stream);
      }
    }
    require(to_host(exec, comm, offsets) == all.offsets, "where ranks begin");
    require(to_host(exec, comm, lengths) == all.costs, "the lengths of all ranks");
    require(to_host(exec, comm, faults)[0] == gpu::fault::none, "no fault");

    std::vector<omnibal::resources<2>> both;
    for (std::size_t i = 0; i != all.samples(); ++i) both.push_back({all.costs[i], all.sizes[i]});
    auto const pairs =
        gpu::upload(exec, std::span(both).subspan(all.offsets[rank], all.count(rank)));
    gpu::device_array<omnibal::resources<2>> gathered(exec, all.samples() + 1);
    calls.gather_lengths(exec, comm, nccl::local_lengths<omnibal::resources<2>>(constant(pairs)),
                         nccl::gathered_lengths<omnibal::resources<2>>{offsets, gathered, faults},
                         {.most_samples = most});
    auto found = to_host(exec, comm, gathered);
    found.pop_back();
    require(found == both, "two lengths of each sample");
  }
}

/// A wrong value on one rank is a fault on all.
template <class Calls, class Comm>
void agree_on_faults(Calls const& calls, Comm& comm) {
  std::size_t const ranks = comm.size();
  bool const is_last = comm.rank() + 1 == ranks;
  own_stream const stream;
  auto const exec = gpu::on(stream);
  auto const fault_of = [&](std::vector<std::int64_t> const& own, std::size_t room,
                            gpu::fault before) {
    auto const local = gpu::upload(exec, own);
    gpu::device_array<std::uint32_t> const offsets(exec, ranks + 1);
    gpu::device_array<std::int64_t> const lengths(exec, room);
    auto const faults = gpu::upload(exec, std::vector(1, before));
    calls.gather_lengths(exec, comm, nccl::local_lengths<>(constant(local)),
                         nccl::gathered_lengths<>{offsets, lengths, faults}, {.most_samples = 3});
    return to_host(exec, comm, faults)[0];
  };
  using gpu::fault;
  std::size_t const room = 3 * ranks;
  require(fault_of({1, 2}, room, fault::none) == fault::none, "no fault");
  require(fault_of({1, is_last ? -2 : 2}, room, fault::none) == fault::invalid_amount,
          "a negative length");
  require(
      fault_of(std::vector<std::int64_t>(is_last ? 4 : 3, 1), room, fault::none) == fault::no_room,
      "too many samples");
  require(fault_of({1, 2, 3}, room - 1, fault::none) == fault::no_room, "too little room");
  require(fault_of({1}, room, is_last ? fault::overflow : fault::none) == fault::overflow,
          "a fault from before");
}

struct both_forms {
  bool is_bounded;
  std::size_t slot_bytes;
};

template <class Calls, class Comm, class T>
void check_rows(Calls const& calls, Comm& comm, gpu::execution<> const& exec,
                omnibal::exchange_plan const& plan, std::size_t length, both_forms const& form) {
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
      calls.exchange_bounded(exec, comm, view, rows_in, rows_out, form.slot_bytes, report);
    } else {
      calls.exchange_exact(exec, comm, view, rows_in, rows_out, report);
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

template <class Calls, class Comm, class T>
void check_payloads(Calls const& calls, Comm& comm, gpu::execution<> const& exec,
                    omnibal::exchange_plan const& plan, std::vector<std::int64_t> const& sizes,
                    both_forms const& form) {
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
    calls.exchange_bounded(exec, comm, uploaded, constant(all_sizes), from, to, form.slot_bytes,
                           report);
  } else {
    calls.exchange_exact(exec, comm, uploaded, constant(all_sizes), from, to, report);
  }
  auto const found = to_host(exec, comm, report)[0];
  require(found.faults == gpu::fault::none, "no fault");
  require(found.elements == after.size(), "the number of elements");
  require(to_host(exec, comm, out) == after, "the payloads of the plan");
  require(to_host(exec, comm, out_offsets) == offsets_after, "where the payloads begin");

  gpu::device_array<T> straight(exec, after.size());
  auto const begins =
      nccl::exchange_samples(exec, comm, plan, sizes, constant(in), straight.span());
  require(begins == offsets_after, "where the payloads begin, straight");
  require(to_host(exec, comm, straight) == after, "the payloads of the plan, straight");
}

/// What a wide row or payload takes on the wire, in a slot that fits all.
inline std::size_t slot_for(std::size_t samples, std::size_t bytes) {
  return 16 + (samples * (bytes + 15) / 16 + samples + 1) * 16;
}

template <class Calls, class Comm>
void exchange_on_stream(Calls const& calls, Comm& comm, std::uint64_t rounds) {
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
      case 0: check_rows<Calls, Comm, float>(calls, comm, exec, plan, 4, form); break;
      case 1: check_rows<Calls, Comm, std::uint8_t>(calls, comm, exec, plan, 3, form); break;
      case 2: check_rows<Calls, Comm, std::uint16_t>(calls, comm, exec, plan, 515, form); break;
      case 3: check_rows<Calls, Comm, std::uint64_t>(calls, comm, exec, plan, 1, form); break;
      default: check_rows<Calls, Comm, std::uint32_t>(calls, comm, exec, plan, 1001, form); break;
    }
    if (round % 4 < 2) {
      check_payloads<Calls, Comm, std::uint32_t>(calls, comm, exec, plan, all.sizes, form);
    } else {
      check_payloads<Calls, Comm, std::uint8_t>(calls, comm, exec, plan, all.sizes, form);
    }
  }
}

/// A slot that is one step too small is reported on all ranks, with the one that is enough.
template <class Calls, class Comm>
void report_overflow(Calls const& calls, Comm& comm) {
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
  nccl::device_rows<std::uint64_t const> const from{constant(in), length};
  nccl::device_rows<std::uint64_t> const to{out, length};
  // 5 * 56 bytes and the header are 296, rounded up to words of 16.
  constexpr std::size_t enough = 304;
  calls.exchange_bounded(exec, comm, uploaded, from, to, enough - 16, report);
  auto const small = to_host(exec, comm, report)[0];
  if (is_moving) {
    require(small.faults == gpu::fault::no_room, "a slot that is too small");
    require(small.largest_message == enough, "the slot that is enough");
  }
  calls.exchange_bounded(exec, comm, uploaded, from, to, enough, report);
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
  calls.exchange_bounded(exec, comm, uploaded, from, less, enough, report);
  require(to_host(exec, comm, report)[0].faults == gpu::fault::no_room, "too small an output");
  seen const wanted = is_last ? seen::own : seen::remote;
  auto const caught = error_of<std::length_error, omnibal::communication_error>(
      [&] { calls.exchange_exact(exec, comm, uploaded, from, less, report); });
  require(caught == wanted, "too small an output is an error on all ranks");
  calls.exchange_exact(exec, comm, uploaded, from, to, report);
  require(to_host(exec, comm, out) == after, "the rows after an error");

  // Offsets that contradict the sizes.
  auto const sizes = gpu::upload(exec, std::vector<std::int64_t>(5, 2));
  std::vector<std::uint64_t> wrong{0};
  for (std::size_t i = 0; i != plan.home_count(rank); ++i) wrong.push_back(wrong.back() + 3);
  auto const in_offsets = gpu::upload(exec, wrong);
  gpu::device_array<std::uint64_t> const out_offsets(exec, plan.arrivals(rank).size() + 1);
  calls.exchange_bounded(
      exec, comm, uploaded, constant(sizes),
      nccl::device_payloads<std::uint64_t const>{constant(in), constant(in_offsets)},
      nccl::device_payloads<std::uint64_t>{out, out_offsets}, std::size_t{1024}, report);
  require(to_host(exec, comm, report)[0].faults == gpu::fault::invalid_amount,
          "offsets that contradict the sizes");
}

/// The plan that a post-balance must make: part r of `lpt` for rank r.
inline std::vector<std::vector<std::uint32_t>> wanted_parts(batch const& all, std::size_t ranks) {
  auto const parts = omnibal::lpt(all.costs, ranks);
  std::vector<std::vector<std::uint32_t>> result;
  for (std::size_t r = 0; r != ranks; ++r) result.emplace_back(parts[r].begin(), parts[r].end());
  return result;
}

template <class Calls, class Comm>
void post_balance_on_stream(Calls const& calls, Comm& comm, std::uint64_t rounds) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const exec = gpu::on(stream);
  constexpr std::size_t length = 6;
  for (std::uint64_t round = 0; round != rounds; ++round) {
    batch const all = batch_of(round, ranks);
    auto const parts = wanted_parts(all, ranks);
    std::vector<std::uint32_t> home(all.count(rank));
    std::iota(home.begin(), home.end(), all.offsets[rank]);
    auto const own_costs = gpu::upload(exec, all.of(rank, all.costs));
    nccl::device_plan<> const plan(exec, {.ranks = ranks, .most_samples = 30});
    gpu::device_array<nccl::exchange_report> const report(exec, 1);
    nccl::post_balance_options options;
    if (round % 2 == 0) options.slot_bytes = slot_for(all.samples(), 80'004);

    auto const before = rows_of<float>(home, length);
    auto const after = rows_of<float>(parts[rank], length);
    auto const in = gpu::upload(exec, before);
    gpu::device_array<float> const out(exec, after.size() + length);
    calls.post_balance(exec, comm, constant(own_costs),
                       nccl::device_rows<float const>{constant(in), length}, plan,
                       nccl::device_rows<float>{out, length}, report, options);
    auto const found = to_host(exec, comm, report)[0];
    require(found.faults == gpu::fault::none, "no fault");
    require(found.arrivals == parts[rank].size(), "the number of arrivals");
    auto arrived = to_host(exec, comm, out);
    arrived.resize(after.size());
    require(arrived == after, "the rows of the part");

    gpu::device_array<float> const back(exec, before.size());
    calls.exchange_exact(exec, comm, plan.view().inverse(),
                         nccl::device_rows<float const>{constant(out), length},
                         nccl::device_rows<float>{back, length}, report);
    require(to_host(exec, comm, back) == before, "the rows again");

    auto const texts = payloads_of<std::uint16_t>(home, all.sizes);
    auto const text_offsets = gpu::upload(exec, offsets_of(home, all.sizes));
    auto const texts_after = payloads_of<std::uint16_t>(parts[rank], all.sizes);
    auto const texts_in = gpu::upload(exec, texts);
    gpu::device_array<std::uint16_t> const texts_out(exec, texts_after.size());
    gpu::device_array<std::uint64_t> const offsets_out(exec, 30 * ranks + 1);
    calls.post_balance(
        exec, comm, constant(own_costs),
        nccl::device_payloads<std::uint16_t const>{constant(texts_in), constant(text_offsets)},
        plan, nccl::device_payloads<std::uint16_t>{texts_out, offsets_out}, report, options);
    require(to_host(exec, comm, report)[0].faults == gpu::fault::none, "no fault of payloads");
    require(to_host(exec, comm, texts_out) == texts_after, "the payloads of the part");
    auto begins = to_host(exec, comm, offsets_out);
    begins.resize(parts[rank].size() + 1);
    require(begins == offsets_of(parts[rank], all.sizes), "where the payloads begin");
  }
}

/// The bounded form in a graph that is launched again with other samples.
template <class Calls, class Comm>
void capture_post_balance(Calls const& calls, Comm& comm) {
  std::size_t const rank = comm.rank();
  std::size_t const ranks = comm.size();
  own_stream const stream;
  auto const pool = gpu::on(stream);
  constexpr std::size_t most = 30;
  constexpr std::size_t length = 5;
  nccl::device_plan<> const arrays(pool, {.ranks = ranks, .most_samples = most});
  gpu::device_array<std::int64_t> const costs(pool, most);
  gpu::device_array<std::uint32_t> const count(pool, 1);
  gpu::device_array<float> const in(pool, most * length);
  gpu::device_array<float> const out(pool, most * ranks * length);
  gpu::device_array<nccl::exchange_report> const report(pool, 1);
  gpu::device_array<std::byte> const memory(pool, std::size_t{32} << 20);
  auto const fill = [&](std::uint64_t round) {
    batch const all = batch_of(round, ranks);
    std::vector<std::uint32_t> home(all.count(rank));
    std::iota(home.begin(), home.end(), all.offsets[rank]);
    auto const own = all.of(rank, all.costs);
    auto const rows = rows_of<float>(home, length);
    auto const number = static_cast<std::uint32_t>(own.size());
    auto const copy = [&](void* to, void const* from, std::size_t bytes) {
      if (bytes == 0) return;
      gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    };
    copy(costs.data(), own.data(), own.size_bytes());
    copy(count.data(), &number, sizeof(number));
    copy(in.data(), rows.data(), rows.size() * sizeof(float));
    comm.wait(stream);
    return rows_of<float>(wanted_parts(all, ranks)[rank], length);
  };
  auto const call = [&] {
    gpu::given_scratch scratch(memory);
    auto const exec = gpu::on(stream, scratch);
    calls.post_balance(exec, comm, nccl::local_lengths<>(constant(costs), constant(count)),
                       nccl::device_rows<float const>{constant(in), length}, arrays,
                       nccl::device_rows<float>{out, length}, report,
                       {.slot_bytes = slot_for(most, length * 4)});
  };
  auto const check = [&](std::vector<float> const& wanted) {
    require(to_host(pool, comm, report)[0].faults == gpu::fault::none, "no fault in a graph");
    auto found = to_host(pool, comm, out);
    found.resize(wanted.size());
    require(found == wanted, "the rows of a graph");
  };
  // Once without, in which NCCL connects the ranks.
  auto const first = fill(0);
  call();
  check(first);

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  call();
  gpu::check(cudaStreamEndCapture(stream, &graph));
  gpu::check(cudaGraphInstantiate(&ready, graph, 0));
  for (std::uint64_t round = 1; round != 12; ++round) {
    auto const wanted = fill(round);
    gpu::check(cudaGraphLaunch(ready, stream));
    check(wanted);
  }
  gpu::check(cudaGraphExecDestroy(ready));
  gpu::check(cudaGraphDestroy(graph));
}

}  // namespace test
