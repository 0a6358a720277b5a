// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The executor of the calls that have an argument `threads`.

#include "convert.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace convert {

/// Threads that are joined when this object is destroyed.
class joined_threads {
 public:
  explicit joined_threads(std::size_t most) { threads_.reserve(most); }
  joined_threads(joined_threads const&) = delete;
  joined_threads& operator=(joined_threads const&) = delete;
  ~joined_threads() {
    for (std::thread& thread : threads_) thread.join();
  }

  template <class Work>
  void start(Work const& work) {
    threads_.emplace_back(work);
  }

 private:
  std::vector<std::thread> threads_;
};

/// The executor that runs the bodies of a call on the thread of the caller and on other threads,
/// which end with the bodies. Errors: `std::runtime_error` if the system cannot start a thread.
class thread_executor {
 public:
  thread_executor(std::string function, std::size_t threads)
      : function_(std::move(function)), threads_(threads) {}

  void operator()(std::size_t count, std::function<void(std::size_t)> const& body) const {
    std::atomic<std::size_t> next = 0;
    auto const work = [&] {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    };
    std::size_t const wanted = std::min(threads_, count);
    joined_threads others(wanted);
    for (std::size_t running = 1; running < wanted; ++running) {
      try {
        others.start([&work] { work(); });
      } catch (std::system_error const& error) {
        next = count;
        throw std::runtime_error("omnibal." + function_ + ": threads is " +
                                 std::to_string(threads_) + ", but the system started only " +
                                 std::to_string(running) + ": " + error.what());
      }
    }
    work();
  }

 private:
  std::string function_;
  std::size_t threads_;
};

/// The executor for an argument `threads`; empty for one thread, the thread of the caller. Errors:
/// `std::invalid_argument` if `threads` is below 1.
[[nodiscard]] inline arrays::executor to_executor(std::string const& function,
                                                  std::int64_t threads) {
  if (threads < 1) {
    reject(function, "threads is " + std::to_string(threads) + ", must be at least 1");
  }
  if (threads == 1) return {};
  return thread_executor(function, static_cast<std::size_t>(threads));
}

}  // namespace convert
