#pragma once

/// \file
/// Rank 0 waits for the others at a port.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/detail/boot_message.hpp>
#include <omnibal/cuda/nccl/detail/boot_socket.hpp>
#include <omnibal/cuda/nccl/detail/deadline.hpp>
#include <omnibal/cuda/nccl/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace omnibal::inline v0::nccl::detail {

/// The side of rank 0. Nobody is answered before all are there or one does not fit, so that all go
/// on or none. A descriptor for each rank; what connects and does not belong here is ignored.
class boot_host {
 public:
  boot_host(std::string_view function, std::uint16_t port, boot_hello const& own)
      : function_(function), listener_(listen_on(function, port)), has_come_(own.size, false) {
    answer_.rank_0 = own;
    has_come_[0] = true;
  }

  /// Waits until all have come. Throws for one that does not fit after all that are there know.
  void gather(deadline const& limit) {
    while (answer_.verdict == boot_verdict::welcome && come_ + 1 != has_come_.size()) {
      if (limit.has_passed()) throw_missing(limit);
      poll_all(limit);
      accept_all();
      read_all();
    }
  }

  /// Tells all the id, or what does not fit, and throws then.
  void answer_all(ncclUniqueId const& id, deadline const& limit) {
    answer_.id = id;
    for (guest const& one : guests_) {
      // Who has gone meanwhile is missed when NCCL starts.
      if (one.is_known) static_cast<void>(send_all(one.socket, answer_, limit));
    }
    check_verdict(function_, answer_);
  }

 private:
  struct guest {
    descriptor socket;
    boot_hello hello;
    ssize_t bytes = 0;
    bool is_known = false;
  };

  void poll_all(deadline const& limit) {
    polled_.assign(1, {listener_.get(), POLLIN, 0});
    for (guest const& one : guests_) {
      if (!one.is_known) polled_.push_back({one.socket.get(), POLLIN, 0});
    }
    auto const longest = std::min<std::chrono::milliseconds>(limit.left(), std::chrono::seconds(1));
    static_cast<void>(::poll(polled_.data(), polled_.size(), static_cast<int>(longest.count())));
  }

  void accept_all() {
    for (;;) {
      descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.is_open()) {
        if (errno == EMFILE || errno == ENFILE) {
          throw_system(function_,
                       "rank 0 needs a file descriptor for each rank (raise the limit, ulimit -n)",
                       errno);
        }
        return;
      }
      send_at_once(socket);
      guests_.push_back({std::move(socket), {}, 0, false});
    }
  }

  void read_all() {
    for (guest& one : guests_) {
      if (one.is_known || one.bytes < 0) continue;
      one.bytes = receive_some(one.socket, one.hello, static_cast<std::size_t>(one.bytes));
      if (one.bytes == static_cast<ssize_t>(sizeof(boot_hello))) welcome(one);
    }
    std::erase_if(guests_, [](guest const& one) { return one.bytes < 0; });
  }

  void welcome(guest& one) {
    // Strangers and other runs are not ours to fail for.
    if (one.hello.magic != boot_magic || one.hello.run != answer_.rank_0.run) {
      one.bytes = -1;
      return;
    }
    one.is_known = true;
    boot_verdict verdict = judge(answer_.rank_0, one.hello);
    if (verdict == boot_verdict::welcome && has_come_[one.hello.rank]) {
      verdict = boot_verdict::taken;
    }
    if (verdict == boot_verdict::welcome) {
      has_come_[one.hello.rank] = true;
      ++come_;
    } else if (answer_.verdict == boot_verdict::welcome) {
      answer_.verdict = verdict;
      answer_.culprit = one.hello.rank;
      answer_.found = one.hello;
    }
  }

  [[noreturn]] void throw_missing(deadline const& limit) const {
    using omnibal::detail::to_text;
    std::string missing;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank != has_come_.size(); ++rank) {
      if (has_come_[rank]) continue;
      if (++count <= 8) missing += (missing.empty() ? "" : ", ") + to_text(rank);
    }
    if (count > 8) missing += ", ...";
    throw timeout(omnibal::detail::message(
        function_, "rank 0 has waited " + limit.text() + ", and " + to_text(count) + " of " +
                       to_text(has_come_.size()) + " ranks have not come: " + missing));
  }

  std::string_view function_;
  descriptor listener_;
  boot_answer answer_;
  std::vector<bool> has_come_;
  std::size_t come_ = 0;
  std::vector<guest> guests_;
  std::vector<pollfd> polled_;
};

/// The side of the other ranks: connects again and again, says hello and waits for the answer.
[[nodiscard]] inline boot_answer ask_host(std::string_view function, endpoint const& to,
                                          boot_hello const& own, deadline& limit) {
  std::string reason = "no answer";
  for (;;) {
    attempt connection = connect_once(to, limit);
    if (connection.socket.is_open()) {
      boot_answer answer;
      bool const is_whole =
          send_all(connection.socket, own, limit) && receive_all(connection.socket, answer, limit);
      if (is_whole && answer.rank_0.magic == boot_magic && answer.rank_0.run == own.run) {
        return answer;
      }
      // Rank 0 of another run turns us away; ours may come yet.
      reason = limit.has_passed() ? "it has not answered" : "it has closed the connection";
    } else {
      reason = connection.reason;
    }
    if (limit.has_passed()) {
      throw timeout(omnibal::detail::message(
          function, "rank " + omnibal::detail::to_text(own.rank) + " has tried " + limit.text() +
                        " to reach rank 0 at " + to.text() + ": " + reason));
    }
    limit.pause();
  }
}

}  // namespace omnibal::inline v0::nccl::detail
