#pragma once

/// \file
/// The place of this process as its launcher has set it.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>

#include <charconv>
#include <cstddef>
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
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// Variables of the environment.
class launcher_variables {
 public:
  explicit launcher_variables(std::string_view function) : function_(function) {}

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
                       "with torchrun, mpirun or srun, or set RANK, WORLD_SIZE and LOCAL_RANK");
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

/// Reads `RANK`, `WORLD_SIZE` and `LOCAL_RANK`, as torchrun sets them, or what Open MPI's mpirun or
/// Slurm's srun set. Errors: `std::invalid_argument` where one is missing or is no number, or the
/// rank is outside the world; the text names the variable.
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
  detail::check_world("nccl::read_environment", result.place);
  return result;
}

}  // namespace omnibal::inline v0::nccl
