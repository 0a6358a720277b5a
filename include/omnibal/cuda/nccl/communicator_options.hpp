// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Options and timeouts of communicators.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/library.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

/// The rank of this process, and the number of processes that share a communicator.
struct world {
  std::size_t rank = 0;
  std::size_t size = 1;
};

struct communicator_options {
  /// The longest time that a rank waits for the other ranks: while they connect, while the
  /// communicator starts and in every collective call with host memory. A call of `wait` may pass
  /// another time.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  /// The settings of NCCL. If `blocking` is not set, calls do not block, as the timeout requires:
  /// with `blocking = 1` NCCL waits forever for ranks that do not arrive.
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  /// Ends the communicator after an error or a timeout, on a separate thread. The caller waits for
  /// this thread for at most five seconds, because NCCL itself may wait on that thread for graphs
  /// that have captured the communicator and for earlier work on a stream. A trainer with several
  /// communicators aborts all of them here, between `ncclGroupStart` and `ncclGroupEnd`. Must not
  /// throw.
  std::function<void(ncclComm_t)> abort = [](ncclComm_t comm) {
    static_cast<void>(detail::calls().comm_abort(comm));
  };
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

inline void check_world(std::string_view function, world const& place) {
  if (place.size == 0 || place.size > INT_MAX) {
    omnibal::detail::throw_invalid(function, "the size of the world is ", place.size,
                                   ", must be in [1, 2^31)");
  }
  if (place.rank >= place.size) {
    omnibal::detail::throw_invalid(function, "the rank is ", place.rank,
                                   ", must be below the size of the world, which is ", place.size);
  }
}

inline void check_timeout(std::string_view function, std::string_view argument,
                          std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) return;
  omnibal::detail::throw_invalid(function, argument, " is ", timeout.count(),
                                 " ms, must be positive");
}

/// Calls `call` on a separate thread. Waits for the call for the shorter of `longest` and five
/// seconds.
template <class Call>
void call_apart(std::chrono::milliseconds longest, Call const& call) noexcept {
  try {
    std::packaged_task<void()> task(call);
    auto const done = task.get_future();
    std::thread(std::move(task)).detach();
    done.wait_for(std::min<std::chrono::milliseconds>(longest, std::chrono::seconds(5)));
  } catch (...) {
    call();
  }
}

/// The deadline of a wait, and the pauses between its polls, which grow up to one millisecond.
class deadline {
 public:
  using clock = std::chrono::steady_clock;

  explicit deadline(std::chrono::milliseconds timeout)
      : timeout_(timeout), start_(clock::now()), pause_(0) {}

  [[nodiscard]] bool has_passed() const { return clock::now() - start_ >= timeout_; }

  /// Returns the remaining time, at least zero.
  [[nodiscard]] std::chrono::milliseconds left() const {
    auto const spent = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start_);
    return std::max(std::chrono::milliseconds(0), timeout_ - spent);
  }

  /// Returns the allowed time as text.
  [[nodiscard]] std::string text() const {
    return omnibal::detail::joined_text(timeout_.count(), " ms");
  }

  /// Pauses between polls. The first calls only yield the processor, so that the end of a short
  /// wait is noticed at once.
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
