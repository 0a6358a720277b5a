#pragma once

/// \file
/// How many bytes of each part lie on each rank and on each node.

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
  void clear() {
    offsets_.assign(1, 0);
    entries_.clear();
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
  [[nodiscard]] std::int64_t operator()(std::size_t part, std::size_t place) const {
    auto const row = of(part);
    auto const found = std::lower_bound(
        row.begin(), row.end(), place,
        [](bytes_at const& entry, std::size_t wanted) { return entry.place < wanted; });
    return found != row.end() && found->place == place ? found->bytes : 0;
  }

 private:
  std::vector<std::size_t> offsets_{0};
  std::vector<bytes_at> entries_;
};

}  // namespace omnibal::inline v0::detail
