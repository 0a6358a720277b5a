// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The check that arguments of collectives are equal on all ranks.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The words of error texts of an agreement.
struct agreement_names {
  std::string_view function;
  /// The name of the value that must be equal on all ranks.
  std::string_view compared;
  /// True if the digests are numbers, which error texts then contain.
  bool is_number = false;
};

/// The report of a rank to the other ranks. `digest` must be equal on all ranks.
template <class Facts>
struct rank_report {
  std::uint64_t has_failed = 0;
  std::uint64_t digest = 0;
  Facts facts{};
};

/// Throws for the failure of another rank; `why` is the text of its exception.
[[noreturn]] inline void throw_remote_failure(std::string_view function, std::size_t rank,
                                              std::string_view why) {
  throw communication_error(message(function, "rank ", rank, " has failed: ", why));
}

/// Throws on all ranks; `failed` is the lowest rank that has failed. A rank with its own exception
/// throws that exception. The other ranks throw a `communication_error` with the beginning of the
/// text of rank `failed`, which a collective sends. Therefore successful calls send no text.
template <class Comm>
[[noreturn]] void throw_failure(std::string_view function, Comm& comm, std::size_t failed,
                                std::exception_ptr const& own) {
  std::string text = own == nullptr ? "" : text_of(own);
  // The texts of all ranks name the function anyway.
  if (std::string const before = message(function, ""); text.starts_with(before)) {
    text.erase(0, before.size());
  }
  constexpr std::size_t most = 160;
  text.resize(most);
  std::vector<char> texts(most * rank_count(comm));
  comm.all_gather(std::as_bytes(std::span(std::as_const(text))),
                  std::as_writable_bytes(std::span(texts)));
  if (own != nullptr) std::rethrow_exception(own);
  std::string_view const why(texts.data() + failed * most, most);
  throw_remote_failure(function, failed, why.substr(0, why.find('\0')));
}

/// An exchange of reports, in which all ranks find failures and different arguments. Later calls
/// reuse its memory.
template <class Facts>
class agreement {
 public:
  /// Calls `work(report)` and gathers the reports. If `work` throws on one rank, all ranks throw:
  /// this rank its own exception, the others a `communication_error` with the reason. If digests
  /// differ, all ranks throw `std::invalid_argument`.
  template <class Comm, class Work>
  std::span<rank_report<Facts> const> run(agreement_names const& names, Comm& comm,
                                          Work const& work) {
    start(comm, work);
    rank_report<Facts> const own = reports_[own_rank(comm)];
    comm.all_gather(std::as_bytes(std::span<rank_report<Facts> const>(&own, 1)),
                    std::as_writable_bytes(std::span(reports_)));
    return finish(names, comm);
  }

  /// Starts an agreement that `finish` completes. Between the two calls, the caller sends the
  /// report of this rank as part of a message, and writes the reports of the other ranks to
  /// `reports`.
  template <class Comm, class Work>
  void start(Comm& comm, Work const& work) {
    error_ = nullptr;
    reports_.assign(rank_count(comm), {});
    rank_report<Facts>& own = reports_[own_rank(comm)];
    try {
      work(own);
    } catch (...) {
      error_ = std::current_exception();
      own = {};
      own.has_failed = 1;
    }
  }
  template <class Comm>
  std::span<rank_report<Facts> const> finish(agreement_names const& names, Comm& comm) {
    auto const error = std::exchange(error_, nullptr);
    for (std::size_t rank = 0; rank != reports_.size(); ++rank) {
      if (reports_[rank].has_failed != 0) throw_failure(names.function, comm, rank, error);
    }
    for (std::size_t rank = 1; rank < reports_.size(); ++rank) {
      if (reports_[rank].digest == reports_[0].digest) continue;
      std::string const values =
          joined_text(": ", reports_[0].digest, " and ", reports_[rank].digest);
      throw_invalid(names.function, "ranks 0 and ", rank, " have different ", names.compared,
                    names.is_number ? values : "");
    }
    return reports_;
  }

  [[nodiscard]] bool has_failed() const { return error_ != nullptr; }
  [[nodiscard]] std::span<rank_report<Facts>> reports() { return reports_; }

 private:
  std::exception_ptr error_;
  std::vector<rank_report<Facts>> reports_;
};

inline void check_size(std::string_view function, std::string_view argument, std::uint64_t size,
                       std::uint64_t wanted) {
  if (size == wanted) return;
  throw_invalid(function, argument, " is ", size, ", must be ", wanted);
}

/// Throws unless there is a count for each rank and the counts add up to `bytes`.
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
