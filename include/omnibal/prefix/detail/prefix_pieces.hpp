// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Partial groups of sequences as trees, and splits of them.

#include <omnibal/detail/conversions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A partial group: a set of paths through one node, with the tokens of their union below the
/// parent of the node.
struct prefix_piece {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t weight = 0;    ///< the tokens of the union, the node's own included
  std::uint64_t own = 0;       ///< the tokens of the node
  std::uint32_t child = none;  ///< the first piece below the node
  std::uint32_t next = none;   ///< the next piece below the same node
  std::uint32_t end = none;    ///< the path that ends at the node
  bool is_sorted = false;      ///< whether the pieces below are in the order of their weights
};

/// A part of a piece: its tokens, and the tokens that a split copies because both the part and the
/// rest contain them.
struct piece_part {
  std::uint64_t weight = 0;
  std::uint64_t copied = 0;
};

/// A store of pieces, which are identified by numbers. Each piece has a larger number than the
/// pieces below it.
class prefix_pieces {
 public:
  static constexpr std::uint32_t none = prefix_piece::none;
  /// The value of `split_ratio` for which a split pays if its part has more tokens than the split
  /// copies.
  static constexpr std::uint64_t ratio_unit = 16;

  /// Removes all pieces. A split pays if its part has more than `split_ratio / ratio_unit` times
  /// the tokens that the split copies. Precondition: the ratio is zero, for no splits, or at least
  /// `ratio_unit`.
  void reset(std::size_t paths, std::uint64_t split_ratio) {
    pieces_.clear();
    pieces_.reserve(2 * paths);
    split_ratio_ = split_ratio;
  }

  [[nodiscard]] std::size_t size() const { return pieces_.size(); }
  [[nodiscard]] prefix_piece const& operator[](std::size_t piece) const { return pieces_[piece]; }

  /// Adds a piece and returns its number.
  std::uint32_t add(prefix_piece const& piece) {
    pieces_.emplace_back() = piece;
    return static_cast<std::uint32_t>(pieces_.size() - 1);
  }

  /// Puts a piece in front of a list of pieces, which begins with `first`.
  void push_front(std::uint32_t piece, std::uint32_t& first) {
    pieces_[piece].next = first;
    first = piece;
  }

  /// Returns a large part of a piece that fits a room. The part consists of whole children, from
  /// the largest on, and a part of one more child. The part is empty if no child fits.
  [[nodiscard]] piece_part part_within(std::uint32_t piece, std::uint64_t room) {
    std::uint64_t const own = pieces_[piece].own;
    if (pieces_[piece].child == none || own >= room) return {};
    auto const ignore = [](std::uint32_t) {};
    taken_children const taken = choose_children(piece, room - own, ignore, ignore);
    return {own + taken.whole + taken.deeper.weight, own + taken.deeper.copied};
  }

  /// Returns the gain of a split: the tokens of the part minus the price of the tokens that the
  /// split copies, or zero if the split does not pay.
  [[nodiscard]] std::uint64_t gain_of(piece_part const& part) const {
    auto const cost =
        saturate_cast<std::uint64_t>(static_cast<uint128>(part.copied) * split_ratio_ / ratio_unit);
    return part.weight > cost ? part.weight - cost : 0;
  }

  /// Returns the gain of the split by `part_within` if it exceeds `least`, otherwise at most
  /// `least`.
  [[nodiscard]] std::uint64_t gain_above(std::uint64_t least, std::uint32_t piece,
                                         std::uint64_t room) {
    // Each part fits the room, and copies the tokens of the node.
    if (gain_of({room, pieces_[piece].own}) <= least) return 0;
    return gain_of(part_within(piece, room));
  }

  /// Cuts off the part that `part_within` returns as a separate piece, and returns the number of
  /// this piece.
  std::uint32_t split(std::uint32_t piece, std::uint64_t room) {
    std::uint64_t const own = pieces_[piece].own;
    prefix_piece part{.own = own};
    std::uint32_t kept = none;
    taken_children const taken = choose_children(
        piece, room - own, [&](std::uint32_t child) { push_front(child, part.child); },
        [&](std::uint32_t child) { push_front(child, kept); });
    if (taken.open != none) push_front(split(taken.open, room - own - taken.whole), part.child);
    std::uint64_t const moved = taken.whole + taken.deeper.weight;
    part.weight = own + moved;
    prefix_piece& rest = pieces_[piece];
    rest.child = kept;
    rest.is_sorted = false;
    rest.weight -= moved - taken.deeper.copied;
    return add(part);
  }

 private:
  struct taken_children {
    /// The tokens of the children that the part contains completely.
    std::uint64_t whole = 0;
    /// The child that is split between the part and the rest, or `none`, and the part of this
    /// child.
    std::uint32_t open = none;
    piece_part deeper{};
  };

  struct weighted_child {
    std::uint64_t weight;
    std::uint32_t piece;
  };

  /// Chooses the children of a piece for a part with this room, from the largest child on. Calls
  /// `take` with each child that fits and `keep` with the others; both may relink the child.
  template <class Take, class Keep>
  [[nodiscard]] taken_children choose_children(std::uint32_t piece, std::uint64_t room,
                                               Take const& take, Keep const& keep) {
    sort_children(piece);
    taken_children result;
    std::uint32_t open = none;
    for (std::uint32_t next = pieces_[piece].child; next != none;) {
      std::uint32_t const child = std::exchange(next, pieces_[next].next);
      if (pieces_[child].weight <= room) {
        room -= pieces_[child].weight;
        result.whole += pieces_[child].weight;
        take(child);
      } else {
        if (open == none && pieces_[child].child != none) open = child;
        keep(child);
      }
    }
    if (open == none || room == 0) return result;
    piece_part const deeper = part_within(open, room);
    if (gain_of(deeper) == 0) return result;
    result.open = open;
    result.deeper = deeper;
    return result;
  }

  /// Sorts the children of a piece in descending order of weight.
  void sort_children(std::uint32_t piece) {
    if (pieces_[piece].is_sorted) return;
    children_.clear();
    for (std::uint32_t c = pieces_[piece].child; c != none; c = pieces_[c].next) {
      children_.push_back({pieces_[c].weight, c});
    }
    std::sort(children_.begin(), children_.end(),
              [](weighted_child const& left, weighted_child const& right) {
                if (left.weight != right.weight) return left.weight < right.weight;
                return left.piece > right.piece;
              });
    std::uint32_t first = none;
    for (weighted_child const& child : children_) push_front(child.piece, first);
    pieces_[piece].child = first;
    pieces_[piece].is_sorted = true;
  }

  std::vector<prefix_piece> pieces_;
  std::uint64_t split_ratio_ = 0;
  /// Scratch of `sort_children`.
  std::vector<weighted_child> children_;
};

}  // namespace omnibal::inline v0::detail
