#pragma once

/// \file
/// The arguments of collectives, as one rank can check them.

#include <omnibal/check.hpp>
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

inline void check_size(std::string_view function, std::string_view argument, std::uint64_t size,
                       std::uint64_t wanted) {
  if (size == wanted) return;
  throw_invalid(function,
                std::string(argument) + " is " + to_text(size) + ", must be " + to_text(wanted));
}

/// Throws unless there is a count for each rank and they add up to so many bytes.
inline void check_counts(std::string_view function, std::string_view argument,
                         std::span<std::uint64_t const> counts, std::size_t ranks,
                         std::size_t bytes) {
  check_size(function, "the number of " + std::string(argument), counts.size(), ranks);
  std::uint64_t sum = 0;
  for (std::uint64_t const count : counts) {
    checked_add(function, "the sum of the " + std::string(argument), sum, count);
  }
  check_size(function, "the sum of the " + std::string(argument), sum, bytes);
}

}  // namespace omnibal::inline v0::detail
