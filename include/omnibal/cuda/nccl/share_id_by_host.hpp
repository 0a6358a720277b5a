#pragma once

/// \file
/// An id of NCCL by a port of rank 0.

#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/detail/boot_host.hpp>
#include <omnibal/cuda/nccl/detail/boot_message.hpp>
#include <omnibal/cuda/nccl/detail/boot_socket.hpp>
#include <omnibal/cuda/nccl/detail/deadline.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

struct host_meeting {
  /// The host of rank 0, by name or number. Rank 0 listens on all its addresses.
  std::string host;
  std::uint16_t port = 0;
  /// What names this run where others may use the port at the same time.
  std::string run;
  /// Looking the name up may add the time of the resolver.
  std::chrono::milliseconds timeout = communicator_options{}.timeout;
};

struct share_id_by_host_fn {
  /// The id by which the ranks of a world join a communicator: rank 0 makes it and waits at a port;
  /// the others connect, again and again until it is there, and say who they are. Rank 0 answers
  /// when all have come, so that all ranks go on or none.
  ///
  /// Rank 0 needs a file descriptor for each rank. Errors: `std::invalid_argument` for a place
  /// outside the world, an empty host, port 0; `std::system_error` where rank 0 cannot listen,
  /// because the port is in use for instance; `nccl::timeout` where rank 0 cannot be reached, or is
  /// missing others, which the text names; on all ranks `nccl::mismatch` where one has another
  /// version of NCCL or another size of the world, or two have the same rank.
  [[nodiscard]] ncclUniqueId operator()(world const& place, host_meeting const& meeting) const {
    detail::check_world(name, place);
    detail::check_timeout(name, meeting.timeout);
    if (meeting.host.empty()) omnibal::detail::throw_invalid(name, "the host is empty");
    if (meeting.port == 0) omnibal::detail::throw_invalid(name, "the port is 0, must be positive");
    return meet(place, meeting, detail::hello_of(place, meeting.run));
  }

 private:
  static constexpr std::string_view name = "nccl::share_id_by_host";

  [[nodiscard]] static ncclUniqueId meet(world const& place, host_meeting const& meeting,
                                         detail::boot_hello const& hello) {
    detail::deadline limit(meeting.timeout);
    if (place.rank == 0) {
      ncclUniqueId const id = detail::new_id();
      if (place.size == 1) return id;
      detail::boot_host host(name, meeting.port, hello);
      host.gather(limit);
      host.answer_all(id, limit);
      return id;
    }
    auto const answer = detail::ask_host(name, {meeting.host, meeting.port}, hello, limit);
    detail::check_verdict(name, answer);
    return answer.id;
  }
};

/// An id by a port of rank 0; see `share_id_by_host_fn`.
inline constexpr share_id_by_host_fn share_id_by_host{};

}  // namespace omnibal::inline v0::nccl
