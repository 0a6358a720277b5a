// SPDX-License-Identifier: Apache-2.0
#pragma once

// Streams of the stand-in.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stand_in {

/// Work of a stream. `submitted` is called when it is put into a queue, also each time that a graph
/// which has it is launched, and gives what runs then.
struct work {
  std::function<std::function<void()>()> submitted;
};

struct graph {
  std::vector<work> nodes;
};

class stream {
 public:
  explicit stream(int device) : device_(device), thread_([this] { run(); }) {}
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  /// What was submitted still runs.
  ~stream() {
    {
      std::lock_guard const lock(mutex_);
      is_ending_ = true;
    }
    awake_.notify_all();
    thread_.join();
  }

  [[nodiscard]] int device() const { return device_; }

  /// Work runs at the latest when somebody starts, asks or waits: a thread that is woken for each
  /// step costs more than the steps.
  void push(work item) {
    if (captured_ != nullptr) {
      captured_->nodes.push_back(std::move(item));
      return;
    }
    auto ready = item.submitted();
    std::lock_guard const lock(mutex_);
    queue_.push_back(std::move(ready));
    ++pending_;
  }
  void start() {
    {
      std::lock_guard const lock(mutex_);
      if (queue_.empty()) return;
      is_started_ = true;
    }
    awake_.notify_all();
  }

  /// Whether the work is done by now or soon: who asks in a loop does not take the processor from
  /// those that work.
  [[nodiscard]] bool is_done() {
    start();
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, std::chrono::microseconds(500), [&] { return pending_ == 0; });
  }
  void wait() {
    start();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return pending_ == 0; });
  }

  [[nodiscard]] bool is_capturing() const { return captured_ != nullptr; }
  void begin_capture() { captured_ = std::make_unique<graph>(); }
  [[nodiscard]] std::unique_ptr<graph> end_capture() { return std::move(captured_); }

 private:
  void run() {
    for (;;) {
      std::deque<std::function<void()>> next;
      {
        std::unique_lock lock(mutex_);
        awake_.wait(lock, [&] { return is_ending_ || is_started_; });
        if (queue_.empty()) {
          if (is_ending_) return;
          is_started_ = false;
          continue;
        }
        next.swap(queue_);
      }
      while (!next.empty()) {
        next.front()();
        next.pop_front();
        std::lock_guard const lock(mutex_);
        if (--pending_ == 0) done_.notify_all();
      }
    }
  }

  int device_;
  std::mutex mutex_;
  std::condition_variable awake_;
  std::condition_variable done_;
  std::deque<std::function<void()>> queue_;
  std::size_t pending_ = 0;
  bool is_started_ = false;
  bool is_ending_ = false;
  std::unique_ptr<graph> captured_;
  std::thread thread_;
};

/// The stream behind a handle.
stream& stream_of(void* handle);

}  // namespace stand_in
