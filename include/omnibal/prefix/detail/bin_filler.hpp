// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bins of one size that are filled with pieces one after the other.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/remaining_indices.hpp>
#include <omnibal/prefix/detail/prefix_pieces.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

struct piece_packer_settings {
  std::uint64_t capacity = 0;
  /// The price of a split: a piece is split if the part that fills a group has more than
  /// `split_ratio / 16` times the tokens that the split copies. The value is at least 16, or zero
  /// to never split.
  std::uint64_t split_ratio = 0;
  /// The randomness of bins: a bin begins with a random piece among the largest `noise / 128` of
  /// the pieces. If the value is zero, it begins with the largest piece.
  std::uint32_t noise = 0;
};

/// A piece that can be put into a bin.
struct piece_item {
  std::uint64_t weight;
  std::uint32_t piece;
  bool has_children;
};

/// The room, the pieces and the random numbers that the bins below a node share.
struct bin_task {
  std::uint64_t room;
  piece_packer_settings const& settings;
  prefix_pieces& pieces;
  rng::engine& random;
};

/// The pieces of a bin, as a list that begins with `child`, and the sum of their weights.
struct piece_bin {
  std::uint64_t weight = 0;
  std::uint32_t child = prefix_piece::none;
};

/// Items in descending order of weight, from which bins take items until none is available.
class sorted_items {
 public:
  /// Sorts `items` and makes all of them available. Precondition: `items` stay valid until the next
  /// call.
  void reset(std::span<piece_item> items) {
    sort(items);
    items_ = items;
    remaining_.reset(items.size());
    index_weights();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(items_.size()); }
  [[nodiscard]] piece_item const& operator[](std::uint32_t i) const { return items_[i]; }

  /// Makes all items available again.
  void restore() { remaining_.reset(items_.size()); }
  void take(std::uint32_t i) { remaining_.remove(i); }

  /// Returns the first available item from `i` on, or the number of items.
  [[nodiscard]] std::uint32_t available(std::uint32_t i) { return remaining_.first_from(i); }

  /// Returns the first available item from `i` on that is not `skipped`, or the number of items.
  [[nodiscard]] std::uint32_t available(std::uint32_t i, std::uint32_t skipped) {
    std::uint32_t const found = available(i);
    return found == skipped ? available(found + 1) : found;
  }

  /// Returns the largest available item of at most `limit` that is not `skipped`, or the number of
  /// items if there is none.
  [[nodiscard]] std::uint32_t largest_within(std::uint64_t limit, std::uint32_t skipped) {
    piece_item const* first = items_.data();
    piece_item const* last = first + items_.size();
    if (!first_of_.empty()) {
      // Only items with the same leading bits as the limit are searched.
      auto const value =
          static_cast<std::size_t>(std::min<std::uint64_t>(limit >> shift_, first_of_.size() - 2));
      last = first + first_of_[value];
      first += first_of_[value + 1];
    }
    // A binary search without branches on weights, because a processor cannot predict them.
    auto count = static_cast<std::size_t>(last - first);
    while (count != 0) {
      std::size_t const half = (count + 1) / 2;
      first += first[half - 1].weight > limit ? half : 0;
      count -= half;
    }
    return available(static_cast<std::uint32_t>(first - items_.data()), skipped);
  }

 private:
  /// The smallest number of items for which a radix sort is used.
  static constexpr std::size_t min_radix_sorted = 512;
  /// The smallest number of items for which an index of their weights is built.
  static constexpr std::size_t min_indexed = 64;

  static void sort(std::span<piece_item> items) {
    if (items.size() < min_radix_sorted) {
      std::sort(items.begin(), items.end(), [](piece_item const& left, piece_item const& right) {
        if (left.weight != right.weight) return left.weight > right.weight;
        return left.piece < right.piece;
      });
      return;
    }
    auto const order =
        order_descending(items.size(), [&](std::size_t i) { return items[i].weight; });
    std::vector<piece_item> const unsorted(items.begin(), items.end());
    for (std::size_t i = 0; i != items.size(); ++i) items[i] = unsorted[order[i]];
  }

