// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Construction of groups from the leaves of a forest to its roots.

#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A partial group: paths below the parent of a node, with the tokens of their union.
struct prefix_piece {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t weight = 0;    ///< the tokens of the union, the node's own included
  std::uint64_t own = 0;       ///< the tokens of the node
  std::uint32_t child = none;  ///< the first piece below the node
  std::uint32_t next = none;   ///< the next piece below the same node
  std::uint32_t end = none;    ///< the path that ends at the node
  bool is_sorted = false;      ///< whether the pieces below are in the order of their weights
};

struct piece_packer_settings {
  std::uint64_t capacity = 0;
  /// A piece is split if the part that fills a group has more than this many sixteenths of the
  /// tokens that the split copies; zero: never.
  std::uint64_t split_ratio = 0;
  /// The share of the pieces, in 128ths, among which a bin begins with a random one; zero: the
  /// largest.
  std::uint32_t noise = 0;
};

/// Packs paths into groups in one pass over their ends in depth-first order. Each node receives
/// pieces of its children. If they fit below the node together, they become one piece; otherwise
/// they are packed into the room below the node, and each bin is a piece for the parent. A bin that
/// is full is a group.
class piece_packer {
 public:
  /// Packs the paths with these depths, of which each shares some tokens with the one before.
  void pack(std::span<std::uint64_t const> depths, std::span<std::uint64_t const> shared,
            piece_packer_settings const& settings, rng::engine& words) {
    settings_ = settings;
    words_ = &words;
    paths_ = depths.size();
    pieces_.clear();
    pieces_.reserve(2 * depths.size());
    items_.clear();
    groups_.clear();
    frames_.assign(1, {0, 0, prefix_piece::none});
    for (std::uint32_t t = 0; t != depths.size(); ++t) {
      leave(shared[t]);
      if (depths[t] == frames_.back().depth) {
        add_item({0, 0, prefix_piece::none, prefix_piece::none, t});
        continue;
      }
      std::uint64_t const after = t + 1 == depths.size() ? 0 : shared[t + 1];
      if (after == depths[t]) {
        frames_.push_back({depths[t], items_.size(), t});
      } else {
        add_leaf(depths[t], after, t);
      }
    }
    leave(0);
    finish_roots();
  }

  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  /// Returns the tokens of a group.
  [[nodiscard]] std::uint64_t tokens(std::size_t number) const { return groups_[number].tokens; }

  /// Writes the number of the group of each path.
  void assign(std::vector<std::uint32_t>& group_of) {
    group_of.resize(paths_);
    marks_.resize(pieces_.size());
    for (std::uint32_t g = 0; g != groups_.size(); ++g) marks_[groups_[g].piece] = g;
    // A piece follows the pieces below it.
    for (std::size_t p = pieces_.size(); p-- != 0;) {
      std::uint32_t const g = marks_[p];
      if (pieces_[p].end != prefix_piece::none) group_of[pieces_[p].end] = g;
      for (std::uint32_t c = pieces_[p].child; c != prefix_piece::none; c = pieces_[c].next) {
        marks_[c] = g;
      }
    }
  }

 private:
  struct frame {
    std::uint64_t depth;
    std::size_t begin;
    std::uint32_t end;
  };
  struct item {
    std::uint64_t weight;
    std::uint32_t piece;
    bool has_children;
  };
  struct group {
    std::uint64_t tokens;
    std::uint32_t piece;
  };

  void add_item(prefix_piece const& piece) {
    items_.push_back({piece.weight, static_cast<std::uint32_t>(pieces_.size()),
                      piece.child != prefix_piece::none});
    pieces_.push_back(piece);
  }

  /// Adds a path without paths below it, whose next path shares `after` tokens with it.
  void add_leaf(std::uint64_t depth, std::uint64_t after, std::uint32_t path) {
    std::uint64_t const parent = std::max(after, frames_.back().depth);
    if (frames_.back().depth < parent) {
      frames_.push_back({parent, items_.size(), prefix_piece::none});
    }
    std::uint64_t const own = depth - parent;
    add_item({own, own, prefix_piece::none, prefix_piece::none, path});
  }

