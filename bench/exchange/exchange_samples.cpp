// SPDX-License-Identifier: Apache-2.0
/// \file
/// Two ranks that are threads exchange bytes. The yardstick is both copying as many bytes at once
/// with `std::memcpy`.

#include "balancing.hpp"
#include "compare.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/rng/permutation.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using omnibal::thread_communicator;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The seconds from when both ranks begin until both are done.
template <class Call>
double seconds_of(thread_communicator& comm, Call&& call) {
  static_cast<void>(omnibal::all_gather(comm, 0));
  double const begin = seconds_now();
  call();
  static_cast<void>(omnibal::all_gather(comm, 0));
  return seconds_now() - begin;
}

/// `make_call(comm)` gives what a rank does; `ratio` is its time over that of the copies.
template <class MakeCall>
void compare_with_copies(benchmark::State& state, std::size_t bytes, MakeCall const& make_call) {
  std::vector<double> ratios;
  for (auto _ : state) {
    double of_copy = 0;
    double of_call = 0;
    thread_communicator::run(2, [&](thread_communicator& comm) {
      std::vector<std::byte> from(bytes, std::byte{1});
      std::vector<std::byte> to(bytes);
      auto const copy = [&] {
        std::memcpy(to.data(), from.data(), bytes);
        benchmark::DoNotOptimize(to.data());
        benchmark::ClobberMemory();
      };
      auto call = make_call(comm);
      call();
      double const copied = seconds_of(comm, copy);
      double const called = seconds_of(comm, call);
      if (comm.rank() != 0) return;
      of_copy = copied;
      of_call = called;
    });
    state.SetIterationTime(of_call);
    ratios.push_back(of_call / of_copy);
  }
  state.counters["ratio"] = bench::median(ratios);
  state.counters["share_of_copies"] = 1 / bench::median(ratios);
}

void all_to_all_v(benchmark::State& state) {
  std::size_t const bytes = bench::size_of(state);
  compare_with_copies(state, bytes, [&](thread_communicator& comm) {
    return [&comm, in = std::vector<std::byte>(bytes, std::byte{1}),
            out = std::vector<std::byte>(bytes)]() mutable {
      // Everything goes to the other rank.
      std::uint64_t const all[] = {comm.rank() == 0 ? 0 : in.size(),
                                   comm.rank() == 0 ? in.size() : 0};
      comm.all_to_all_v(in, all, out, all);
    };
  });
  // Of fewer bytes the time until the other thread wakes up is a good part.
  if (bytes < std::size_t{64} << 20) return;
  bench::make_promises(
      state, {{"all_to_all_v of two threads / two copies, " + std::to_string(bytes) + " bytes each",
               "ratio", 1 / 0.7}});
}

/// Both ranks get the samples of the other one, in a random order.
omnibal::exchange_plan swapping_plan(std::uint32_t samples_of_rank) {
  auto const all_leave = [](auto const& costs, std::size_t, auto const&) {
    auto const half = static_cast<std::uint32_t>(costs.size() / 2);
    omnibal::rng::permutation const order(half, 1);
    omnibal::grouping parts;
    for (std::uint32_t i = 0; i != half; ++i) {
      parts.push(half + static_cast<std::uint32_t>(order(i)));
    }
    parts.close();
    for (std::uint32_t i = 0; i != half; ++i) parts.push(static_cast<std::uint32_t>(order(i)));
    parts.close();
    return parts;
  };
  std::vector<int> const nothing(2 * samples_of_rank, 0);
  // Without bytes the placement leaves the parts where they are.
  return omnibal::make_plan(std::vector<std::uint32_t>{0, samples_of_rank, 2 * samples_of_rank},
                            nothing, nothing, {}, all_leave);
}

/// Samples of 32 to 96 KiB, all of which change their rank, into memory that is kept.
void exchange_samples(benchmark::State& state) {
  std::size_t const bytes = bench::size_of(state);
  constexpr std::size_t mean_row = 65'536;
  auto const samples = static_cast<std::uint32_t>(std::max<std::size_t>(bytes / mean_row, 1));
  auto const plan = swapping_plan(samples);
  std::size_t const even_row = bytes / samples;
  compare_with_copies(state, samples * even_row, [&](thread_communicator& comm) {
    omnibal::ragged<std::byte> local;
    for (std::uint32_t i = 0; i != samples; ++i) {
      // Pairs of a shorter and a longer one, of which the last may lack the longer one.
      std::size_t const change = i == samples - 1 && i % 2 == 0 ? 0 : even_row / 64 * (i % 32);
      std::size_t const row =
          i % 2 == 0 ? even_row - change : even_row + even_row / 64 * ((i - 1) % 32);
      local.push(std::vector<std::byte>(row, std::byte{1}));
    }
    return [&comm, &plan, local = std::move(local), out = omnibal::ragged<std::byte>(),
            workspace = omnibal::exchange_samples_workspace()]() mutable {
      omnibal::exchange_samples(comm, plan, local, out, workspace);
    };
  });
  if (bytes < std::size_t{64} << 20) return;
  bench::make_promises(state, {{"exchange_samples of two threads / two copies, " +
                                    std::to_string(bytes) + " bytes each",
                                "ratio", 1 / 0.7}});
}

/// Samples of one size, known to the compiler.
template <std::size_t Bytes>
void exchange_blocks(benchmark::State& state) {
  struct block {
    std::byte bytes[Bytes];
  };
  auto const samples = static_cast<std::uint32_t>((bench::size_of(state) + Bytes - 1) / Bytes);
  auto const plan = swapping_plan(samples);
  compare_with_copies(state, samples * Bytes, [&](thread_communicator& comm) {
    return [&comm, &plan, local = std::vector<block>(samples), out = std::vector<block>(),
            workspace = omnibal::exchange_samples_workspace()]() mutable {
      omnibal::exchange_samples(comm, plan, local, out, workspace);
    };
  });
}

void byte_sizes(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Arg(10'000)->Arg(std::int64_t{1} << 20)->Arg(std::int64_t{64} << 20);
}

BENCHMARK(all_to_all_v)->Apply(byte_sizes);
BENCHMARK(exchange_samples)->Apply(byte_sizes);
BENCHMARK(exchange_blocks<16>)->Apply(byte_sizes);
BENCHMARK(exchange_blocks<4096>)->Apply(byte_sizes);

}  // namespace