  /// Indexes the items by the leading bits of their weights.
  void index_weights() {
    first_of_.clear();
    if (items_.size() < min_indexed) return;
    std::uint64_t const largest = items_[0].weight;
    shift_ = 0;
    while (largest >> shift_ > 2 * items_.size()) ++shift_;
    first_of_.resize(static_cast<std::size_t>(largest >> shift_) + 2);
    std::uint32_t i = size();
    for (std::size_t value = 0; value + 1 != first_of_.size(); ++value) {
      first_of_[value] = i;
      while (i != 0 && items_[i - 1].weight >> shift_ == value) --i;
    }
    first_of_.back() = i;
  }

  std::span<piece_item const> items_;
  remaining_indices remaining_;
  /// Items below `first_of_[x]` have leading bits of at least x; empty if weights are not indexed.
  std::vector<std::uint32_t> first_of_;
  unsigned shift_ = 0;
};

/// Fills bins one after the other, each with the largest pieces that fit. Two other pieces may
/// replace the last piece of a bin if they fill it better. A piece may be split if that saves a
/// bin.
class bin_filler {
 public:
  /// Sorts items and packs them into bins. The bins stay valid until the next call.
  [[nodiscard]] std::span<piece_bin const> fill(std::span<piece_item> items, bin_task const& task) {
    items_.reset(items);
    std::uint64_t const room = task.room;
    bool const may_split = task.settings.split_ratio != 0 && room != 0;
    std::uint64_t max_free = std::numeric_limits<std::uint64_t>::max();
    if (may_split) {
      std::uint64_t total = 0;
      for (piece_item const& item : items) total += item.weight;
      // If more room remains free than in the smallest possible number of bins, there are more bins
      // than this number.
      max_free = total % room == 0 ? 0 : room - total % room;
    }
    if (!fill_whole(max_free, task)) fill_split(task);
    return bins_;
  }

 private:
  static constexpr std::uint32_t none = prefix_piece::none;
  /// The unit of `noise`.
  static constexpr std::uint64_t noise_unit = 128;
  /// Two items may replace the last item of a bin if its free room exceeds the capacity divided by
  /// this number.
  static constexpr std::uint64_t exchanged_fraction = 1024;
  /// The search for such pairs ends if the free room is below the capacity divided by this number.
  static constexpr std::uint64_t filled_fraction = 2048;
  static constexpr int max_pairs = 16;
  /// A bin tries to split `split_tries` divided by the number of items, within the limits
  /// `min_split_tries` and `max_split_tries`.
  static constexpr std::size_t split_tries = 4096;
  static constexpr std::size_t min_split_tries = 2;
  static constexpr std::size_t max_split_tries = 32;

  /// A bin that is being filled. Its last item stays available until the next item is chosen,
  /// because an item that was taken cannot be returned.
  struct open_bin {
    std::uint64_t left;
    std::uint32_t last = none;
  };

  /// Fills bins with whole items. If the bins leave more than `max_free` tokens of room free, stops
  /// and returns false; then some items are in no bin.
  [[nodiscard]] bool fill_whole(std::uint64_t max_free, bin_task const& task) {
    bins_.clear();
    while (items_.available(0) != items_.size()) {
      piece_bin bin;
      std::uint64_t const free = fill_bin(bin, task);
      bins_.push_back(bin);
      if (free > max_free) return false;
      max_free -= free;
    }
    return true;
  }

  /// Fills bins with items and parts of items. The remaining part of a split item is the first
  /// piece of the next bin.
  void fill_split(bin_task const& task) {
    items_.restore();
    bins_.clear();
    std::uint32_t rest = none;
    while (rest != none || items_.available(0) != items_.size()) {
      piece_bin bin;
      if (rest != none) add(rest, task.pieces, bin);
      std::uint64_t const free = fill_bin(bin, task);
      rest = none;
      std::uint32_t const i = free == 0 ? items_.size() : best_split(free, task.pieces);
      if (i != items_.size()) {
        items_.take(i);
        rest = items_[i].piece;
        add(task.pieces.split(rest, free), task.pieces, bin);
      }
      bins_.push_back(bin);
    }
  }

