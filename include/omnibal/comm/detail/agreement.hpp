#pragma once

/// \file
/// One collective by which ranks learn that all can go on.

#include <omnibal/check.hpp>
#include <omnibal/comm/communication_error.hpp>
#include <omnibal/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// What error texts say about an agreement.
struct agreement_names {
  std::string_view function;
  /// What must be equal on all ranks.
  std::string_view compared;
};

/// What a rank tells the others. `digest` must be equal on all ranks.
template <class Facts>
struct rank_report {
  std::uint64_t has_failed = 0;
  std::uint64_t digest = 0;
  Facts facts{};
};

[[noreturn]] inline void throw_remote_failure(std::string_view function, std::size_t rank) {
  throw communication_error(message(function, "rank " + to_text(rank) + " has failed"));
}

/// Keeps its memory.
template <class Facts>
class agreement {
 public:
  /// Calls `work(report)` and gathers the reports. Throws on all ranks where it threw on one, there
  /// its own exception and elsewhere a `communication_error`, and `std::invalid_argument` on all
  /// ranks where digests differ.
  template <class Comm, class Work>
  std::span<rank_report<Facts> const> run(agreement_names const& names, Comm& comm,
                                          Work const& work) {
    rank_report<Facts> own;
    std::exception_ptr error;
    try {
      work(own);
    } catch (...) {
      error = std::current_exception();
      own = {};
      own.has_failed = 1;
    }
    reports_.resize(rank_count(comm));
    comm.all_gather(std::as_bytes(std::span<rank_report<Facts> const>(&own, 1)),
                    std::as_writable_bytes(std::span(reports_)));
    if (error != nullptr) std::rethrow_exception(error);
    for (std::size_t rank = 0; rank != reports_.size(); ++rank) {
      if (reports_[rank].has_failed != 0) throw_remote_failure(names.function, rank);
    }
    for (std::size_t rank = 1; rank < reports_.size(); ++rank) {
      if (reports_[rank].digest == reports_[0].digest) continue;
      throw_invalid(names.function, "ranks 0 and " + to_text(rank) + " have different " +
                                        std::string(names.compared));
    }
    return reports_;
  }

 private:
  std::vector<rank_report<Facts>> reports_;
};

}  // namespace omnibal::inline v0::detail
