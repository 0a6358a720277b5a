#pragma once

/// \file
/// The best assignment of parts to ranks.

#include <omnibal/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// One column for each row so that the sum of the gains is largest, by shortest augmenting paths
/// with potentials. Keeps its memory. Source: Kuhn, 1955; Jonker, Volgenant, "A shortest augmenting
/// path algorithm for dense and sparse linear assignment problems", 1987.
class exact_assignment {
 public:
  /// `gain(row, column)` is not negative, and no sum of `size` gains exceeds 2^125. Writes the
  /// column of each row. Complexity: at most size^3.
  template <class Gain>
  void run(std::size_t size, Gain const& gain, std::span<std::uint32_t> column_of) {
    // Row and column 0 stand for none.
    row_potential_.assign(size + 1, 0);
    column_potential_.assign(size + 1, 0);
    row_of_.assign(size + 1, 0);
    for (std::size_t row = 1; row <= size; ++row) add_row(row, size, gain);
    for (std::size_t column = 1; column <= size; ++column) {
      column_of[row_of_[column] - 1] = static_cast<std::uint32_t>(column - 1);
    }
  }

 private:
  template <class Gain>
  void add_row(std::size_t row, std::size_t size, Gain const& gain) {
    constexpr int128 far = int128{1} << 126;
    slack_.assign(size + 1, far);
    reached_from_.assign(size + 1, 0);
    is_done_.assign(size + 1, 0);
    row_of_[0] = row;
    std::size_t column = 0;
    while (row_of_[column] != 0) {
      is_done_[column] = 1;
      std::size_t const current = row_of_[column];
      int128 least = far;
      std::size_t nearest = 0;
      for (std::size_t c = 1; c <= size; ++c) {
        if (is_done_[c] != 0) continue;
        int128 const reduced =
            -gain(current - 1, c - 1) - row_potential_[current] - column_potential_[c];
        if (reduced < slack_[c]) {
          slack_[c] = reduced;
          reached_from_[c] = column;
        }
        if (slack_[c] < least) {
          least = slack_[c];
          nearest = c;
        }
      }
      for (std::size_t c = 0; c <= size; ++c) {
        if (is_done_[c] != 0) {
          row_potential_[row_of_[c]] += least;
          column_potential_[c] -= least;
        } else {
          slack_[c] -= least;
        }
      }
      column = nearest;
    }
    for (; column != 0; column = reached_from_[column]) {
      row_of_[column] = row_of_[reached_from_[column]];
    }
  }

  std::vector<int128> row_potential_;
  std::vector<int128> column_potential_;
  std::vector<int128> slack_;
  std::vector<std::size_t> row_of_;
  std::vector<std::size_t> reached_from_;
  std::vector<std::uint8_t> is_done_;
};

}  // namespace omnibal::inline v0::detail
