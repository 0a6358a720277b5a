// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Construction of groups from the leaves of a forest to its roots.

#include <omnibal/prefix/detail/bin_filler.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/prefix_pieces.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Packs paths into groups in one pass over their ends in depth-first order. Each node receives
/// pieces, which are partial groups, from its children. If all pieces together fit into the room
/// below the node, they become one piece of the parent. Otherwise they are packed into bins of this
/// room, and each bin is a piece of the parent. A bin that is full is a complete group.
class piece_packer {
 public:
  /// Packs paths with the given depths and writes the groups to `result`. `shared` has the tokens
  /// that each path shares with the path before it. A node counts once for each of its pieces in a
  /// group, so the union of a group may have fewer tokens than `result` records.
  void pack(std::span<std::uint64_t const> depths, std::span<std::uint64_t const> shared,
            piece_packer_settings const& settings, rng::engine& random, path_assignment& result) {
    pieces_.reset(depths.size(), settings.split_ratio);
    items_.clear();
    groups_.clear();
    frames_.assign(1, {0, 0, none});
    for (std::uint32_t t = 0; t != depths.size(); ++t) {
      leave(shared[t], settings, random);
      if (depths[t] == frames_.back().depth) {
        add_item({.end = t});
        continue;
      }
      std::uint64_t const after = t + 1 == depths.size() ? 0 : shared[t + 1];
      if (after == depths[t]) {
        frames_.push_back({depths[t], items_.size(), t});
      } else {
        add_leaf(depths[t], after, t);
      }
    }
    leave(0, settings, random);
    finish_roots(settings, random);
    result.group_of.resize(depths.size());
    write(result);
  }

 private:
  static constexpr std::uint32_t none = prefix_piece::none;
  /// A bin is a complete group if at most the capacity divided by this number is free.
  static constexpr std::uint64_t full_fraction = 512;

  /// A node whose subtree is not complete: its depth, its first item, and the path that ends at it
  /// or `none`.
  struct frame {
    std::uint64_t depth;
    std::size_t begin;
    std::uint32_t end;
  };

  /// A piece that is a complete group, and its tokens together with the tokens above its node.
  struct group {
    std::uint64_t tokens;
    std::uint32_t piece;
  };

  void add_item(prefix_piece const& piece) {
    items_.push_back({piece.weight, pieces_.add(piece), piece.child != none});
  }

  void add_group(prefix_piece const& piece, std::uint64_t parent) {
    groups_.push_back({parent + piece.weight, pieces_.add(piece)});
  }

  /// Adds a path that ends at a leaf. The next path shares `after` tokens with it.
  void add_leaf(std::uint64_t depth, std::uint64_t after, std::uint32_t path) {
    std::uint64_t const parent = std::max(after, frames_.back().depth);
    if (frames_.back().depth < parent) frames_.push_back({parent, items_.size(), none});
    std::uint64_t const own = depth - parent;
    add_item({.weight = own, .own = own, .end = path});
  }

  /// Completes the nodes that are deeper than `depth`.
  void leave(std::uint64_t depth, piece_packer_settings const& settings, rng::engine& random) {
    while (frames_.back().depth > depth) {
      frame const node = frames_.back();
      frames_.pop_back();
      std::uint64_t const parent = std::max(depth, frames_.back().depth);
      complete(node, parent, settings, random);
      if (frames_.back().depth < parent) frames_.push_back({parent, node.begin, none});
    }
  }

  /// Replaces the pieces below a node by pieces that include the tokens of the node.
  void complete(frame const& node, std::uint64_t parent, piece_packer_settings const& settings,
                rng::engine& random) {
    std::uint64_t const own = node.depth - parent;
    std::uint64_t const room = settings.capacity - node.depth;
    std::span<piece_item> const items = std::span(items_).subspan(node.begin);
    std::uint64_t total = 0;
    for (piece_item const& item : items) total += item.weight;
    if (total <= room) {
      prefix_piece merged{.weight = total + own, .own = own, .end = node.end};
      for (std::size_t i = items.size(); i-- != 0;)
        pieces_.push_front(items[i].piece, merged.child);
      items_.resize(node.begin);
      add_item(merged);
      return;
    }
    auto const bins = filler_.fill(items, {room, settings, pieces_, random});
    items_.resize(node.begin);
    auto const roomiest = std::ranges::min_element(bins, {}, &piece_bin::weight) - bins.begin();
    for (std::ptrdiff_t b = 0; b != std::ssize(bins); ++b) {
      piece_bin const& bin = bins[static_cast<std::size_t>(b)];
      bool const has_end = b == roomiest;
      prefix_piece const made{.weight = bin.weight + own,
                              .own = own,
                              .child = bin.child,
                              .end = has_end ? node.end : none};
      if (!has_end && room - bin.weight <= settings.capacity / full_fraction) {
        add_group(made, parent);
      } else {
        add_item(made);
      }
    }
  }

  /// Packs the pieces of all roots into groups.
  void finish_roots(piece_packer_settings const& settings, rng::engine& random) {
    for (piece_bin const& bin :
         filler_.fill(items_, {settings.capacity, settings, pieces_, random})) {
      add_group({.weight = bin.weight, .child = bin.child}, 0);
    }
    items_.clear();
  }

  /// Writes the group of each path and the tokens of each group.
  void write(path_assignment& result) {
    result.tokens.clear();
    group_of_piece_.resize(pieces_.size());
    for (std::uint32_t g = 0; g != groups_.size(); ++g) {
      result.tokens.push_back(groups_[g].tokens);
      group_of_piece_[groups_[g].piece] = g;
    }
    // Pieces are visited from last to first, because a piece has a larger number than the pieces
    // below it.
    for (std::size_t p = pieces_.size(); p-- != 0;) {
      std::uint32_t const g = group_of_piece_[p];
      if (pieces_[p].end != none) result.group_of[pieces_[p].end] = g;
      for (std::uint32_t c = pieces_[p].child; c != none; c = pieces_[c].next) {
        group_of_piece_[c] = g;
      }
    }
  }

  prefix_pieces pieces_;
  bin_filler filler_;
  /// The open nodes on the path from a root to the current end.
  std::vector<frame> frames_;
  /// The pieces below the open nodes.
  std::vector<piece_item> items_;
  std::vector<group> groups_;
  std::vector<std::uint32_t> group_of_piece_;
};

}  // namespace omnibal::inline v0::detail
