#pragma once

/// \file
/// Which rank takes which part, so that the most bytes stay on their node and their rank.

#include <omnibal/config.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/exchange/detail/kept_bytes.hpp>
#include <omnibal/exchange/detail/placement_networks.hpp>
#include <omnibal/exchange/detail/sparse_assignment.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Places as many parts as there are ranks. Keeps its memory.
///
/// Parts first go to nodes, by bytes on nodes alone. The prices of that assignment tell which pairs
/// of a part and a node the best ones are made of; among those, parts then go to ranks.
class rank_placer {
 public:
  /// Some 0.1 seconds of work. Up to 128 ranks always enough for the best placement.
  static constexpr std::uint64_t most_steps = std::uint64_t{1} << 25;

  /// `home_of` has the rank of each sample; every sample is in one part.
  template <class BytesOf>
  void run(std::span<std::uint32_t const> home_of, grouping_view parts, BytesOf const& bytes_of,
           std::size_t ranks_per_node, std::uint64_t steps = most_steps) {
    layout_ = {parts.size(), std::min(ranks_per_node, parts.size())};
    bytes_.measure(home_of, parts, bytes_of, layout_);
    // So that gains are sums of two numbers of 61 bits, and sums of gains stay below 2^125.
    auto const bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes_.total())));
    dropped_bits_ = std::max(0, bits - 61);
    nodes_.run(node_places(), steps);
    if (layout_.ranks_per_node == 1) {
      take_places(nodes_);
    } else {
      assign_ranks(home_of.size(), steps);
      take_places(ranks_);
    }
    fill();
  }

  [[nodiscard]] std::span<std::uint32_t const> rank_of() const { return rank_of_; }
  /// The part of each rank.
  [[nodiscard]] std::span<std::uint32_t const> part_at() const { return part_at_; }
  /// Whether no placement is better.
  [[nodiscard]] bool is_proven() const {
    return dropped_bits_ == 0 && nodes_.is_optimal() &&
           (layout_.ranks_per_node == 1 || ranks_.is_optimal());
  }

  [[nodiscard]] std::int64_t moved_bytes() const {
    return bytes_.total() -
           sum_over_parts([&](std::size_t p) { return bytes_.by_rank()(p, rank_of_[p]); });
  }
  [[nodiscard]] std::int64_t moved_bytes_across_nodes() const {
    return bytes_.total() - sum_over_parts([&](std::size_t p) {
             return bytes_.by_node()(p, layout_.node_of(rank_of_[p]));
           });
  }

  /// No placement moves fewer bytes across nodes.
  [[nodiscard]] std::int64_t least_across_nodes() const {
    int128 most_kept = nodes_.bound(node_places());
    // Each part may keep nearly one unit more than was counted.
    if (dropped_bits_ != 0) most_kept = (most_kept + layout_.ranks) << dropped_bits_;
    return bytes_.total() - static_cast<std::int64_t>(std::min<int128>(most_kept, bytes_.total()));
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] node_network node_places() const {
    return {bytes_.by_node(), layout_, dropped_bits_};
  }
  template <class Value>
  [[nodiscard]] std::int64_t sum_over_parts(Value const& value) const {
    std::int64_t sum = 0;
    for (std::size_t part = 0; part != layout_.ranks; ++part) sum += value(part);
    return sum;
  }
  /// What is gained by parts on these ranks.
  template <class RankOf>
  [[nodiscard]] int128 sum_of_gains(RankOf const& rank_of) const {
    int128 sum = 0;
    for (std::size_t part = 0; part != layout_.ranks; ++part) {
      std::size_t const rank = rank_of(part);
      sum += combined_gain(bytes_.by_node()(part, layout_.node_of(rank)) >> dropped_bits_,
                           bytes_.by_rank()(part, rank) >> dropped_bits_);
    }
    return sum;
  }

  void assign_ranks(std::size_t samples, std::uint64_t steps) {
    allowed_.clear(samples);
    for (std::uint32_t part = 0; part != layout_.ranks; ++part) {
      for (bytes_at const& at : bytes_.by_node().of(part)) {
        bool const is_chosen = nodes_.place_of(part) == at.place;
        if (is_chosen || nodes_.is_tight(part, at.place, at.bytes >> dropped_bits_)) {
          allowed_.push(at.place, at.bytes);
        }
      }
      allowed_.close();
    }
    rank_network const network{allowed_, bytes_.by_rank(), layout_, dropped_bits_};
    ranks_.run(network, steps);
  }

  template <class Assignment>
  void take_places(Assignment const& assignment) {
    rank_of_.resize(layout_.ranks);
    part_at_.assign(layout_.ranks, none);
    for (std::uint32_t part = 0; part != layout_.ranks; ++part) {
      rank_of_[part] = assignment.place_of(part);
      if (rank_of_[part] != none) part_at_[rank_of_[part]] = part;
    }
  }

  /// Parts that gain nothing stay, or else take what is free; all stay where that is as good.
  void fill() {
    for (std::uint32_t part = 0; part != layout_.ranks; ++part) {
      if (rank_of_[part] == none && part_at_[part] == none) put(part, part);
    }
    std::uint32_t free = 0;
    for (std::uint32_t part = 0; part != layout_.ranks; ++part) {
      if (rank_of_[part] != none) continue;
      while (part_at_[free] != none) ++free;
      put(part, free);
    }
    auto const own = [](std::size_t part) { return part; };
    auto const chosen = [this](std::size_t part) { return std::size_t{rank_of_[part]}; };
    if (sum_of_gains(own) < sum_of_gains(chosen)) return;
    for (std::uint32_t part = 0; part != layout_.ranks; ++part) put(part, part);
  }
  void put(std::uint32_t part, std::uint32_t rank) {
    rank_of_[part] = rank;
    part_at_[rank] = part;
  }

  node_layout layout_;
  int dropped_bits_ = 0;
  part_bytes bytes_;
  sparse_assignment<std::int64_t> nodes_;
  kept_bytes allowed_;
  sparse_assignment<int128> ranks_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::uint32_t> part_at_;
};

}  // namespace omnibal::inline v0::detail
