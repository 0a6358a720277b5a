#pragma once

/// \file
/// Communicators of NCCL from nothing.

#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/environment.hpp>
#include <omnibal/cuda/nccl/share_id_by_comm.hpp>
#include <omnibal/cuda/nccl/share_id_by_file.hpp>
#include <omnibal/cuda/nccl/share_id_by_host.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>
#include <unistd.h>

namespace omnibal::inline v0::nccl {

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

struct connect_by_host_fn {
  /// A communicator of a world that meets at a port of rank 0, on the current device of each rank;
  /// see `share_id_by_host`.
  [[nodiscard]] communicator operator()(world const& place, host_meeting const& meeting,
                                        communicator_options const& options = {}) const {
    ncclUniqueId const id = share_id_by_host(place, meeting);
    return {place, id, options};
  }
};

/// A communicator by a port of rank 0; see `connect_by_host_fn`.
inline constexpr connect_by_host_fn connect_by_host{};

/// Which device a process takes.
enum class device_choice { of_local_rank, current };

struct environment_options {
  /// What is added to `MASTER_PORT`, at which the store of torchrun listens.
  std::uint16_t port_step = 1;
  /// By default the device whose number is the local rank, modulo the visible devices: launchers
  /// that show each process one device are served too.
  device_choice device = device_choice::of_local_rank;
};

struct connect_by_environment_fn {
  /// A communicator of the processes that torchrun, mpirun or srun has started, one for each rank;
  /// see `read_environment` and `share_id_by_host`. Makes the device of the local rank the current
  /// one. Errors: those of both; `gpu::error` where there is no driver or no device.
  [[nodiscard]] communicator operator()(communicator_options const& options = {},
                                        environment_options const& choices = {}) const {
    constexpr std::string_view name = "nccl::connect_by_environment";
    environment const found = read_environment();
    host_meeting meeting{found.host, 0, found.run, options.timeout};
    if (found.place.size > 1) {
      if (meeting.host.empty()) {
        omnibal::detail::throw_invalid(name, "the variable MASTER_ADDR is not set");
      }
      std::uint32_t const port = std::uint32_t{found.port} + choices.port_step;
      if (found.port == 0 || port > 0xffff) {
        omnibal::detail::throw_invalid(name, "the variable MASTER_PORT is not set or too large");
      }
      meeting.port = static_cast<std::uint16_t>(port);
    } else {
      meeting = {"localhost", 1, found.run, options.timeout};
    }
    if (choices.device == device_choice::of_local_rank) {
      int devices = 0;
      gpu::check(cudaGetDeviceCount(&devices));
      gpu::check(cudaSetDevice(static_cast<int>(found.local_rank) % devices));
    }
    return connect_by_host(found.place, meeting, options);
  }
};

/// A communicator by the variables of a launcher; see `connect_by_environment_fn`.
inline constexpr connect_by_environment_fn connect_by_environment{};

}  // namespace omnibal::inline v0::nccl
