#pragma once

/// \file
/// How many bytes of each part lie on each rank and on each node.

#include <omnibal/detail/node_layout.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Bytes that a part has at a place, a rank or a node.
struct bytes_at {
  std::uint32_t place;
  std::int64_t bytes;
};

/// A sparse table: for each part the places where it has bytes, by ascending place. Keeps its
/// memory.
class kept_bytes {
 public:
  /// `most` is a number of entries that will not be exceeded.
  void clear(std::size_t most) {
    offsets_.assign(1, 0);
    entries_.clear();
    entries_.reserve(most);
  }
  void push(std::uint32_t place, std::int64_t bytes) {
    if (entries_.size() != offsets_.back() && entries_.back().place == place) {
      entries_.back().bytes += bytes;
    } else {
      entries_.push_back({place, bytes});
    }
  }
  void close() { offsets_.push_back(entries_.size()); }

  [[nodiscard]] std::size_t parts() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<bytes_at const> of(std::size_t part) const {
    return std::span(entries_).subspan(offsets_[part], offsets_[part + 1] - offsets_[part]);
  }
  /// Those at the places from `first` on.
  [[nodiscard]] std::span<bytes_at const> from(std::size_t part, std::size_t first) const {
    auto const row = of(part);
    auto const found = std::lower_bound(
        row.begin(), row.end(), first,
        [](bytes_at const& entry, std::size_t wanted) { return entry.place < wanted; });
    return row.subspan(static_cast<std::size_t>(found - row.begin()));
  }
  [[nodiscard]] std::int64_t operator()(std::size_t part, std::size_t place) const {
    auto const row = from(part, place);
    return !row.empty() && row[0].place == place ? row[0].bytes : 0;
  }

 private:
  std::vector<std::size_t> offsets_{0};
  std::vector<bytes_at> entries_;
};

/// The bytes of parts by rank and by node. Keeps its memory.
class part_bytes {
 public:
  /// `home_of` has the rank of each sample; every sample is in one part.
  template <class BytesOf>
  void measure(std::span<std::uint32_t const> home_of, grouping_view parts, BytesOf const& bytes_of,
               node_layout const& layout) {
    total_ = 0;
    by_rank_.clear(home_of.size());
    by_node_.clear(home_of.size());
    sums_.assign(layout.ranks, 0);
    touched_.reserve(layout.ranks);
    for (std::size_t part = 0; part != parts.size(); ++part) {
      touched_.clear();
      for (std::uint32_t const sample : parts[part]) {
        std::int64_t const bytes = bytes_of(sample);
        if (bytes == 0) continue;
        std::uint32_t const rank = home_of[sample];
        if (sums_[rank] == 0) touched_.push_back(rank);
        sums_[rank] += bytes;
        total_ += bytes;
      }
      std::sort(touched_.begin(), touched_.end());
      for (std::uint32_t const rank : touched_) {
        by_rank_.push(rank, sums_[rank]);
        by_node_.push(static_cast<std::uint32_t>(layout.node_of(rank)), sums_[rank]);
        sums_[rank] = 0;
      }
      by_rank_.close();
      by_node_.close();
    }
  }

  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] kept_bytes const& by_rank() const { return by_rank_; }
  [[nodiscard]] kept_bytes const& by_node() const { return by_node_; }

 private:
  std::int64_t total_ = 0;
  kept_bytes by_rank_;
  kept_bytes by_node_;
  std::vector<std::int64_t> sums_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace omnibal::inline v0::detail
