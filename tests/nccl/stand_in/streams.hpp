#pragma once

// Streams of the stand-in.

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
  stream() : thread_([this](std::stop_token const& stop) { run(stop); }) {}

  void push(work item) {
    if (captured_ != nullptr) {
      captured_->nodes.push_back(std::move(item));
      return;
    }
    auto ready = item.submitted();
    {
      std::lock_guard const lock(mutex_);
      queue_.push_back(std::move(ready));
      ++pending_;
    }
    changed_.notify_all();
  }

  [[nodiscard]] bool is_done() {
    std::lock_guard const lock(mutex_);
    return pending_ == 0;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pending_ == 0; });
  }

  [[nodiscard]] bool is_capturing() const { return captured_ != nullptr; }
  void begin_capture() { captured_ = std::make_unique<graph>(); }
  [[nodiscard]] std::unique_ptr<graph> end_capture() { return std::move(captured_); }

 private:
  void run(std::stop_token const& stop) {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return !queue_.empty(); });
        if (queue_.empty()) return;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      next();
      next = nullptr;
      {
        std::lock_guard const lock(mutex_);
        --pending_;
      }
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> queue_;
  std::size_t pending_ = 0;
  std::unique_ptr<graph> captured_;
  std::jthread thread_;
};

/// Kinds of memory.
enum class memory_kind { pageable, pinned, device };
memory_kind kind_of(void const* address, std::size_t bytes);

/// The stream behind a handle.
stream& stream_of(void* handle);

}  // namespace stand_in
