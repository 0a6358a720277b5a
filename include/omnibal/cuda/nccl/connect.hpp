// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Start of NCCL: ranks share an id by a communicator, a file or the environment, and connect.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/error.hpp>
#include <omnibal/cuda/nccl/find_nodes.hpp>
#include <omnibal/cuda/nccl/library.hpp>
#include <omnibal/detail/agreement.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <nccl.h>
#include <unistd.h>

namespace omnibal::inline v0::nccl::detail {

/// The first bytes of every message: "omnibal" and the version of the messages.
inline constexpr std::uint64_t boot_magic = 0x6f6d6e6962616c01;

/// The message by which a rank introduces itself. All members except `rank` must be equal on all
/// ranks.
struct boot_hello {
  std::uint64_t magic = boot_magic;
  /// The digest of the text that names the run.
  std::uint64_t run = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::int32_t nccl_version = 0;
  std::uint32_t unused = 0;
};

/// The message of rank 0 to the other ranks.
struct boot_answer {
  boot_hello rank_0;
  ncclUniqueId id{};
};

[[nodiscard]] inline boot_hello hello_of(world const& place, std::string_view run) {
  boot_hello result;
  result.run = digest_of_text(run);
  result.rank = static_cast<std::uint32_t>(place.rank);
  result.size = static_cast<std::uint32_t>(place.size);
  int version = 0;
  check(calls().get_version(&version));
  result.nccl_version = version;
  return result;
}

/// Throws `mismatch` unless the message of a rank agrees with the message of rank 0.
inline void check_fits(std::string_view function, boot_hello const& rank_0,
                       boot_hello const& found) {
  using omnibal::detail::message;
  if (found.nccl_version != rank_0.nccl_version) {
    throw mismatch(message(function, "rank ", found.rank, " has NCCL ",
                           version_text(found.nccl_version), ", rank 0 has NCCL ",
                           version_text(rank_0.nccl_version)));
  }
  if (found.size != rank_0.size) {
    throw mismatch(message(function, "rank ", found.rank, " is in a world of ", found.size,
                           " ranks, rank 0 in one of ", rank_0.size));
  }
}

/// Returns a new id. If the variable NCCL_COMM_ID is set, NCCL returns the same id in the whole
/// run.
[[nodiscard]] inline ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(calls().get_unique_id(&id));
  return id;
}

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

struct share_id_by_comm_fn {
  /// Shares the id by which the ranks of `comm` join a communicator of NCCL. The id is equal on all
  /// ranks. `comm` may use MPI, a process group of the trainer behind an adapter of twenty lines,
  /// or another communicator of NCCL.
  ///
  /// A collective call. Complexity: one collective of `comm`. Memory: about 190 bytes per rank.
  /// Errors on all ranks: the exception of NCCL on rank 0, and `communication_error` on the other
  /// ranks; `nccl::mismatch` for different versions of NCCL; the errors of the communicator.
  template <omnibal::communicator Comm>
  [[nodiscard]] ncclUniqueId operator()(Comm&& comm) const {
    world const place{.rank = omnibal::detail::own_rank(comm),
                      .size = omnibal::detail::rank_count(comm)};
    omnibal::detail::agreement<facts> on_id;
    auto const reports = on_id.run({name, "collective calls"}, comm, [&](auto& report) {
      report.facts.hello = detail::hello_of(place, "");
      if (place.rank == 0) report.facts.id = detail::new_id();
    });
    for (std::size_t rank = 1; rank < reports.size(); ++rank) {
      detail::check_fits(name, reports[0].facts.hello, reports[rank].facts.hello);
    }
    return reports[0].facts.id;
  }

 private:
  static constexpr std::string_view name = "nccl::share_id_by_comm";

  struct facts {
    detail::boot_hello hello;
    ncclUniqueId id{};
  };
};

/// Shares an id among the ranks of a communicator; see `share_id_by_comm_fn`.
inline constexpr share_id_by_comm_fn share_id_by_comm{};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// Owns a file descriptor.
class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

[[noreturn]] inline void throw_system(std::string_view function, std::string_view text, int code) {
  throw std::system_error(code, std::generic_category(), omnibal::detail::message(function, text));
}

