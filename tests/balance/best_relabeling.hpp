// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which rank takes which part, so that the most bytes stay: exact, for small numbers of ranks.

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace test {

/// The largest sum of `gain[row][column]` over one column for each row: the Hungarian method with
/// potentials (Kuhn, 1955; Jonker, Volgenant, 1987).
inline std::int64_t max_gain(std::vector<std::vector<std::int64_t>> const& gain) {
  std::size_t const size = gain.size();
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;
  std::vector<std::int64_t> row_potential(size + 1, 0);
  std::vector<std::int64_t> column_potential(size + 1, 0);
  std::vector<std::size_t> row_of(size + 1, 0);
  for (std::size_t row = 1; row <= size; ++row) {
    std::vector<std::int64_t> slack(size + 1, far);
    std::vector<std::size_t> from(size + 1, 0);
    std::vector<bool> is_done(size + 1, false);
    std::size_t column = 0;
    row_of[0] = row;
    while (row_of[column] != 0) {
      is_done[column] = true;
      std::size_t const current = row_of[column];
      std::int64_t least = far;
      std::size_t next = 0;
      for (std::size_t c = 1; c <= size; ++c) {
        if (is_done[c]) continue;
        std::int64_t const reduced =
            -gain[current - 1][c - 1] - row_potential[current] - column_potential[c];
        if (reduced < slack[c]) {
          slack[c] = reduced;
          from[c] = column;
        }
        if (slack[c] < least) {
          least = slack[c];
          next = c;
        }
      }
      for (std::size_t c = 0; c <= size; ++c) {
        if (is_done[c]) {
          row_potential[row_of[c]] += least;
          column_potential[c] -= least;
        } else {
          slack[c] -= least;
        }
      }
      column = next;
    }
    while (column != 0) {
      row_of[column] = row_of[from[column]];
      column = from[column];
    }
  }
  std::int64_t sum = 0;
  for (std::size_t column = 1; column <= size; ++column) {
    sum += gain[row_of[column] - 1][column - 1];
  }
  return sum;
}

/// The bytes that lie on another rank than `home` says, where part p is on rank p.
inline std::int64_t moved_bytes(omnibal::groups_argument home, omnibal::groups_argument parts,
                                std::vector<std::int64_t> const& bytes) {
  std::vector<std::size_t> rank_of(bytes.size(), 0);
  for (std::size_t rank = 0; rank != home.size(); ++rank) {
    for (std::uint32_t const item : home[rank]) rank_of[item] = rank;
  }
  std::int64_t moved = 0;
  for (std::size_t part = 0; part != parts.size(); ++part) {
    for (std::uint32_t const item : parts[part]) {
      if (rank_of[item] != part) moved += bytes[item];
    }
  }
  return moved;
}

/// The bytes that move where each part goes to the rank that is best for it.
inline std::int64_t min_moved_bytes(omnibal::groups_argument home, omnibal::groups_argument parts,
                                    std::vector<std::int64_t> const& bytes) {
  std::vector<std::size_t> rank_of(bytes.size(), 0);
  for (std::size_t rank = 0; rank != home.size(); ++rank) {
    for (std::uint32_t const item : home[rank]) rank_of[item] = rank;
  }
  std::vector<std::vector<std::int64_t>> kept(parts.size(),
                                              std::vector<std::int64_t>(home.size(), 0));
  std::int64_t sum = 0;
  for (std::size_t part = 0; part != parts.size(); ++part) {
    for (std::uint32_t const item : parts[part]) {
      kept[part][rank_of[item]] += bytes[item];
      sum += bytes[item];
    }
  }
  return sum - max_gain(kept);
}

}  // namespace test
