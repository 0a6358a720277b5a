#pragma once

/// \file
/// Which rank takes which part, so that the most bytes stay on their node and their rank.

#include <omnibal/config.hpp>
#include <omnibal/exchange/detail/exact_assignment.hpp>
#include <omnibal/exchange/detail/kept_bytes.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Places as many parts as there are ranks. Keeps its memory.
class rank_placer {
 public:
  /// Up to so many ranks the best placement is found whatever it takes.
  static constexpr std::size_t most_exact = 128;

  /// `home_of` has the rank of each sample; every sample is in one part.
  template <class BytesOf>
  void run(std::span<std::uint32_t const> home_of, grouping_view parts, BytesOf const& bytes_of,
           std::size_t ranks_per_node) {
    ranks_ = parts.size();
    ranks_per_node_ = ranks_per_node;
    measure(home_of, parts, bytes_of);
    stay();
    bool is_best = all_at_best();
    if (!is_best && ranks_ <= most_exact) {
      place_exactly();
      is_best = true;
    } else if (!is_best) {
      place_greedily();
      improve();
      is_best = all_at_best();
    }
    is_proven_ = is_best && dropped_bits_ == 0;
  }

  [[nodiscard]] std::span<std::uint32_t const> rank_of() const { return rank_of_; }
  /// The part of each rank.
  [[nodiscard]] std::span<std::uint32_t const> part_at() const { return part_at_; }
  [[nodiscard]] bool is_proven() const { return is_proven_; }

  [[nodiscard]] std::int64_t moved_bytes() const {
    return total_ - sum_over_parts([&](std::size_t p) { return by_rank_(p, rank_of_[p]); });
  }
  [[nodiscard]] std::int64_t moved_bytes_across_nodes() const {
    return total_ -
           sum_over_parts([&](std::size_t p) { return by_node_(p, node_of(rank_of_[p])); });
  }

