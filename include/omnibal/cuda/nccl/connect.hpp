#pragma once

/// \file
/// Communicators of NCCL from nothing: by another communicator, a file, or the variables of a
/// launcher.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/share_id.hpp>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>

#include <cuda_runtime_api.h>
#include <unistd.h>

namespace omnibal::inline v0::nccl {

/// What a launcher tells a process.
struct environment {
  world place;
  /// The rank among the processes of this node, which chooses the device.
  std::size_t local_rank = 0;
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// The number in the first variable that is set.
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
    omnibal::detail::throw_invalid(function, std::string("the variable ") + name + " is '" + value +
                                                 "', must be a number up to " +
                                                 omnibal::detail::to_text(largest));
  }
  omnibal::detail::throw_invalid(
      function, std::string("the variable ") + *names.begin() +
                    " is not set; start the program "
                    "with torchrun, mpirun or srun, or set RANK, WORLD_SIZE and LOCAL_RANK");
}

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

/// Reads `RANK`, `WORLD_SIZE` and `LOCAL_RANK`, as torchrun sets them, or what Open MPI's mpirun or
/// Slurm's srun set. Errors: `std::invalid_argument` where one is missing or is no number, or the
/// rank is outside the world; the text names the variable.
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
  /// A communicator of NCCL for the ranks of another one, on the current device of each; see
  /// `share_id_by_comm` and the constructor of `communicator`, also for the errors.
  template <omnibal::communicator Comm>
  [[nodiscard]] communicator operator()(Comm&& comm,
                                        communicator_options const& options = {}) const {
    ncclUniqueId const id = share_id_by_comm(comm);
    return {{.rank = omnibal::detail::own_rank(comm), .size = omnibal::detail::rank_count(comm)},
            id,
            options};
  }
};

/// A communicator for the ranks of another one; see `connect_by_comm_fn`.
inline constexpr connect_by_comm_fn connect_by_comm{};

struct connect_by_file_fn {
  /// A communicator of a world that meets by a file, on the current device of each rank; see
  /// `share_id_by_file`. Rank 0 removes the file when all have come.
  [[nodiscard]] communicator operator()(world const& place, file_meeting const& meeting,
                                        communicator_options const& options = {}) const {
    ncclUniqueId const id = share_id_by_file(place, meeting);
    communicator result(place, id, options);
    if (place.rank == 0) static_cast<void>(::unlink(meeting.path.c_str()));
    return result;
  }
};

/// A communicator by a file; see `connect_by_file_fn`.
inline constexpr connect_by_file_fn connect_by_file{};

/// Which device a process takes.
enum class device_choice {
  /// The device whose number is the local rank, modulo the visible devices: launchers that show
  /// each process one device are served too.
  of_local_rank,
  current
};

struct connect_by_environment_fn {
  /// A communicator of the processes that torchrun, mpirun or srun has started, one for each rank;
  /// see `read_environment`. They meet as NCCL itself does it, at the `host:port` of rank 0 that
  /// the variable `NCCL_COMM_ID` names on all of them; a world of one needs none. Makes the chosen
  /// device the current one. Errors: those of `read_environment` and of `communicator`;
  /// `std::invalid_argument` where `NCCL_COMM_ID` is missing; `gpu::error` where there is no driver
  /// or no device.
  [[nodiscard]] communicator operator()(communicator_options const& options = {},
                                        device_choice device = device_choice::of_local_rank) const {
    environment const found = read_environment();
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
    // NCCL makes the same id of the variable on every rank.
    return {found.place, detail::new_id(), options};
  }
};

/// A communicator by the variables of a launcher; see `connect_by_environment_fn`.
inline constexpr connect_by_environment_fn connect_by_environment{};

}  // namespace omnibal::inline v0::nccl