  /// Completes the nodes that are deeper than `depth`.
  void leave(std::uint64_t depth) {
    while (frames_.back().depth > depth) {
      frame const node = frames_.back();
      frames_.pop_back();
      std::uint64_t const parent = std::max(depth, frames_.back().depth);
      complete(node, parent);
      if (frames_.back().depth < parent)
        frames_.push_back({parent, node.begin, prefix_piece::none});
    }
  }

  [[nodiscard]] std::uint64_t total_from(std::size_t begin) const {
    std::uint64_t total = 0;
    for (std::size_t i = begin; i != items_.size(); ++i) total += items_[i].weight;
    return total;
  }

  /// Replaces the pieces below a node by pieces with the node.
  void complete(frame const& node, std::uint64_t parent) {
    std::uint64_t const own = node.depth - parent;
    std::uint64_t const room = settings_.capacity - node.depth;
    std::uint64_t const total = total_from(node.begin);
    if (total <= room) {
      prefix_piece merged{total + own, own, prefix_piece::none, prefix_piece::none, node.end};
      for (std::size_t i = items_.size(); i-- != node.begin;) {
        pieces_[items_[i].piece].next = merged.child;
        merged.child = items_[i].piece;
      }
      items_.resize(node.begin);
      add_item(merged);
      return;
    }
    pack_bins(node.begin, room, total);
    items_.resize(node.begin);
    std::size_t most_room = 0;
    for (std::size_t b = 1; b != bins_.size(); ++b) {
      if (bins_[b].weight < bins_[most_room].weight) most_room = b;
    }
    for (std::size_t b = 0; b != bins_.size(); ++b) {
      prefix_piece const made{bins_[b].weight + own, own, bins_[b].child, prefix_piece::none,
                              b == most_room ? node.end : prefix_piece::none};
      if (b != most_room && room - bins_[b].weight <= settings_.capacity / 512) {
        pieces_.push_back(made);
        groups_.push_back({parent + made.weight, static_cast<std::uint32_t>(pieces_.size() - 1)});
      } else {
        add_item(made);
      }
    }
  }

  /// Makes groups of the pieces of all roots.
  void finish_roots() {
    std::uint64_t const total = total_from(0);
    pack_bins(0, settings_.capacity, total);
    for (bin const& full : bins_) {
      pieces_.push_back({full.weight, 0, full.child, prefix_piece::none, prefix_piece::none});
      groups_.push_back({full.weight, static_cast<std::uint32_t>(pieces_.size() - 1)});
    }
    items_.clear();
  }

  struct bin {
    std::uint64_t weight;
    std::uint32_t child;
  };

  /// Packs the items from `begin` into bins with this room. Pieces are split if that may save a
  /// bin.
  void pack_bins(std::size_t begin, std::uint64_t room, std::uint64_t total) {
    sort_items(begin);
    index_weights(begin);
    constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
    bool const may_split = settings_.split_ratio != 0 && room != 0;
    // With more free room than in the last of the fewest bins, there are more bins than these.
    std::uint64_t const free = may_split && total % room != 0 ? room - total % room : 0;
    if (fill_bins(begin, room, false, may_split ? free : any)) return;
    fill_bins(begin, room, true, any);
  }

  void sort_items(std::size_t begin) {
    auto const first = items_.begin() + static_cast<std::ptrdiff_t>(begin);
    std::size_t const count = items_.size() - begin;
    if (count < 512) {
      std::sort(first, items_.end(), [](item const& left, item const& right) {
        if (left.weight != right.weight) return left.weight > right.weight;
        return left.piece < right.piece;
      });
      return;
    }
    auto const order =
        order_descending(count, [&](std::size_t i) { return items_[begin + i].weight; });
    std::vector<item> const unsorted(first, items_.end());
    for (std::size_t i = 0; i != count; ++i) items_[begin + i] = unsorted[order[i]];
  }

