// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Two threads against the thread of the caller, in real time.

#include "compare.hpp"

#include <omnibal/executor.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

struct two_threads {
  void operator()(std::size_t count, auto const& body) const {
    std::atomic<std::size_t> next = 0;
    auto const work = [&] {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    };
    std::thread other(work);
    work();
    other.join();
  }
};

/// Returns the real time of a call, in seconds.
template <class Call>
[[nodiscard]] double seconds_of(Call const& call) {
  auto const begin = std::chrono::steady_clock::now();
  auto const result = call();
  benchmark::DoNotOptimize(&result);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Times `call(executor)` serially and on two threads in turn. Counters: the milliseconds of both
/// and `speedup`, the median of the ratios. The figures hold only on a machine with two free cores.
template <class Call>
void compare_executors(benchmark::State& state, Call const& call) {
  std::vector<double> serial;
  std::vector<double> threads;
  std::vector<double> speedups;
  for (auto _ : state) {
    serial.push_back(seconds_of([&] { return call(omnibal::serial_executor{}); }));
    threads.push_back(seconds_of([&] { return call(two_threads{}); }));
    speedups.push_back(serial.back() / threads.back());
    state.SetIterationTime(threads.back());
  }
  state.counters["serial_ms"] = 1e3 * bench::median(serial);
  state.counters["two_threads_ms"] = 1e3 * bench::median(threads);
  state.counters["speedup"] = bench::median(speedups);
}

}  // namespace bench
