#pragma once

/// \file
/// Waiting for what cannot be waited for: polling with a limit.

#include <omnibal/check.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace omnibal::inline v0::nccl::detail {

/// A point in time, and pauses until it that grow from nothing to a millisecond.
class deadline {
 public:
  using clock = std::chrono::steady_clock;

  explicit deadline(std::chrono::milliseconds timeout)
      : timeout_(timeout), start_(clock::now()), pause_(0) {}

  [[nodiscard]] bool has_passed() const { return clock::now() - start_ >= timeout_; }

  /// What is left, at least nothing.
  [[nodiscard]] std::chrono::milliseconds left() const {
    auto const spent = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start_);
    return std::max(std::chrono::milliseconds(0), timeout_ - spent);
  }

  /// The time that was allowed, as text.
  [[nodiscard]] std::string text() const {
    return omnibal::detail::to_text(timeout_.count()) + " ms";
  }

  /// The first calls only yield, so that what is short is noticed at once.
  void pause() {
    constexpr int yields = 1000;
    constexpr std::chrono::microseconds longest(1000);
    if (++polls_ <= yields) {
      std::this_thread::yield();
      return;
    }
    pause_ = std::min(longest, pause_ * 2 + std::chrono::microseconds(10));
    std::this_thread::sleep_for(pause_);
  }

 private:
  std::chrono::milliseconds timeout_;
  clock::time_point start_;
  std::chrono::microseconds pause_;
  int polls_ = 0;
};

}  // namespace omnibal::inline v0::nccl::detail
