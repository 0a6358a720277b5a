// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bytes that a stage with several chunks keeps at each moment that can be its peak.

#include <omnibal/config.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The bytes that a stage keeps at each moment.
class moment_bytes {
 public:
  /// Sets the bytes of a unit of each chunk; `units` holds the units of each chunk at each moment.
  /// `units` must outlive the calls that follow.
  void set(chunk_counts const& units, std::span<int128 const> of_chunk) {
    units_ = &units;
    used_.assign(units.size(), 0);
    // No memory has 2^64 bytes, and products of larger numbers could overflow.
    constexpr int128 too_many = static_cast<int128>(1) << 64;
    for (std::size_t i = 0; i != used_.size(); ++i) {
      for (std::size_t c = 0; c != of_chunk.size(); ++c) {
        used_[i] += units[i][c] * std::min(of_chunk[c], too_many);
      }
    }
  }

  /// Returns the largest number of bytes of any moment.
  [[nodiscard]] int128 peak() const {
    int128 most = 0;
    for (int128 const used : used_) most = std::max(most, used);
    return most;
  }

  /// Adds bytes to each unit of a chunk if the peak is then at most `limit`. Returns false and adds
  /// nothing if the peak would exceed `limit`.
  [[nodiscard]] bool add(std::size_t chunk, std::int64_t bytes, int128 limit) {
    for (std::size_t i = 0; i != used_.size(); ++i) {
      if (used_[i] + bytes_at(i, chunk, bytes) > limit) return false;
    }
    for (std::size_t i = 0; i != used_.size(); ++i) used_[i] += bytes_at(i, chunk, bytes);
    return true;
  }

 private:
  [[nodiscard]] int128 bytes_at(std::size_t moment, std::size_t chunk, std::int64_t bytes) const {
    return static_cast<int128>((*units_)[moment][chunk]) * bytes;
  }

  chunk_counts const* units_ = nullptr;
  std::vector<int128> used_;
};

}  // namespace omnibal::inline v0::detail
