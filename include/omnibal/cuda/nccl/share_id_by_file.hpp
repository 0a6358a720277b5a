#pragma once

/// \file
/// An id of NCCL by a file that all ranks see.

#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/detail/boot_message.hpp>
#include <omnibal/cuda/nccl/detail/deadline.hpp>
#include <omnibal/cuda/nccl/share_id_by_file/boot_file.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

struct file_meeting {
  /// A file on a file system that all ranks share. Rank 0 writes it.
  std::string path;
  /// What names this run and no other, such as the id of the job and how often it was restarted: a
  /// file that an earlier run has left is told by it, and waited out.
  std::string run;
  std::chrono::milliseconds timeout = communicator_options{}.timeout;
};

struct share_id_by_file_fn {
  /// The id by which the ranks of a world join a communicator: rank 0 makes it and writes it under
  /// another name, which becomes `path` when it is complete; the others look for it, after pauses
  /// that grow from 10 milliseconds to a second. Neither follows a symbolic link. Who has made the
  /// communicator may remove the file, as `connect_by_file` does.
  ///
  /// Errors: `std::invalid_argument` for a place outside the world, an empty path or run;
  /// `std::system_error` where the file cannot be written or read; `nccl::timeout` where it does
  /// not come in time, with what was found instead; `nccl::mismatch` where rank 0 has another
  /// version of NCCL or another size of the world. What is wrong on one rank the others learn by
  /// the timeout of the communicator alone.
  [[nodiscard]] ncclUniqueId operator()(world const& place, file_meeting const& meeting) const {
    detail::check_world(name, place);
    detail::check_timeout(name, "meeting.timeout", meeting.timeout);
    if (meeting.path.empty()) omnibal::detail::throw_invalid(name, "the path is empty");
    if (meeting.run.empty()) {
      omnibal::detail::throw_invalid(
          name, "the name of the run is empty, by which a file of an earlier run is told");
    }
    detail::boot_answer answer;
    if (place.rank == 0) {
      answer.rank_0 = detail::hello_of(place, meeting.run);
      answer.id = detail::new_id();
      detail::write_whole(name, meeting.path, answer);
      return answer.id;
    }
    auto const hello = detail::hello_of(place, meeting.run);
    answer = read_when_there(meeting, hello);
    detail::check_fits(name, answer.rank_0, hello);
    return answer.id;
  }

 private:
  static constexpr std::string_view name = "nccl::share_id_by_file";
  static constexpr std::chrono::milliseconds longest_pause{1000};

  [[nodiscard]] static detail::boot_answer read_when_there(file_meeting const& meeting,
                                                           detail::boot_hello const& hello) {
    detail::deadline const limit(meeting.timeout);
    for (std::chrono::milliseconds pause(10);; pause = std::min(2 * pause, longest_pause)) {
      detail::boot_answer answer;
      auto const found = detail::read_whole(name, meeting.path, answer);
      bool const is_ours = found == detail::file_state::whole &&
                           answer.rank_0.magic == hello.magic && answer.rank_0.run == hello.run;
      if (is_ours) return answer;
      if (limit.has_passed()) {
        std::string const reason =
            found == detail::file_state::missing ? "does not exist"
            : found == detail::file_state::other || answer.rank_0.magic != hello.magic
                ? "is not one of omnibal"
                : "was left by another run";
        throw timeout(omnibal::detail::message(
            name, "rank " + omnibal::detail::to_text(hello.rank) + " has waited " + limit.text() +
                      " for rank 0, and the file '" + meeting.path + "' " + reason));
      }
      std::this_thread::sleep_for(std::min(pause, limit.left()));
    }
  }
};

/// An id by a file that all ranks see; see `share_id_by_file_fn`.
inline constexpr share_id_by_file_fn share_id_by_file{};

}  // namespace omnibal::inline v0::nccl
