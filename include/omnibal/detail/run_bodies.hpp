// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Independent parts of an algorithm, on an executor.

#include <omnibal/check.hpp>
#include <omnibal/detail/function_ref.hpp>
#include <omnibal/executor.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Bodies that an executor calls. Checks that each is called once, and keeps what they throw.
class guarded_bodies {
 public:
  using body_type = function_ref<void(std::size_t)>;

  /// `body` must outlive this object.
  guarded_bodies(std::size_t count, body_type body)
      : body_(body), first_failed_(count), has_begun_(count), errors_(count) {}

  /// Calls body i, unless a body below i has failed: serially, body i would not be called then.
  void call(std::size_t i) noexcept {
    if (i >= errors_.size() || has_begun_[i].exchange(true)) {
      is_misused_ = true;
      return;
    }
    if (first_failed_.load() > i) {
      try {
        body_(i);
      } catch (...) {
        errors_[i] = std::current_exception();
        std::size_t lowest = first_failed_.load();
        while (i < lowest && !first_failed_.compare_exchange_weak(lowest, i)) {
        }
      }
    }
    ++ended_;
  }

  /// Rethrows the exception of the lowest body that failed. Throws `std::invalid_argument` if the
  /// executor did not call each body exactly once.
  void finish(std::string_view function) const {
    std::size_t const ended = ended_.load();
    if (ended != errors_.size() || is_misused_.load()) {
      throw_invalid(function, "executor called ", ended, " of ", errors_.size(),
                    " bodies, or called a body twice, must call each body once");
    }
    std::size_t const failed = first_failed_.load();
    if (failed != errors_.size()) std::rethrow_exception(errors_[failed]);
  }

 private:
  body_type body_;
  std::atomic<std::size_t> first_failed_;
  std::atomic<std::size_t> ended_ = 0;
  std::atomic<bool> is_misused_ = false;
  std::vector<std::atomic<bool>> has_begun_;
  std::vector<std::exception_ptr> errors_;
};

/// Calls `body(i)` for each i in [0, count) on an executor. If bodies throw, rethrows the exception
/// of the lowest i, which is the exception of a loop in order. Errors: also `std::invalid_argument`
/// if the executor does not call each body exactly once, and what the executor throws by itself.
template <class Executor, class Body>
void run_bodies(std::string_view function, Executor const& executor, std::size_t count,
                Body const& body) {
  if constexpr (std::same_as<Executor, serial_executor>) {
    executor(count, body);
  } else {
    if (count < 2) return serial_executor{}(count, body);
    guarded_bodies bodies(count, body);
    auto const call = [&bodies](std::size_t i) { bodies.call(i); };
    executor(count, function_ref<void(std::size_t)>(call));
    bodies.finish(function);
  }
}

/// The number of parts into which `count` elements are cut for an executor: one part for each
/// `least` elements, but at least one and at most `most` parts. The number does not depend on the
/// executor.
[[nodiscard]] constexpr std::size_t part_count(std::size_t count, std::size_t least,
                                               std::size_t most) {
  std::size_t const parts = count / least;
  return parts < 1 ? 1 : parts > most ? most : parts;
}

}  // namespace omnibal::inline v0::detail
