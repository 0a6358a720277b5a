#pragma once

/// \file
/// An id of NCCL for the ranks of any communicator.

#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/nccl/detail/boot_message.hpp>
#include <omnibal/cuda/nccl/error.hpp>
#include <omnibal/detail/agreement.hpp>

#include <cstddef>
#include <string_view>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

struct share_id_by_comm_fn {
  /// The id by which the ranks of `comm` join a communicator of NCCL, equal on all of them: over
  /// MPI, over a trainer's process group that is a communicator in twenty lines, or over another
  /// communicator of NCCL.
  ///
  /// A collective call of one collective. Memory: about 190 bytes per rank. Errors on all ranks:
  /// what NCCL throws on rank 0, elsewhere `communication_error`; `nccl::mismatch` for different
  /// versions of NCCL; those of the communicator.
  template <omnibal::communicator Comm>
  [[nodiscard]] ncclUniqueId operator()(Comm&& comm) const {
    world const place{.rank = omnibal::detail::own_rank(comm),
                      .size = omnibal::detail::rank_count(comm)};
    omnibal::detail::agreement<facts> on_id;
    auto const reports = on_id.run({name, ""}, comm, [&](auto& report) {
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

/// An id for the ranks of a communicator; see `share_id_by_comm_fn`.
inline constexpr share_id_by_comm_fn share_id_by_comm{};

}  // namespace omnibal::inline v0::nccl
