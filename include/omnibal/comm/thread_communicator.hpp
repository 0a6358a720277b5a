// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Communicators of ranks that are threads of one process.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The shared state of ranks that are threads, and their collectives. In a collective each rank
/// posts the addresses of its data, and a barrier follows. Then each rank copies the data that it
/// receives from the memory of the other ranks. A second barrier follows before any rank may change
/// its data.
///
/// If a rank leaves or is late, or if arguments do not match, the group is broken and every later
/// call throws.
class thread_group {
 public:
  enum class operation { none, all_gather, all_to_all_v, all_to_all_pieces };

  struct post {
    operation called = operation::none;
    bool is_sound = false;
    std::span<std::byte const> in;
    std::span<std::uint64_t const> send_counts;
    std::span<sent_piece const> pieces;
  };

  /// The timeout is limited to a year, because a larger one could overflow the type of a point in
  /// time.
  thread_group(std::size_t ranks, std::chrono::milliseconds timeout)
      : timeout_(std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24 * 365))),
        posts_(ranks),
        arrivals_(ranks, 0),
        errors_(ranks) {}

  [[nodiscard]] std::size_t size() const { return posts_.size(); }

  /// Runs a collective; `copy_from(post)` copies the data that this rank receives from another
  /// rank, and returns false if the sizes do not match.
  template <class Copy>
  void meet(std::size_t rank, post const& own, Copy const& copy_from) {
    posts_[rank] = own;
    meet_before(rank);
    if (!all_posted(own.called) || !std::all_of(posts_.begin(), posts_.end(), copy_from)) {
      std::lock_guard const lock(mutex_);
      state_ = state::mismatch;
    }
    meet_after();
  }
  [[nodiscard]] std::size_t rank_of(post const& posted) const {
    return static_cast<std::size_t>(&posted - posts_.data());
  }

  /// Marks that this rank makes no more calls. `error` is its exception, or null if it ended
  /// without an error.
  void leave(std::size_t rank, std::exception_ptr error) noexcept {
    {
      std::lock_guard const lock(mutex_);
      errors_[rank] = std::move(error);
      if (state_ == state::whole) {
        state_ = errors_[rank] == nullptr ? state::left : state::failed;
        culprit_ = rank;
      }
    }
    changed_.notify_all();
  }

  /// Throws the exception of the lowest rank that failed by itself. If there is none, throws the
  /// exception of the lowest rank that failed because of another rank. Called after all ranks have
  /// left.
  void rethrow() const {
    std::exception_ptr chosen;
    for (std::exception_ptr const& error : errors_) {
      if (error == nullptr) continue;
      if (is_own(error)) std::rethrow_exception(error);
      if (chosen == nullptr) chosen = error;
    }
    if (chosen != nullptr) std::rethrow_exception(chosen);
  }

 private:
  enum class state { whole, mismatch, left, late, failed };

  [[nodiscard]] static bool is_own(std::exception_ptr const& error) {
    try {
      std::rethrow_exception(error);
    } catch (communication_error const&) {
      return false;
    } catch (...) {
      return true;
    }
  }

  /// Waits until all ranks have posted their calls.
  void meet_before(std::size_t rank) {
    std::unique_lock lock(mutex_);
    if (state_ != state::whole) throw_broken();
    std::uint64_t const before = meetings_;
    ++arrivals_[rank];
    arrive();
    bool const is_in_time = changed_.wait_for(
        lock, timeout_, [&] { return meetings_ != before || state_ != state::whole; });
    if (!is_in_time) {
      state_ = state::late;
      culprit_ = static_cast<std::size_t>(std::min_element(arrivals_.begin(), arrivals_.end()) -
                                          arrivals_.begin());
      awaited_ = posts_[rank].called;
      changed_.notify_all();
    }
    if (meetings_ == before) throw_broken();
  }

  /// Waits until no rank reads the data of another rank. No rank can leave before this function
  /// returns.
  void meet_after() {
    std::unique_lock lock(mutex_);
    std::uint64_t const before = meetings_;
    arrive();
    changed_.wait(lock, [&] { return meetings_ != before; });
    if (state_ == state::mismatch) throw_broken();
  }

  void arrive() {
    if (++arrived_ != size()) return;
    arrived_ = 0;
    ++meetings_;
    changed_.notify_all();
  }

  [[noreturn]] void throw_broken() const {
    if (state_ == state::mismatch) {
      throw_invalid(name, "the ranks called different collectives or gave sizes that do not match");
    }
    std::string what = joined_text("rank ", culprit_);
    if (state_ == state::left) what += " has left";
    if (state_ == state::failed) what += " has thrown: " + text_of(errors_[culprit_]);
    if (state_ == state::late) {
      constexpr char const* names[] = {"", "all_gather", "all_to_all_v", "all_to_all_pieces"};
      what += joined_text(" has not come to ", names[static_cast<int>(awaited_)], " within ",
                          timeout_.count(), " ms");
    }
    throw communication_error(message(name, what));
  }

  [[nodiscard]] bool all_posted(operation called) const {
    return std::all_of(posts_.begin(), posts_.end(),
                       [&](post const& other) { return other.called == called && other.is_sound; });
  }

  static constexpr std::string_view name = "thread_communicator";

  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  state state_ = state::whole;
  std::size_t culprit_ = 0;
  operation awaited_ = operation::none;
  std::size_t arrived_ = 0;
  std::uint64_t meetings_ = 0;
  std::vector<post> posts_;
  /// The number of collectives at which each rank has arrived.
  std::vector<std::uint64_t> arrivals_;
  std::vector<std::exception_ptr> errors_;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct thread_communicator_options {
  /// The longest time that a rank waits for other ranks in a collective.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

/// A communicator of ranks that are threads of one process, for tests, simulations and processes
/// with several devices. Models `piecewise_communicator`. Each rank copies data directly from the
/// memory of the sender.
///
/// Copies are handles to the same rank, for one thread at a time. Collectives allocate nothing.
/// Determinism: portable. Errors on all ranks: `std::invalid_argument` if ranks called different
/// collectives or passed sizes that do not match. Further errors on all ranks:
/// `communication_error` if a rank has thrown an exception, has left, or has not arrived within the
/// timeout while another rank waits for it. After an error every collective fails.
class thread_communicator {
 public:
  /// Calls `body(comm)` on each of `ranks` ranks, rank 0 on the calling thread, and returns when
  /// all ranks have returned. If ranks throw, no rank waits forever. The function then rethrows the
  /// exception of the lowest rank that failed by itself, in preference to a `communication_error`
  /// that another rank caused. A rank that hangs outside of a collective ends the calls of the
  /// other ranks at the timeout. A thread cannot be ended from outside, so `run` returns only when
  /// that rank returns.
  ///
  /// Errors: `std::invalid_argument` if there are no ranks or the timeout is not positive;
  /// `std::system_error` if a thread cannot start.
  template <class Body>
    requires std::invocable<Body&, thread_communicator&>
  static void run(std::size_t ranks, Body&& body, thread_communicator_options const& options = {}) {
    detail::check_positive("thread_communicator::run", "ranks", ranks);
    detail::check_positive("thread_communicator::run", "options.timeout", options.timeout.count());
    detail::thread_group group(ranks, options.timeout);
    auto const run_rank = [&](std::size_t rank) noexcept {
      try {
        thread_communicator comm(group, rank);
        body(comm);
        group.leave(rank, nullptr);
      } catch (...) {
        group.leave(rank, std::current_exception());
      }
    };
    std::vector<std::thread> others;
    others.reserve(ranks - 1);
    std::size_t next = 1;
    try {
      for (; next != ranks; ++next) others.emplace_back(run_rank, next);
      next = 0;
    } catch (...) {
      group.leave(next, std::current_exception());
    }
    if (next == 0) run_rank(0);
    for (std::thread& other : others) other.join();
    group.rethrow();
  }

  /// Leaves the group: this rank makes no more calls. A call of this rank that waits on another
  /// thread throws, and calls of other ranks that wait for this rank throw too. A rank leaves
  /// automatically when its body returns.
  void leave() const noexcept { group_->leave(rank_, nullptr); }

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return group_->size(); }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    bool const is_sound = out.size() == in.size() * size();
    group_->meet(rank_, {operation::all_gather, is_sound, in, {}, {}}, [&](post const& other) {
      if (other.in.size() != in.size()) return false;
      copy(other.in, out.subspan(group_->rank_of(other) * in.size(), in.size()));
      return true;
    });
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    bool const is_sound = add_up(send_counts, in.size()) && add_up(receive_counts, out.size());
    group_->meet(rank_, {operation::all_to_all_v, is_sound, in, send_counts, {}},
                 [&](post const& other) {
                   auto const from = block_for(rank_, other.in, other.send_counts);
                   auto const place = block_for(group_->rank_of(other), out, receive_counts);
                   if (from.size() != place.size()) return false;
                   copy(from, place);
                   return true;
                 });
  }

  void all_to_all_pieces(std::span<sent_piece const> sent,
                         std::span<std::uint64_t const> send_counts,
                         std::span<received_piece const> received,
                         std::span<std::uint64_t const> receive_counts) const {
    bool const is_sound =
        add_up(send_counts, sent.size()) && add_up(receive_counts, received.size());
    group_->meet(rank_, {operation::all_to_all_pieces, is_sound, {}, send_counts, sent},
                 [&](post const& other) {
                   return copy_pieces(block_for(rank_, other.pieces, other.send_counts),
                                      block_for(group_->rank_of(other), received, receive_counts));
                 });
  }

 private:
  using operation = detail::thread_group::operation;
  using post = detail::thread_group::post;

  thread_communicator(detail::thread_group& group, std::size_t rank)
      : group_(&group), rank_(rank) {}

  static void copy(std::span<std::byte const> from, std::span<std::byte> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }

  /// Copies the sent pieces to the received pieces. If the two lists have different numbers of
  /// bytes, copies nothing and returns false.
  [[nodiscard]] static bool copy_pieces(std::span<sent_piece const> from,
                                        std::span<received_piece const> to) {
    auto const bytes = [](std::size_t sum, auto const& piece) { return sum + piece.size(); };
    if (std::accumulate(from.begin(), from.end(), std::size_t{0}, bytes) !=
        std::accumulate(to.begin(), to.end(), std::size_t{0}, bytes)) {
      return false;
    }
    auto next = from.begin();
    sent_piece rest;
    for (received_piece place : to) {
      while (!place.empty()) {
        while (rest.empty()) rest = *next++;
        std::size_t const size = std::min(rest.size(), place.size());
        copy(rest.first(size), place.first(size));
        rest = rest.subspan(size);
        place = place.subspan(size);
      }
    }
    return true;
  }

  [[nodiscard]] bool add_up(std::span<std::uint64_t const> counts, std::size_t bytes) const {
    for (std::uint64_t const count : counts) {
      if (count > bytes) return false;
      bytes -= count;
    }
    return counts.size() == size() && bytes == 0;
  }
  /// Returns the bytes or pieces of `all` that are for one rank, or from one rank.
  template <class T>
  [[nodiscard]] static std::span<T> block_for(std::size_t rank, std::span<T> all,
                                              std::span<std::uint64_t const> counts) {
    return all.subspan(std::accumulate(&counts[0], &counts[rank], std::size_t{0}), counts[rank]);
  }

  detail::thread_group* group_;
  std::size_t rank_;
};

}  // namespace omnibal::inline v0
