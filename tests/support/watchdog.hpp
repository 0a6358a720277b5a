// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ends a program that hangs.

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace test {

/// Aborts the program, and says why, unless the object is destroyed in time.
class watchdog {
 public:
  explicit watchdog(std::chrono::seconds limit = std::chrono::seconds(120))
      : thread_([this, limit] { watch(limit); }) {}
  watchdog(watchdog const&) = delete;
  watchdog& operator=(watchdog const&) = delete;
  ~watchdog() {
    {
      std::lock_guard const lock(mutex_);
      is_done_ = true;
    }
    done_.notify_one();
    thread_.join();
  }

 private:
  void watch(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (done_.wait_for(lock, limit, [this] { return is_done_; })) return;
    std::fputs("a test hangs\n", stderr);
    std::abort();
  }

  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace test