  /// No placement moves fewer bytes across nodes: at most, each part is where it has most, and each
  /// node has the parts that have most there.
  [[nodiscard]] std::int64_t least_across_nodes() {
    if (is_proven_) return moved_bytes_across_nodes();
    std::int64_t const of_parts = sum_over_parts([&](std::size_t p) {
      std::int64_t most = 0;
      for (bytes_at const& at : by_node_.of(p)) most = std::max(most, at.bytes);
      return most;
    });
    collect_entries(by_node_);
    room_.assign(node_of(ranks_ - 1) + 1, 0);
    std::int64_t of_nodes = 0;
    for (entry const& candidate : entries_) {
      if (room_[candidate.place] == ranks_in(candidate.place)) continue;
      ++room_[candidate.place];
      of_nodes += candidate.bytes;
    }
    return total_ - std::min(of_parts, of_nodes);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct entry {
    std::uint32_t part;
    std::uint32_t place;
    std::int64_t bytes;
  };

  [[nodiscard]] std::size_t node_of(std::size_t rank) const { return rank / ranks_per_node_; }
  [[nodiscard]] std::size_t first_rank(std::size_t node) const { return node * ranks_per_node_; }
  [[nodiscard]] std::size_t ranks_in(std::size_t node) const {
    return std::min(ranks_per_node_, ranks_ - first_rank(node));
  }
  template <class Value>
  [[nodiscard]] std::int64_t sum_over_parts(Value const& value) const {
    std::int64_t sum = 0;
    for (std::size_t part = 0; part != ranks_; ++part) sum += value(part);
    return sum;
  }

  template <class BytesOf>
  void measure(std::span<std::uint32_t const> home_of, grouping_view parts,
               BytesOf const& bytes_of) {
    total_ = 0;
    by_rank_.clear();
    by_node_.clear();
    sums_.assign(ranks_, 0);
    for (std::size_t part = 0; part != ranks_; ++part) {
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
        by_node_.push(static_cast<std::uint32_t>(node_of(rank)), sums_[rank]);
        sums_[rank] = 0;
      }
      by_rank_.close();
      by_node_.close();
    }
    // So that gains are sums of two numbers of 61 bits, and sums of gains stay below 2^125.
    auto const bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(total_)));
    dropped_bits_ = std::max(0, bits - 61);
  }

  /// What a part keeps on a node, and among equal ones on a rank, as one number.
  [[nodiscard]] int128 combined(std::int64_t on_node, std::int64_t on_rank) const {
    return (int128{on_node >> dropped_bits_} << 62) + (on_rank >> dropped_bits_);
  }
  [[nodiscard]] int128 gain(std::size_t part, std::size_t rank) const {
    return combined(by_node_(part, node_of(rank)), by_rank_(part, rank));
  }

  void stay() {
    rank_of_.resize(ranks_);
    part_at_.resize(ranks_);
    for (std::uint32_t rank = 0; rank != ranks_; ++rank) rank_of_[rank] = part_at_[rank] = rank;
  }

  [[nodiscard]] bool all_at_best() const {
    for (std::size_t part = 0; part != ranks_; ++part) {
      int128 const reached = gain(part, rank_of_[part]);
      for (bytes_at const& at : by_rank_.of(part)) {
        if (combined(by_node_(part, node_of(at.place)), at.bytes) > reached) return false;
      }
    }
    return true;
  }

  void place_exactly() {
    gains_.assign(ranks_ * ranks_, 0);
    for (std::size_t part = 0; part != ranks_; ++part) {
      for (bytes_at const& at : by_node_.of(part)) {
        std::size_t const first = first_rank(at.place);
        for (std::size_t rank = first; rank != first + ranks_in(at.place); ++rank) {
          gains_[part * ranks_ + rank] = combined(at.bytes, by_rank_(part, rank));
        }
      }
    }
    assignment_.run(
        ranks_, [this](std::size_t part, std::size_t rank) { return gains_[part * ranks_ + rank]; },
        rank_of_);
    fill_part_at();
  }

  /// The entries of a table, those with the most bytes first.
  void collect_entries(kept_bytes const& table) {
    entries_.clear();
    for (std::uint32_t part = 0; part != ranks_; ++part) {
      for (bytes_at const& at : table.of(part)) entries_.push_back({part, at.place, at.bytes});
    }
    std::sort(entries_.begin(), entries_.end(), [](entry const& a, entry const& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return a.part != b.part ? a.part < b.part : a.place < b.place;
    });
  }

  /// The pairs of a part and a node that keep the most bytes first, then in each node those of a
  /// part and a rank; parts stay where they are if that keeps as much.
  void place_greedily() {
    int128 const at_home = sum_of_gains();
    assign_nodes();
    assign_ranks();
    if (sum_of_gains() <= at_home) stay();
  }
  void fill_part_at() {
    for (std::uint32_t part = 0; part != ranks_; ++part) part_at_[rank_of_[part]] = part;
  }
  [[nodiscard]] int128 sum_of_gains() const {
    int128 sum = 0;
    for (std::size_t part = 0; part != ranks_; ++part) sum += gain(part, rank_of_[part]);
    return sum;
  }

  void assign_nodes() {
    room_.clear();
    for (std::size_t node = 0; node <= node_of(ranks_ - 1); ++node) {
      room_.push_back(static_cast<std::uint32_t>(ranks_in(node)));
    }
    node_of_part_.assign(ranks_, none);
    collect_entries(by_node_);
    for (entry const& best : entries_) {
      if (node_of_part_[best.part] != none || room_[best.place] == 0) continue;
      node_of_part_[best.part] = best.place;
      --room_[best.place];
    }
    std::uint32_t free = 0;
    for (std::uint32_t& node : node_of_part_) {
      if (node != none) continue;
      while (room_[free] == 0) ++free;
      node = free;
      --room_[free];
    }
  }

  void assign_ranks() {
    rank_of_.assign(ranks_, none);
    part_at_.assign(ranks_, none);
    collect_entries(by_rank_);
    auto const put = [&](std::uint32_t part, std::uint32_t rank) {
      rank_of_[part] = rank;
      part_at_[rank] = part;
    };
    for (entry const& best : entries_) {
      if (node_of(best.place) != node_of_part_[best.part]) continue;
      if (rank_of_[best.part] != none || part_at_[best.place] != none) continue;
      put(best.part, best.place);
    }
    // The next rank of each node that may be free.
    room_.clear();
    for (std::size_t node = 0; node <= node_of(ranks_ - 1); ++node) {
      room_.push_back(static_cast<std::uint32_t>(first_rank(node)));
    }
    for (std::uint32_t part = 0; part != ranks_; ++part) {
      if (rank_of_[part] != none) continue;
      std::uint32_t& next = room_[node_of_part_[part]];
      while (part_at_[next] != none) ++next;
      put(part, next);
    }
  }

  /// Swaps the ranks of two parts while that keeps more.
  void improve() {
    constexpr int most_sweeps = 16;
    for (int sweep = 0; sweep != most_sweeps; ++sweep) {
      bool has_swapped = false;
      for (std::uint32_t part = 0; part != ranks_; ++part) has_swapped |= swap_best(part);
      if (!has_swapped) return;
    }
  }

  /// The best swap that gives the part a better rank.
  [[nodiscard]] bool swap_best(std::uint32_t part) {
    std::uint32_t const rank = rank_of_[part];
    int128 const reached = gain(part, rank);
    int128 best = 0;
    std::uint32_t partner = none;
    for (bytes_at const& at : by_node_.of(part)) {
      if (at.bytes < by_node_(part, node_of(rank))) continue;
      std::size_t const first = first_rank(at.place);
      for (std::size_t other = first; other != first + ranks_in(at.place); ++other) {
        int128 const gained = combined(at.bytes, by_rank_(part, other)) - reached;
        if (gained <= 0) continue;
        std::uint32_t const there = part_at_[other];
        int128 const change = gained + gain(there, rank) - gain(there, other);
        if (change <= best) continue;
        best = change;
        partner = there;
      }
    }
    if (partner == none) return false;
    std::swap(rank_of_[part], rank_of_[partner]);
    part_at_[rank_of_[part]] = part;
    part_at_[rank_of_[partner]] = partner;
    return true;
  }

  std::size_t ranks_ = 0;
  std::size_t ranks_per_node_ = 1;
  int dropped_bits_ = 0;
  bool is_proven_ = true;
  std::int64_t total_ = 0;
  kept_bytes by_rank_;
  kept_bytes by_node_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::uint32_t> part_at_;
  std::vector<std::uint32_t> node_of_part_;
  std::vector<std::uint32_t> room_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::int64_t> sums_;
  std::vector<entry> entries_;
  std::vector<int128> gains_;
  exact_assignment assignment_;
};

}  // namespace omnibal::inline v0::detail
