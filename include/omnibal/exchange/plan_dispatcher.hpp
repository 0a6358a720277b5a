#pragma once

/// \file
/// Plans of the next steps while this one trains.

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

/// Makes plans on another thread: `submit` what rank and step have drawn, train, and take the plan
/// by `next` when its turn comes. A `Plan` is any value, such as an `exchange_plan` or an
/// `orchestration`; what plans a step is called like `plan_exchange`, once for each.
///
/// Plans come in the order of their steps. What throws while a step is planned comes from the
/// `next` of that step; the following ones are planned where the communicator goes on, and have its
/// error where it does not. All ranks submit the same steps in the same order. One thread calls
/// `submit` and `next`. Allocates for each step. Determinism: that of what plans.
template <class Step, class Plan>
class plan_dispatcher {
 public:
  /// No thread: the caller gives one, on which `serve` is called.
  plan_dispatcher() = default;

  /// With a thread of its own, on which `make(comm, step)` plans. The communicator is for it alone,
  /// one of the host such as MPI or Gloo: between those of a device all ranks would need one order.
  ///
  /// The destructor does not wait for other ranks: `leave(comm)` ends a call that does, there and
  /// on the others, and may be called beside it. `thread_communicator` has that; for Gloo it is the
  /// abort of the group, without which its timeout ends the call. MPI ends with the program.
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

  /// Does not wait.
  void submit(Step step) {
    std::lock_guard const lock(mutex_);
    steps_.push_back(std::move(step));
    ++submitted_;
    changed_.notify_all();
  }

  /// The plan of the earliest step whose plan was not taken yet; waits for it. Errors: what
  /// planning it has thrown, `communication_error` where it was closed before,
  /// `std::invalid_argument` where no such step was submitted.
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

  /// Plans steps by `make(step)` on the calling thread until it is closed. One thread calls it, and
  /// the dispatcher outlives the call.
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

  /// Nothing more is planned: `serve` returns after the step at which it is, and steps without a
  /// plan fail. To be called from any thread, such as the one that serves where it cannot go on.
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
