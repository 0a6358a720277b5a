// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work on a stream of its own, beside what is looked at.

#include <omnibal/cuda/error.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

namespace test {

/// Calls `submit(stream)` again and again while it lives, from a thread of its own, so that two
/// submissions wait or run at any time.
class background {
 public:
  explicit background(std::function<void(cudaStream_t)> submit)
      : submit_(std::move(submit)), thread_([this] { run(); }) {
    // What is looked at begins beside it.
    while (submissions_ < 2 && !has_ended_) std::this_thread::yield();
  }
  background(background const&) = delete;
  background& operator=(background const&) = delete;
  ~background() { static_cast<void>(end()); }

  /// Ends it: what went wrong, or nothing.
  std::string end() {
    is_ending_ = true;
    if (thread_.joinable()) thread_.join();
    return error_;
  }
  [[nodiscard]] std::size_t submissions() const { return submissions_; }

 private:
  void run() {
    try {
      cudaStream_t stream = nullptr;
      cudaEvent_t events[2] = {};
      omnibal::gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (auto& event : events) omnibal::gpu::check(cudaEventCreate(&event));
      while (!is_ending_) {
        // Of the submission before the last one.
        cudaEvent_t const event = events[submissions_ % 2];
        if (submissions_ >= 2) omnibal::gpu::check(cudaEventSynchronize(event));
        submit_(stream);
        omnibal::gpu::check(cudaEventRecord(event, stream));
        ++submissions_;
      }
      omnibal::gpu::check(cudaStreamSynchronize(stream));
      for (auto& event : events) omnibal::gpu::check(cudaEventDestroy(event));
      omnibal::gpu::check(cudaStreamDestroy(stream));
    } catch (std::exception const& error) {
      error_ = error.what();
    }
    has_ended_ = true;
  }

  std::function<void(cudaStream_t)> submit_;
  std::atomic<std::size_t> submissions_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::atomic<bool> has_ended_ = false;
  std::string error_;
  std::thread thread_;
};

}  // namespace test
