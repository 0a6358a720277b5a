// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Communicators over MPI.

#include <omnibal/check.hpp>
#include <omnibal/detail/agreement.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

namespace omnibal::inline v0::mpi {

/// The exception of a failed MPI call. Its text contains the call, MPI's text, the code, the file
/// and the line.
class error : public std::runtime_error {
 public:
  error(int code, char const* call, char const* file, int line)
      : std::runtime_error(text(code, call, file, line)), code_(code) {}

  /// Returns MPI's error code.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  [[nodiscard]] static std::string text(int code, char const* call, char const* file, int line) {
    char reason[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS) length = 0;
    return omnibal::detail::joined_text(call, ": ",
                                        std::string_view(reason, static_cast<std::size_t>(length)),
                                        " (code ", code, ") at ", file, ":", line);
  }

  int code_;
};

}  // namespace omnibal::inline v0::mpi

namespace omnibal::inline v0::mpi::detail {

/// Throws `error` unless `code` is `MPI_SUCCESS`; `call` is the name of the MPI function.
inline void check(int code, char const* call, char const* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (code != MPI_SUCCESS) throw error(code, call, file, line);
}

/// A number of bytes as a count and a data type of MPI, because counts of MPI have 32 bits. A block
/// above `largest_count` bytes is one element of a derived type, which consists of pieces of
/// `largest_count` bytes and the remaining bytes.
class byte_block {
 public:
  explicit byte_block(std::uint64_t bytes, int largest_count = std::numeric_limits<int>::max()) {
    auto const piece_bytes = static_cast<std::uint64_t>(largest_count);
    if (bytes <= piece_bytes) {
      count_ = static_cast<int>(bytes);
      return;
    }
    derive(bytes / piece_bytes, static_cast<int>(bytes % piece_bytes), largest_count);
  }
  byte_block(byte_block const&) = delete;
  byte_block& operator=(byte_block const&) = delete;
  ~byte_block() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] MPI_Datatype type() const { return type_; }

 private:
  void derive(std::uint64_t pieces, int rest, int piece_bytes) {
    // The number of pieces fits: 2^31 pieces of the default size are 2^62 bytes, more than any
    // memory has.
    int const piece_count = static_cast<int>(pieces);
    MPI_Datatype all_pieces = MPI_DATATYPE_NULL;
    check(MPI_Type_vector(piece_count, piece_bytes, piece_bytes, MPI_BYTE, &all_pieces),
          "MPI_Type_vector");
    int const lengths[] = {1, rest};
    MPI_Aint const places[] = {0, MPI_Aint{piece_count} * piece_bytes};
    MPI_Datatype const types[] = {all_pieces, MPI_BYTE};
    MPI_Datatype whole = MPI_DATATYPE_NULL;
    int const code = MPI_Type_create_struct(2, lengths, places, types, &whole);
    MPI_Type_free(&all_pieces);
    check(code, "MPI_Type_create_struct");
    type_ = whole;
    count_ = 1;
    if (int const committed = MPI_Type_commit(&type_); committed != MPI_SUCCESS) {
      MPI_Type_free(&type_);
      type_ = MPI_BYTE;
      check(committed, "MPI_Type_commit");
    }
  }

  MPI_Datatype type_ = MPI_BYTE;
  int count_ = 0;
};

}  // namespace omnibal::inline v0::mpi::detail

namespace omnibal::inline v0::mpi {

/// A communicator that borrows an `MPI_Comm`, such as a trainer's process group of data-parallel
/// ranks. Models `exchanging_communicator`. The handle must stay valid. Messages use the tag 27'721
/// of this communicator.
///
/// Sizes above 2^31 bytes are legal. Two ranks with no data for each other exchange no message.
/// Determinism: portable among equal ranks. Errors: `std::invalid_argument` if sizes do not add up;
/// `mpi::error` if MPI fails and the error handler of the communicator is `MPI_ERRORS_RETURN`.
/// `mpi::communicator` sets that handler; the default handler ends the program. Only MPI notices a
/// rank that leaves while others wait for it. MPI ends the program when the process of that rank
/// dies.
class communicator_ref {
 public:
  explicit communicator_ref(MPI_Comm comm) : comm_(comm) {
    detail::check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    detail::check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  }

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
  [[nodiscard]] MPI_Comm get() const { return comm_; }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    omnibal::detail::check_size("mpi::all_gather", "the size of out", out.size(),
                                in.size() * size());
    detail::byte_block const block(in.size());
    detail::check(MPI_Allgather(in.data(), block.count(), block.type(), out.data(), block.count(),
                                block.type(), comm_),
                  "MPI_Allgather");
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    constexpr std::string_view name = "mpi::all_to_all_v";
    omnibal::detail::check_counts(name, "send counts", send_counts, size(), in.size());
    omnibal::detail::check_counts(name, "receive counts", receive_counts, size(), out.size());
    requests_.clear();
    requests_.reserve(2 * size());
    post("MPI_Irecv", MPI_Irecv, out.data(), receive_counts);
    post("MPI_Isend", MPI_Isend, in.data(), send_counts);
    detail::check(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
  }

