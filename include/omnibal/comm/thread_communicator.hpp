#pragma once

/// \file
/// Ranks that are threads of one process.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/thread_communicator/thread_group.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

namespace omnibal::inline v0 {

/// A rank among threads, for tests, simulations and one process with several devices. Models
/// `piecewise_communicator`. Each rank copies what it gets straight from the memory of the sender.
///
/// Copies are handles to the same rank, for one thread at a time. Collectives allocate nothing.
/// Determinism: portable. Errors on all ranks: `std::invalid_argument` where they called different
/// collectives or gave sizes that do not match, `communication_error` where one has thrown or left
/// while another waits for it. After an error every collective fails.
class thread_communicator {
 public:
  /// Calls `body(comm)` on so many ranks, rank 0 on the calling thread, and returns when all have
  /// returned. Where ranks throw, no rank waits for ever, and the exception of the lowest rank is
  /// rethrown that has one of its own, rather than a `communication_error` because of another.
  ///
  /// Errors: `std::invalid_argument` for no ranks; `std::system_error` where a thread cannot start.
  template <class Body>
    requires std::invocable<Body&, thread_communicator&>
  static void run(std::size_t ranks, Body&& body) {
    detail::check_positive("thread_communicator::run", "ranks", ranks);
    detail::thread_group group(ranks);
    auto const run_rank = [&](std::size_t rank) noexcept {
      try {
        thread_communicator comm(group, rank);
        body(comm);
        group.leave(rank, nullptr);
      } catch (...) {
        group.leave(rank, std::current_exception());
      }
    };
    {
      std::vector<std::jthread> others;
      others.reserve(ranks - 1);
      std::size_t next = 1;
      try {
        for (; next != ranks; ++next) others.emplace_back(run_rank, next);
        next = 0;
      } catch (...) {
        group.leave(next, std::current_exception());
      }
      if (next == 0) run_rank(0);
    }
    group.rethrow();
  }

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return group_->size(); }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    group_->all_gather(rank_, in, out);
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    group_->all_to_all_v(rank_, in, send_counts, out, receive_counts);
  }

  void all_to_all_pieces(std::span<sent_piece const> sent,
                         std::span<std::uint64_t const> send_counts,
                         std::span<received_piece const> received,
                         std::span<std::uint64_t const> receive_counts) const {
    group_->all_to_all_pieces(rank_, sent, send_counts, received, receive_counts);
  }

 private:
  thread_communicator(detail::thread_group& group, std::size_t rank)
      : group_(&group), rank_(rank) {}

  detail::thread_group* group_;
  std::size_t rank_;
};

}  // namespace omnibal::inline v0