enum class file_state { missing, other, whole };

/// Writes the file under another name and renames it, so that no rank reads an incomplete file.
inline void write_whole(std::string_view function, std::string const& path,
                        boot_answer const& answer) {
  // The draft is a new file with an unpredictable name.
  std::string draft = path + ".XXXXXX";
  descriptor const file(::mkostemp(draft.data(), O_CLOEXEC));
  if (!file.is_open()) throw_system(function, "cannot write '" + draft + "'", errno);
  bool const is_written = ::write(file.get(), &answer, sizeof(answer)) == sizeof(answer) &&
                          ::fsync(file.get()) == 0 && ::rename(draft.c_str(), path.c_str()) == 0;
  if (is_written) return;
  int const code = errno;
  ::unlink(draft.c_str());
  throw_system(function, "cannot write '" + path + "'", code);
}

/// Reads the file. Returns `missing` if it does not exist, `whole` if it has the size of an answer,
/// and `other` otherwise.
[[nodiscard]] inline file_state read_whole(std::string_view function, std::string const& path,
                                           boot_answer& answer) {
  // Network file systems cache the absence of a file until its folder is opened again.
  std::size_t const slash = path.rfind('/');
  std::string const folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  descriptor const opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) {
    // Handles of files that were replaced are stale on network file systems.
    if (errno == ENOENT || errno == ESTALE) return file_state::missing;
    throw_system(function, "cannot read '" + path + "'", errno);
  }
  ssize_t const bytes = ::read(file.get(), &answer, sizeof(answer));
  if (bytes < 0 && errno == ESTALE) return file_state::missing;
  if (bytes < 0) throw_system(function, "cannot read '" + path + "'", errno);
  return bytes == static_cast<ssize_t>(sizeof(answer)) ? file_state::whole : file_state::other;
}

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

/// The file by which the ranks of a world share an id, for `share_id_by_file`.
struct file_meeting {
  /// A file on a file system that all ranks share. Rank 0 writes it.
  std::string path;
  /// A unique name of this run, such as the id of the job and the number of its restarts. The name
  /// identifies a file of an earlier run, and the ranks wait until this file is replaced.
  std::string run;
  std::chrono::milliseconds timeout = communicator_options{}.timeout;
};

struct share_id_by_file_fn {
  /// Shares the id by which the ranks of a world join a communicator through a file. Rank 0 makes
  /// the id and writes it under another name, which becomes `path` when the file is complete. The
  /// other ranks look for the file, after pauses that grow from 10 milliseconds to a second. No
  /// rank follows a symbolic link. After all ranks have joined the communicator, the file may be
  /// removed, as `connect_by_file` does.
  ///
  /// Errors: `std::invalid_argument` for a place outside the world, an empty path or run;
  /// `std::system_error` if the file cannot be written or read. Further errors: `nccl::timeout` if
  /// the file does not arrive in time, with a description of what was found instead;
  /// `nccl::mismatch` if rank 0 has another version of NCCL or another size of the world. The other
  /// ranks notice an error of one rank only by the timeout of the communicator.
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
        throw timeout(omnibal::detail::message(name, "rank ", hello.rank, " has waited ",
                                               limit.text(), " for rank 0, and the file '",
                                               meeting.path, "' ", reason));
      }
      std::this_thread::sleep_for(std::min(pause, limit.left()));
    }
  }
};

/// Shares an id by a file that all ranks can access; see `share_id_by_file_fn`.
inline constexpr share_id_by_file_fn share_id_by_file{};

