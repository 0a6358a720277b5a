#pragma once

/// \file
/// Messages of any size.

#include <omnibal/comm/mpi/error.hpp>

#include <cstdint>
#include <limits>

#include <mpi.h>

namespace omnibal::inline v0::mpi::detail {

/// So many bytes as a count and a type of MPI, whose counts have 32 bits: above `largest_count`
/// bytes one element of a derived type of pieces of that size and a rest.
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
    // 2^31 pieces of the usual size are 2^62 bytes, more than any memory has.
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