  /// Indexes the sorted items by the leading bits of their weights.
  void index_weights(std::size_t begin) {
    std::size_t const count = items_.size() - begin;
    first_of_.clear();
    if (count < 16) return;
    std::uint64_t const most = items_[begin].weight;
    shift_ = 0;
    while (most >> shift_ > 2 * count) ++shift_;
    first_of_.resize(static_cast<std::size_t>(most >> shift_) + 2);
    auto i = static_cast<std::uint32_t>(count);
    for (std::size_t value = 0; value + 1 != first_of_.size(); ++value) {
      first_of_[value] = i;
      while (i != 0 && items_[begin + i - 1].weight >> shift_ == value) --i;
    }
    first_of_.back() = i;
  }

  /// Fills one bin after the other with the largest pieces that fit. Returns false if the bins
  /// leave more than `free` tokens of their room, then without all pieces.
  bool fill_bins(std::size_t begin, std::uint64_t room, bool splits, std::uint64_t free) {
    std::span<item const> const items(items_.data() + begin, items_.size() - begin);
    std::size_t const count = items.size();
    next_.resize(count + 1);
    for (std::uint32_t i = 0; i <= count; ++i) next_[i] = i;
    bins_.clear();
    std::uint32_t carry = prefix_piece::none;
    for (;;) {
      std::uint64_t left = room;
      chosen_.clear();
      bin now{0, prefix_piece::none};
      std::uint32_t front = available(0);
      if (carry != prefix_piece::none) {
        left -= pieces_[carry].weight;
        link(now, carry);
        carry = prefix_piece::none;
      } else if (front == count) {
        return true;
      } else {
        // A random start among the largest makes other groups of the same pieces.
        if (settings_.noise != 0) front = random_start(front, count);
        choose(items, front, left);
      }
      for (;;) {
        std::uint32_t const i = largest_within(items, left);
        if (i == count) break;
        choose(items, i, left);
      }
      if (left > settings_.capacity / 1024) exchange_last(items, left);
      settle();
      for (std::uint32_t const i : chosen_) link(now, items[i].piece);
      if (splits && left != 0) {
        std::uint32_t const i = best_split(items, left);
        if (i != count) {
          take(i);
          carry = items[i].piece;
          link(now, split(carry, left));
        }
      }
      bins_.push_back(now);
      if (room - now.weight > free) return false;
      free -= splits ? 0 : room - now.weight;
    }
  }

  void link(bin& now, std::uint32_t piece) {
    pieces_[piece].next = now.child;
    now.child = piece;
    now.weight += pieces_[piece].weight;
  }

  [[nodiscard]] std::uint32_t random_start(std::uint32_t front, std::size_t count) {
    std::uint64_t steps = rng::below(*words_, 1 + count * settings_.noise / 128);
    while (steps-- != 0) {
      std::uint32_t const after = available(front + 1);
      if (after == count) break;
      front = after;
    }
    return front;
  }

  /// Returns the first item from i on that is in no bin.
  [[nodiscard]] std::uint32_t available(std::uint32_t i) {
    std::uint32_t found = i;
    while (next_[found] != found) found = next_[found];
    while (next_[i] != found) {
      std::uint32_t const after = next_[i];
      next_[i] = found;
      i = after;
    }
    return found;
  }
  void take(std::uint32_t i) { next_[i] = i + 1; }

  /// Takes the item that the bin received last, which stays available until then.
  void settle() {
    if (last_ == prefix_piece::none) return;
    take(last_);
    last_ = prefix_piece::none;
  }

