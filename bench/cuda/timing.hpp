// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Timing work on a stream beside limits of the device that were timed in the same run.

#include "device_program.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace bench {

/// A size to time; a far smaller one where `test::is_small()`, to see that a program works.
[[nodiscard]] inline std::size_t sized(std::size_t count) {
  return test::is_small() ? count / 1000 + 1 : count;
}

/// A stream with two events.
class stopwatch {
 public:
  stopwatch() {
    omnibal::gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    omnibal::gpu::check(cudaEventCreate(&begin_));
    omnibal::gpu::check(cudaEventCreate(&end_));
  }
  stopwatch(stopwatch const&) = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  ~stopwatch() {
    cudaEventDestroy(end_);
    cudaEventDestroy(begin_);
    cudaStreamDestroy(stream_);
  }

  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// The median time of `work()`, which submits to the stream, in microseconds: of 31 runs, or of
  /// as many as take a second.
  template <class Work>
  [[nodiscard]] double median(Work const& work) {
    return median(work, [] {});
  }

  /// The same, where nothing that `work()` reads is in the cache of the device when it begins.
  template <class Work>
  [[nodiscard]] double median_cold(Work const& work) {
    int cache_bytes = 0;
    omnibal::gpu::check(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0));
    // Parts of a cache may hold the same.
    std::size_t const bytes = 3 * static_cast<std::size_t>(cache_bytes);
    omnibal::gpu::device_array<std::byte> const other(omnibal::gpu::on(stream_), bytes);
    return median(work,
                  [&] { omnibal::gpu::check(cudaMemsetAsync(other.data(), 1, bytes, stream_)); });
  }

  /// The same for work that is captured in a graph once and replayed.
  template <class Work>
  [[nodiscard]] double median_of_graph(Work const& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t program = nullptr;
    omnibal::gpu::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    work();
    omnibal::gpu::check(cudaStreamEndCapture(stream_, &graph));
    omnibal::gpu::check(cudaGraphInstantiate(&program, graph, 0));
    double const result = median([&] { omnibal::gpu::check(cudaGraphLaunch(program, stream_)); });
    omnibal::gpu::check(cudaGraphExecDestroy(program));
    omnibal::gpu::check(cudaGraphDestroy(graph));
    return result;
  }

 private:
  /// Of runs each of which begins when what `before()` has submitted is done.
  template <class Work, class Before>
  [[nodiscard]] double median(Work const& work, Before const& before) {
    std::size_t const max_runs = test::is_small() ? 1 : 31;
    constexpr double max_microseconds = 1e6;
    for (int warm_up = 0; warm_up != 3; ++warm_up) work();
    std::vector<double> times;
    double all = 0;
    while (times.size() != max_runs && (times.size() < 5 || all < max_microseconds)) {
      before();
      omnibal::gpu::check(cudaStreamSynchronize(stream_));
      omnibal::gpu::check(cudaEventRecord(begin_, stream_));
      work();
      omnibal::gpu::check(cudaEventRecord(end_, stream_));
      omnibal::gpu::check(cudaEventSynchronize(end_));
      float milliseconds = 0;
      omnibal::gpu::check(cudaEventElapsedTime(&milliseconds, begin_, end_));
      times.push_back(1e3 * static_cast<double>(milliseconds));
      all += times.back();
    }
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// The time that the host takes for `work()` once, in microseconds.
template <class Work>
[[nodiscard]] double microseconds_on_host(Work const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// What the device could do in the best case, timed in this run.
struct limit {
  std::string name;
  double microseconds;
};

/// What is asked of a time: a number of microseconds, or a multiple of the limit; zero where
/// nothing is.
struct promise {
  double max_microseconds = 0;
  double max_ratio = 0;
};

/// Prints a row for the table of bench/gpu.sh: name, time, limit and its time, ratio, promise,
/// whether it was held.
inline void print_time(std::string const& name, double microseconds, limit const& best,
                       promise const& asked = {}) {
  double const ratio = best.microseconds > 0 ? microseconds / best.microseconds : 0;
  char text[64] = "-";
  char const* verdict = "-";
  if (asked.max_microseconds > 0) {
    std::snprintf(text, sizeof(text), "<= %.0f us", asked.max_microseconds);
    verdict = microseconds <= asked.max_microseconds ? "held" : "MISSED";
  } else if (asked.max_ratio > 0) {
    std::snprintf(text, sizeof(text), "<= %.1f x", asked.max_ratio);
    verdict = ratio <= asked.max_ratio ? "held" : "MISSED";
  }
  std::printf("TIME\t%s\t%.1f\t%s\t%.1f\t%.2f\t%s\t%s\n", name.c_str(), microseconds,
              best.name.c_str(), best.microseconds, ratio, text, verdict);
  std::fflush(stdout);
}

}  // namespace bench
