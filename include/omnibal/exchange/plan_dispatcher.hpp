// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Plans for the next steps during the training of the current step.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

/// A dispatcher that computes plans on another thread. `submit` passes the samples of this rank for
/// a step; `next` returns the plan when the step begins. A `Plan` is any value, such as an
/// `exchange_plan` or an `orchestration`. For each step, the planner makes one call, such as the
/// call of `plan_exchange`.
///
/// Plans come in the order of their steps. If the planning of a step throws, `next` throws this
/// exception for that step. If the communicator still works, later steps are planned; otherwise
/// `next` throws the error of the communicator for these steps. All ranks submit the same steps in
/// the same order. One thread calls `submit` and `next`. Allocates for each step. Determinism: the
/// same as the planner.
template <class Step, class Plan>
class plan_dispatcher {
 public:
  /// Creates a dispatcher without a thread; the caller provides a thread that calls `serve`.
  plan_dispatcher() = default;

  /// Creates a dispatcher with its own thread, on which `make(comm, step)` plans. Only the
  /// dispatcher uses this communicator. It is a communicator of the host such as MPI or Gloo,
  /// because communicators of a device would require one order on all ranks.
  ///
  /// The destructor does not wait for other ranks: `leave(comm)` ends a call that waits, on this
  /// rank and on the other ranks. `leave` may run concurrently with that call.
  /// `thread_communicator` has such a function. For Gloo it is the abort of the group, without
  /// which the timeout of Gloo ends the call. MPI ends with the program.
  template <communicator Comm, class Make, class Leave>
  plan_dispatcher(Comm comm, Make make, Leave leave) {
    auto const shared = std::make_shared<Comm>(std::move(comm));
    leave_ = [shared, leave = std::move(leave)] { leave(*shared); };
    thread_ = std::thread([this, shared, make = std::move(make)]() mutable {
      serve([&](Step const& step) { return make(*shared, step); });
    });
  }
  template <communicator Comm, class Make>
  plan_dispatcher(Comm comm, Make make)
      : plan_dispatcher(std::move(comm), std::move(make), [](Comm const& own) {
          if constexpr (requires { own.leave(); }) own.leave();
        }) {}

  plan_dispatcher(plan_dispatcher const&) = delete;
  plan_dispatcher& operator=(plan_dispatcher const&) = delete;
  ~plan_dispatcher() {
    close();
    if (leave_) leave_();
    if (thread_.joinable()) thread_.join();
  }

  /// Submits the next step; does not wait.
  void submit(Step step) {
    std::lock_guard const lock(mutex_);
    steps_.push_back(std::move(step));
    ++submitted_;
    changed_.notify_all();
  }

  /// Returns the plan of the earliest step whose plan was not returned yet; waits for the plan.
  /// Errors: any exception from the planning of the step, `communication_error` if the dispatcher
  /// was closed before, `std::invalid_argument` if no such step was submitted.
  [[nodiscard]] Plan next() {
    std::unique_lock lock(mutex_);
    if (submitted_ == 0) detail::throw_invalid(name, "every submitted step has been taken");
    changed_.wait(lock, [&] { return is_closed_ || !made_.empty(); });
    --submitted_;
    if (made_.empty()) {
      throw communication_error(
          detail::message(name, "the dispatcher was closed before this step was planned"));
    }
    outcome made = std::move(made_.front());
    made_.pop_front();
    lock.unlock();
    if (!made.plan) std::rethrow_exception(std::move(made.error));
    return *std::move(made.plan);
  }

  /// Plans steps by `make(step)` on the calling thread until the dispatcher is closed. Only one
  /// thread calls `serve`, and the dispatcher outlives the call.
  template <class Make>
    requires std::is_invocable_r_v<Plan, Make&, Step const&>
  void serve(Make&& make) {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_closed_ || !steps_.empty(); });
      if (is_closed_) return;
      Step const step = std::move(steps_.front());
      steps_.pop_front();
      lock.unlock();
      outcome made;
      try {
        made.plan.emplace(std::invoke(make, step));
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      made_.push_back(std::move(made));
      changed_.notify_all();
    }
  }

  /// Closes the dispatcher: `serve` returns after its current step, and steps without a plan fail.
  /// Any thread may call `close`, for example the serving thread if it cannot continue.
  void close() {
    std::lock_guard const lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::string_view name = "plan_dispatcher::next";

  struct outcome {
    std::optional<Plan> plan;
    std::exception_ptr error;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Step> steps_;
  std::deque<outcome> made_;
  std::size_t submitted_ = 0;
  bool is_closed_ = false;
  std::function<void()> leave_;
  std::thread thread_;
};

}  // namespace omnibal::inline v0
