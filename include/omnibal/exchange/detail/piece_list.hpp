#pragma once

/// \file
/// The pieces of memory that a rank sends or receives into.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Pieces of `std::byte` or `std::byte const` for each rank; those that follow one another in
/// memory become one. Keeps its memory.
template <class Byte>
class piece_list {
 public:
  /// `most_pieces` is a number that will not be exceeded.
  void clear(std::size_t ranks, std::size_t most_pieces) {
    pieces_.clear();
    pieces_.reserve(most_pieces);
    counts_.clear();
    counts_.reserve(ranks);
    first_ = 0;
  }
  void push(std::span<Byte> piece) {
    if (piece.empty()) return;
    if (pieces_.size() != first_ && pieces_.back().data() + pieces_.back().size() == piece.data()) {
      pieces_.back() = {pieces_.back().data(), pieces_.back().size() + piece.size()};
    } else {
      pieces_.push_back(piece);
    }
  }
  /// The next pieces are for the next rank.
  void close() {
    counts_.push_back(pieces_.size() - first_);
    first_ = pieces_.size();
  }

  [[nodiscard]] std::span<std::span<Byte> const> pieces() const { return pieces_; }
  [[nodiscard]] std::span<std::uint64_t const> counts() const { return counts_; }

 private:
  std::vector<std::span<Byte>> pieces_;
  std::vector<std::uint64_t> counts_;
  std::size_t first_ = 0;
};

}  // namespace omnibal::inline v0::detail
