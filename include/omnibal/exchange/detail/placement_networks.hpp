#pragma once

/// \file
/// What parts gain on nodes and on ranks, for `sparse_assignment`.

#include <omnibal/config.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/exchange/detail/kept_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace omnibal::inline v0::detail {

/// A part gains on a node the bytes that it has there, without their lowest bits.
struct node_network {
  kept_bytes const& by_node;
  node_layout layout;
  int dropped_bits;

  [[nodiscard]] std::size_t parts() const { return layout.ranks; }
  [[nodiscard]] std::size_t places() const { return layout.nodes(); }
  [[nodiscard]] std::size_t room(std::size_t node) const { return layout.ranks_in(node); }
  [[nodiscard]] std::size_t largest_room() const { return layout.ranks_per_node; }
  template <class F>
  void for_each_offer(std::uint32_t part, F const& f) const {
    for (bytes_at const& at : by_node.of(part)) f(at.place, at.bytes >> dropped_bits);
  }

  [[nodiscard]] static std::size_t hubs() { return 0; }
  [[nodiscard]] static std::size_t hub_of(std::size_t) { return 0; }
  [[nodiscard]] static std::pair<std::uint32_t, std::uint32_t> members(std::size_t) { return {}; }
};

/// What a part gains on a rank: its bytes on the node, and among equal ones those on the rank, as
/// one number. Both have at most 61 bits.
[[nodiscard]] inline int128 combined_gain(std::int64_t on_node, std::int64_t on_rank) {
  return (int128{on_node} << 62) + on_rank;
}

/// A part gains that on the ranks of the nodes in `allowed`; a node is the hub of its ranks.
struct rank_network {
  kept_bytes const& allowed;
  kept_bytes const& by_rank;
  node_layout layout;
  int dropped_bits;

  [[nodiscard]] std::size_t parts() const { return layout.ranks; }
  [[nodiscard]] std::size_t places() const { return layout.ranks; }
  [[nodiscard]] static std::size_t room(std::size_t) { return 1; }
  [[nodiscard]] static std::size_t largest_room() { return 1; }
  template <class F>
  void for_each_offer(std::uint32_t part, F const& f) const {
    for (bytes_at const& node : allowed.of(part)) {
      std::int64_t const on_node = node.bytes >> dropped_bits;
      f(static_cast<std::uint32_t>(layout.ranks) + node.place, combined_gain(on_node, 0));
      std::size_t const first = layout.first_rank(node.place);
      for (bytes_at const& rank : by_rank.from(part, first)) {
        if (rank.place >= first + layout.ranks_in(node.place)) break;
        f(rank.place, combined_gain(on_node, rank.bytes >> dropped_bits));
      }
    }
  }

  [[nodiscard]] std::size_t hubs() const { return layout.nodes(); }
  [[nodiscard]] std::size_t hub_of(std::size_t rank) const {
    return layout.ranks + layout.node_of(rank);
  }
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> members(std::size_t hub) const {
    std::size_t const node = hub - layout.ranks;
    std::size_t const first = layout.first_rank(node);
    return {static_cast<std::uint32_t>(first),
            static_cast<std::uint32_t>(first + layout.ranks_in(node))};
  }
};

}  // namespace omnibal::inline v0::detail