  static void add(std::uint32_t piece, prefix_pieces& pieces, piece_bin& bin) {
    bin.weight += pieces[piece].weight;
    pieces.push_front(piece, bin.child);
  }

  /// Adds whole items to a bin, and returns the room that remains free.
  [[nodiscard]] std::uint64_t fill_bin(piece_bin& bin, bin_task const& task) {
    std::uint64_t const capacity = task.settings.capacity;
    open_bin open{task.room - bin.weight};
    chosen_.clear();
    // A random first item among the largest items produces other groups from the same pieces.
    if (bin.child == none) choose(first_item(task.settings.noise, task.random), open);
    for (;;) {
      std::uint32_t const i = items_.largest_within(open.left, open.last);
      if (i == items_.size()) break;
      choose(i, open);
    }
    if (open.left > capacity / exchanged_fraction) exchange_last(capacity, open);
    if (open.last != none) items_.take(open.last);
    for (std::uint32_t const i : chosen_) add(items_[i].piece, task.pieces, bin);
    return open.left;
  }

  /// Returns the item with which an empty bin begins.
  [[nodiscard]] std::uint32_t first_item(std::uint64_t noise, rng::engine& random) {
    std::uint32_t first = items_.available(0);
    if (noise == 0) return first;
    std::uint64_t steps = rng::below(random, 1 + items_.size() * noise / noise_unit);
    while (steps-- != 0) {
      std::uint32_t const after = items_.available(first + 1);
      if (after == items_.size()) break;
      first = after;
    }
    return first;
  }

  void choose(std::uint32_t i, open_bin& open) {
    if (open.last != none) items_.take(open.last);
    open.last = i;
    open.left -= items_[i].weight;
    chosen_.push_back(i);
  }

  /// Replaces the last chosen item by two other items if they fill the bin better.
  void exchange_last(std::uint64_t capacity, open_bin& open) {
    if (open.last == none) return;
    std::uint64_t const last_weight = items_[open.last].weight;
    std::uint64_t const limit = last_weight + open.left;
    std::uint64_t const enough = limit - std::min(open.left, capacity / filled_fraction);
    std::uint64_t best = last_weight;
    std::uint32_t best_first = 0;
    std::uint32_t best_second = 0;
    std::uint32_t first = items_.largest_within(limit, open.last);
    for (int tries = 0; tries != max_pairs && first != items_.size() && best < enough; ++tries) {
      // The second item is not larger than the first item.
      if (items_[first].weight <= best / 2) break;
      std::uint32_t const after = items_.available(first + 1, open.last);
      std::uint64_t const rest = limit - items_[first].weight;
      std::uint32_t second = items_.largest_within(rest, open.last);
      if (second <= first) second = after;
      if (second != items_.size() && items_[first].weight + items_[second].weight > best) {
        best = items_[first].weight + items_[second].weight;
        best_first = first;
        best_second = second;
      }
      first = after;
    }
    if (best == last_weight) return;
    chosen_.pop_back();
    open = {open.left + last_weight};
    choose(best_first, open);
    choose(best_second, open);
  }

  /// Returns the available item with the largest gain from a split whose part fits the room, or the
  /// number of items if no split pays.
  [[nodiscard]] std::uint32_t best_split(std::uint64_t room, prefix_pieces& pieces) {
    std::uint32_t best = items_.size();
    std::uint64_t best_gain = 0;
    std::uint32_t i = items_.available(0);
    std::size_t const most =
        std::clamp<std::size_t>(split_tries / items_.size(), min_split_tries, max_split_tries);
    for (std::size_t tries = 0; tries != most && i != items_.size(); ++tries) {
      std::uint64_t const gain =
          items_[i].has_children ? pieces.gain_above(best_gain, items_[i].piece, room) : 0;
      if (gain > best_gain) {
        best_gain = gain;
        best = i;
      }
      i = items_.available(i + 1);
    }
    return best;
  }

  sorted_items items_;
  std::vector<piece_bin> bins_;
  /// The items of the bin that is being filled.
  std::vector<std::uint32_t> chosen_;
};

}  // namespace omnibal::inline v0::detail