  [[nodiscard]] std::uint32_t largest_within(std::span<item const> items, std::uint64_t limit) {
    item const* first_item = items.data();
    item const* last_item = items.data() + items.size();
    if (!first_of_.empty()) {
      // The items with the leading bits of the limit.
      std::size_t const value =
          static_cast<std::size_t>(std::min<std::uint64_t>(limit >> shift_, first_of_.size() - 2));
      last_item = first_item + first_of_[value];
      first_item += first_of_[value + 1];
    }
    item const* const found =
        std::lower_bound(first_item, last_item, limit,
                         [](item const& one, std::uint64_t most) { return one.weight > most; });
    std::uint32_t const first = available(static_cast<std::uint32_t>(found - items.data()));
    return first != items.size() && first == last_ ? available(first + 1) : first;
  }

  void choose(std::span<item const> items, std::uint32_t i, std::uint64_t& left) {
    settle();
    last_ = i;
    chosen_.push_back(i);
    left -= items[i].weight;
  }

  /// Replaces the last chosen item by two others if they fill the bin better.
  void exchange_last(std::span<item const> items, std::uint64_t& left) {
    if (chosen_.empty()) return;
    std::uint32_t const last = chosen_.back();
    std::uint64_t const limit = items[last].weight + left;
    std::uint64_t best = items[last].weight;
    std::uint32_t best_first = 0;
    std::uint32_t best_second = 0;
    std::uint32_t first = largest_within(items, limit);
    std::uint64_t const enough = limit - std::min(left, settings_.capacity / 2048);
    for (int tries = 0; tries != 16 && first != items.size() && best < enough; ++tries) {
      std::uint32_t after = available(first + 1);
      if (after == last && after != items.size()) after = available(after + 1);
      std::uint64_t const rest = limit - items[first].weight;
      std::uint32_t second = largest_within(items, rest);
      if (second <= first && second != items.size()) second = after;
      if (second != items.size() && items[first].weight + items[second].weight > best) {
        best = items[first].weight + items[second].weight;
        best_first = first;
        best_second = second;
      }
      first = after;
    }
    if (best == items[last].weight) return;
    chosen_.pop_back();
    last_ = prefix_piece::none;
    left += items[last].weight;
    choose(items, best_first, left);
    choose(items, best_second, left);
  }

  /// Returns the available item of which a part fills the room best for the tokens that the split
  /// copies, or the number of items.
  [[nodiscard]] std::uint32_t best_split(std::span<item const> items, std::uint64_t room) {
    auto best = static_cast<std::uint32_t>(items.size());
    std::uint64_t best_gain = 0;
    std::uint32_t i = available(0);
    // All candidates of all bins together are few for many items.
    std::size_t const most = std::clamp<std::size_t>(4096 / items.size(), 2, 32);
    for (std::size_t tries = 0; tries != most && i != items.size(); ++tries) {
      part const found = items[i].has_children ? part_within(items[i].piece, room) : part{0, 0};
      std::uint64_t const gain = is_worth(found) ? found.weight - cost_of(found) : 0;
      if (gain > best_gain) {
        best_gain = gain;
        best = i;
      }
      i = available(i + 1);
    }
    return best;
  }

  struct part {
    std::uint64_t weight;
    std::uint64_t copied;
  };

  /// Sorts the children of a piece from the largest on.
  void sort_children(std::uint32_t piece) {
    if (pieces_[piece].is_sorted) return;
    children_.clear();
    for (std::uint32_t c = pieces_[piece].child; c != prefix_piece::none; c = pieces_[c].next) {
      children_.push_back({pieces_[c].weight, c, false});
    }
    std::sort(children_.begin(), children_.end(), [](item const& left, item const& right) {
      if (left.weight != right.weight) return left.weight < right.weight;
      return left.piece > right.piece;
    });
    std::uint32_t next = prefix_piece::none;
    for (item const& one : children_) {
      pieces_[one.piece].next = next;
      next = one.piece;
    }
    pieces_[piece].child = next;
    pieces_[piece].is_sorted = true;
  }