/// The place of a process in its job, as set by a launcher.
struct environment {
  world place;
  /// The rank among the processes of this node, which chooses the device.
  std::size_t local_rank = 0;
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// Returns the number in the first of these environment variables that is set.
[[nodiscard]] inline std::size_t number_of_variable(std::string_view function,
                                                    std::initializer_list<char const*> names,
                                                    std::size_t largest) {
  for (char const* const name : names) {
    char const* const value = std::getenv(name);
    if (value == nullptr) continue;
    std::string_view const text(value);
    std::size_t result = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (code == std::errc() && end == text.data() + text.size() && result <= largest) return result;
    omnibal::detail::throw_invalid(function, "the variable ", name, " is '", value,
                                   "', must be a number up to ", largest);
  }
  omnibal::detail::throw_invalid(
      function, "the variable ", *names.begin(),
      " is not set; start the program "
      "with torchrun, mpirun or srun, or set RANK, WORLD_SIZE and LOCAL_RANK");
}

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

/// Reads `RANK`, `WORLD_SIZE` and `LOCAL_RANK`, as torchrun sets them, or the variables of Open
/// MPI's mpirun or Slurm's srun. Errors: `std::invalid_argument` if a variable is missing or is no
/// number, or if the rank is outside the world; the text names the variable.
[[nodiscard]] inline environment read_environment() {
  constexpr std::string_view name = "nccl::read_environment";
  auto const number = [&](std::initializer_list<char const*> names) {
    return detail::number_of_variable(name, names, 0x7fffffff);
  };
  environment result;
  result.place.rank = number({"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"});
  result.place.size = number({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
  result.local_rank = number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"});
  detail::check_world(name, result.place);
  return result;
}

struct connect_by_comm_fn {
  /// Creates a communicator of NCCL for the ranks of `comm`, on the current device of each rank.
  /// Errors: the errors of `share_id_by_comm` and of the constructor of `communicator`.
  template <omnibal::communicator Comm>
  [[nodiscard]] communicator operator()(Comm&& comm,
                                        communicator_options const& options = {}) const {
    ncclUniqueId const id = share_id_by_comm(comm);
    return {{.rank = omnibal::detail::own_rank(comm), .size = omnibal::detail::rank_count(comm)},
            id,
            options};
  }
};

/// Creates a communicator for the ranks of another communicator; see `connect_by_comm_fn`.
inline constexpr connect_by_comm_fn connect_by_comm{};

struct connect_by_file_fn {
  /// Creates a communicator of a world that shares an id by a file, on the current device of each
  /// rank; see `share_id_by_file`. Rank 0 removes the file when all ranks have joined.
  [[nodiscard]] communicator operator()(world const& place, file_meeting const& meeting,
                                        communicator_options const& options = {}) const {
    ncclUniqueId const id = share_id_by_file(place, meeting);
    communicator result(place, id, options);
    if (place.rank == 0) static_cast<void>(::unlink(meeting.path.c_str()));
    return result;
  }
};

/// Creates a communicator by a file; see `connect_by_file_fn`.
inline constexpr connect_by_file_fn connect_by_file{};

/// The device that a process uses.
enum class device_choice {
  /// The device whose number is the local rank, modulo the visible devices. This choice also works
  /// for launchers that show each process one device.
  of_local_rank,
  current
};

struct connect_by_environment_fn {
  /// Creates a communicator of the processes that torchrun, mpirun or srun has started, one for
  /// each rank; see `read_environment`. The ranks connect by the mechanism of NCCL. On all ranks
  /// the variable `NCCL_COMM_ID` contains the `host:port` of rank 0. A world of one rank does not
  /// require the variable. Makes the chosen device the current one. Errors: the errors of
  /// `read_environment` and of `communicator`; `std::invalid_argument` if `NCCL_COMM_ID` is
  /// missing; `library_error` if there is no NCCL; `gpu::error` if there is no driver or no device.
  [[nodiscard]] communicator operator()(communicator_options const& options = {},
                                        device_choice device = device_choice::of_local_rank) const {
    environment const found = read_environment();
    static_cast<void>(loaded_library());
    if (found.place.size > 1 && std::getenv("NCCL_COMM_ID") == nullptr) {
      omnibal::detail::throw_invalid(
          "nccl::connect_by_environment",
          "the variable NCCL_COMM_ID is not set, must be host:port of rank 0");
    }
    if (device == device_choice::of_local_rank) {
      int devices = 0;
      gpu::check(cudaGetDeviceCount(&devices));
      gpu::check(cudaSetDevice(static_cast<int>(found.local_rank) % devices));
    }
    // NCCL makes the same id from the variable on every rank.
    return {found.place, detail::new_id(), options};
  }
};

/// Creates a communicator by the variables of a launcher; see `connect_by_environment_fn`.
inline constexpr connect_by_environment_fn connect_by_environment{};

}  // namespace omnibal::inline v0::nccl