 private:
  static constexpr int tag = 27'721;

  /// Starts a message to, or from, each rank whose count is not zero, by calls of `start`.
  template <class Start, class Byte>
  void post(char const* call, Start const& start, Byte* next,
            std::span<std::uint64_t const> counts) {
    for (std::size_t rank = 0; rank != counts.size(); ++rank) {
      if (counts[rank] == 0) continue;
      detail::byte_block const block(counts[rank]);
      detail::check(start(next, block.count(), block.type(), static_cast<int>(rank), tag, comm_,
                          &requests_.emplace_back(MPI_REQUEST_NULL)),
                    call);
      next += counts[rank];
    }
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  std::vector<MPI_Request> requests_;
};

/// A communicator that owns an `MPI_Comm`. Its messages are separate from the messages of all other
/// communicators, and its errors are exceptions. Models `exchanging_communicator`; see
/// `communicator_ref` for its collectives. A moved-from object may only be assigned to or
/// destroyed. All objects must be destroyed before MPI ends.
class communicator : public communicator_ref {
 public:
  /// Duplicates `comm`, by default the communicator of all processes. A collective call. Errors:
  /// `mpi::error`.
  explicit communicator(MPI_Comm comm = MPI_COMM_WORLD) : communicator(taken{}, duplicate(comm)) {}

  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  communicator(communicator&& other) noexcept
      : communicator_ref(std::move(other)), owned_(std::exchange(other.owned_, MPI_COMM_NULL)) {}
  communicator& operator=(communicator&& other) noexcept {
    std::swap<communicator_ref>(*this, other);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~communicator() {
    if (owned_ != MPI_COMM_NULL) MPI_Comm_free(&owned_);
  }

  /// Returns a communicator of the ranks that pass the same `color`, in the order of their present
  /// ranks. `color` must not be negative. For example, a call selects the data-parallel ranks. A
  /// collective call. Errors: `mpi::error`.
  [[nodiscard]] communicator split(int color) const {
    MPI_Comm part = MPI_COMM_NULL;
    detail::check(MPI_Comm_split(owned_, color, static_cast<int>(rank()), &part), "MPI_Comm_split");
    return {taken{}, part};
  }

  /// Returns a communicator of the ranks on the same node, in the order of their present ranks. A
  /// collective call. Errors: `mpi::error`.
  [[nodiscard]] communicator split_by_node() const {
    MPI_Comm part = MPI_COMM_NULL;
    detail::check(MPI_Comm_split_type(owned_, MPI_COMM_TYPE_SHARED, static_cast<int>(rank()),
                                      MPI_INFO_NULL, &part),
                  "MPI_Comm_split_type");
    return {taken{}, part};
  }

 private:
  struct taken {};

  communicator(taken, MPI_Comm comm) : communicator_ref(comm), owned_(comm) {
    detail::check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }

  [[nodiscard]] static MPI_Comm duplicate(MPI_Comm comm) {
    MPI_Comm result = MPI_COMM_NULL;
    detail::check(MPI_Comm_dup(comm, &result), "MPI_Comm_dup");
    return result;
  }

  MPI_Comm owned_;
};

/// The lifetime of MPI in a program. The constructor starts MPI, and the destructor ends it, unless
/// the program has started MPI before. `main` creates one object before the first communicator.
/// Errors: `mpi::error`.
class environment {
 public:
  environment(int& argc, char**& argv) {
    int has_started = 0;
    detail::check(MPI_Initialized(&has_started), "MPI_Initialized");
    if (has_started != 0) return;
    detail::check(MPI_Init(&argc, &argv), "MPI_Init");
    is_owner_ = true;
  }
  environment(environment const&) = delete;
  environment& operator=(environment const&) = delete;
  ~environment() {
    if (is_owner_) MPI_Finalize();
  }

 private:
  bool is_owner_ = false;
};

}  // namespace omnibal::inline v0::mpi
