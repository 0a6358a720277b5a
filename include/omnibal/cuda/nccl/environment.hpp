#pragma once

/// \file
/// The place of this process as its launcher has set it.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>

namespace omnibal::inline v0::nccl {

/// What a launcher tells a process.
struct environment {
  world place;
  /// The rank among the processes of this node, which chooses the device.
  std::size_t local_rank = 0;
  /// The host of rank 0; empty where nothing names it.
  std::string host;
  /// The port that the launcher has named; 0 where it has not.
  std::uint16_t port = 0;
  /// A name of this run; empty where there is none.
  std::string run;
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// Variables of the environment.
class launcher_variables {
 public:
  explicit launcher_variables(std::string_view function) : function_(function) {}

  /// The first variable that is set.
  [[nodiscard]] static char const* find(std::initializer_list<char const*> names) {
    for (char const* const name : names) {
      if (char const* const value = std::getenv(name); value != nullptr) return value;
    }
    return nullptr;
  }
  [[nodiscard]] static std::string text(std::initializer_list<char const*> names) {
    char const* const value = find(names);
    return value == nullptr ? "" : value;
  }

  /// The number in the first variable that is set.
  [[nodiscard]] std::size_t number(std::initializer_list<char const*> names,
                                   std::size_t largest) const {
    for (char const* const name : names) {
      if (char const* const value = std::getenv(name); value != nullptr) {
        return parse(name, value, largest);
      }
    }
    omnibal::detail::throw_invalid(
        function_, std::string("the variable ") + *names.begin() +
                       " is not set; start the program "
                       "with torchrun, mpirun or srun, or set RANK, WORLD_SIZE, LOCAL_RANK, "
                       "MASTER_ADDR and MASTER_PORT");
  }

 private:
  [[nodiscard]] std::size_t parse(char const* name, std::string_view value,
                                  std::size_t largest) const {
    std::size_t result = 0;
    auto const [end, code] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (code != std::errc() || end != value.data() + value.size() || result > largest) {
      omnibal::detail::throw_invalid(
          function_, std::string("the variable ") + name + " is '" + std::string(value) +
                         "', must be a number up to " + omnibal::detail::to_text(largest));
    }
    return result;
  }

  std::string_view function_;
};

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

/// Reads `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `MASTER_ADDR` and `MASTER_PORT`, as torchrun sets
/// them, or for the first three what Open MPI's mpirun or Slurm's srun set. The name of the run is
/// that of torchrun with its number of restarts, or the job of Slurm. Errors:
/// `std::invalid_argument` where a rank or the size is missing, or a variable is no number; its
/// text names the variable.
[[nodiscard]] inline environment read_environment() {
  constexpr std::size_t most_ranks = 0x7fffffff;
  detail::launcher_variables const variables("nccl::read_environment");
  environment result;
  result.place.rank =
      variables.number({"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}, most_ranks);
  result.place.size =
      variables.number({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"}, most_ranks);
  result.local_rank =
      variables.number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}, most_ranks);
  result.host = variables.text({"MASTER_ADDR"});
  if (variables.find({"MASTER_PORT"}) != nullptr) {
    result.port = static_cast<std::uint16_t>(variables.number({"MASTER_PORT"}, 0xffff));
  }
  result.run = variables.text({"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"}) + "." +
               variables.text({"TORCHELASTIC_RESTART_COUNT", "SLURM_STEP_ID"});
  detail::check_world("nccl::read_environment", result.place);
  return result;
}

}  // namespace omnibal::inline v0::nccl