  /// Returns the part of a piece that `split` would cut off.
  [[nodiscard]] part part_within(std::uint32_t piece, std::uint64_t room) {
    prefix_piece const& whole = pieces_[piece];
    if (whole.child == prefix_piece::none || whole.own >= room) return {0, 0};
    sort_children(piece);
    std::uint64_t left = room - whole.own;
    std::uint32_t open = prefix_piece::none;
    bool takes = false;
    for (std::uint32_t c = whole.child; c != prefix_piece::none; c = pieces_[c].next) {
      if (pieces_[c].weight <= left) {
        left -= pieces_[c].weight;
        takes = true;
      } else if (open == prefix_piece::none && pieces_[c].child != prefix_piece::none) {
        open = c;
      }
    }
    std::uint64_t copied = whole.own;
    if (open != prefix_piece::none && left != 0) {
      part const deeper = part_within(open, left);
      if (is_worth(deeper)) {
        left -= deeper.weight;
        copied += deeper.copied;
        takes = true;
      }
    }
    if (!takes) return {0, 0};
    return {room - left, copied};
  }

  /// Returns the tokens that a part must exceed to pay for its copied tokens.
  [[nodiscard]] std::uint64_t cost_of(part const& one) const {
    return saturate_cast<std::uint64_t>(static_cast<uint128>(one.copied) * settings_.split_ratio /
                                        16);
  }
  [[nodiscard]] bool is_worth(part const& one) const { return one.weight > cost_of(one); }

  /// Cuts off the part of a piece that fits, and returns it.
  std::uint32_t split(std::uint32_t piece, std::uint64_t room) {
    sort_children(piece);
    std::uint64_t left = room - pieces_[piece].own;
    std::uint32_t taken = prefix_piece::none;
    std::uint32_t kept = prefix_piece::none;
    std::uint32_t open = prefix_piece::none;
    std::uint64_t moved = 0;
    for (std::uint32_t c = pieces_[piece].child; c != prefix_piece::none;) {
      std::uint32_t const one = std::exchange(c, pieces_[c].next);
      std::uint64_t const weight = pieces_[one].weight;
      bool const fits = weight <= left;
      std::uint32_t& list = fits ? taken : kept;
      pieces_[one].next = list;
      list = one;
      if (fits) {
        left -= weight;
        moved += weight;
      } else if (open == prefix_piece::none && pieces_[one].child != prefix_piece::none) {
        open = one;
      }
    }
    std::uint64_t deeper_weight = 0;
    std::uint64_t deeper_copied = 0;
    if (open != prefix_piece::none && left != 0) {
      part const deeper = part_within(open, left);
      if (is_worth(deeper)) {
        std::uint32_t const cut = split(open, left);
        pieces_[cut].next = taken;
        taken = cut;
        deeper_weight = deeper.weight;
        deeper_copied = deeper.copied;
      }
    }
    prefix_piece part_made;
    part_made.own = pieces_[piece].own;
    part_made.weight = part_made.own + moved + deeper_weight;
    part_made.child = taken;
    pieces_[piece].child = kept;
    pieces_[piece].is_sorted = false;
    pieces_[piece].weight -= moved + deeper_weight - deeper_copied;
    pieces_.push_back(part_made);
    return static_cast<std::uint32_t>(pieces_.size() - 1);
  }

  piece_packer_settings settings_;
  rng::engine* words_ = nullptr;
  std::vector<prefix_piece> pieces_;
  std::vector<item> items_;
  std::vector<frame> frames_;
  std::vector<group> groups_;
  std::vector<bin> bins_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> chosen_;
  std::uint32_t last_ = prefix_piece::none;
  std::vector<std::uint32_t> first_of_;
  unsigned shift_ = 0;
  std::vector<item> children_;
  std::vector<std::uint32_t> marks_;
  std::size_t paths_ = 0;
};

}  // namespace omnibal::inline v0::detail
