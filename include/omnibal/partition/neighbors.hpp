// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cuts near given cuts, the nearest cuts first.

#include <omnibal/check.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// All boundaries near given boundaries, the anchor, as an input range that creates them one by
/// one. Each interior cut moves by at most a radius, and every stage keeps at least one layer. The
/// anchor comes first. The other boundaries follow in ascending order of the sum of all moves;
/// equal sums are in lexicographic order.
///
/// Each step of an iterator costs at most stages times radius operations; it never tries cuts that
/// lead to no boundaries. Memory: 16 bytes for each cut and position.
class neighborhood {
 public:
  class iterator;

  /// Creates the neighborhood of an anchor. Errors: `std::invalid_argument` if the boundaries do
  /// not begin with zero or do not increase.
  neighborhood(std::span<std::uint32_t const> boundaries, std::size_t radius)
      : anchor_(boundaries.begin(), boundaries.end()) {
    check_anchor();
    radius_ = std::min<std::size_t>(radius, anchor_.back());
    width_ = 2 * radius_ + 1;
    distances_.assign(anchor_.size() * width_, {});
    for (std::size_t cut = stages(); cut-- != 0;) find_distances(cut);
  }

  /// Returns an iterator at the anchor. The iterator is valid as long as this object exists.
  [[nodiscard]] inline iterator begin() const&;
  void begin() const&& = delete;
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  [[nodiscard]] std::span<std::uint32_t const> anchor() const& noexcept { return anchor_; }
  void anchor() const&& = delete;
  [[nodiscard]] std::size_t stages() const noexcept { return anchor_.size() - 1; }
  [[nodiscard]] std::size_t radius() const noexcept { return radius_; }

  /// Returns the first position of a boundary; `last_position` returns the last position. The ends
  /// of the chain do not move.
  [[nodiscard]] std::uint32_t first_position(std::size_t boundary) const {
    if (boundary == 0 || boundary == stages()) return anchor_[boundary];
    std::size_t const moved = anchor_[boundary] - std::min<std::size_t>(anchor_[boundary], radius_);
    return static_cast<std::uint32_t>(std::max(moved, boundary));
  }
  [[nodiscard]] std::uint32_t last_position(std::size_t boundary) const {
    if (boundary == 0 || boundary == stages()) return anchor_[boundary];
    std::size_t const most = anchor_.back() - (stages() - boundary);
    return static_cast<std::uint32_t>(std::min(most, anchor_[boundary] + radius_));
  }

 private:
  static constexpr std::string_view name = "neighbors";
  static constexpr std::uint64_t no_distance = std::numeric_limits<std::uint64_t>::max();

  /// The range of the sums of the moves of all cuts after a cut. Each sum within the range is
  /// possible, because moves by one position lead from any boundaries back to the nearest ones.
  struct distance_range {
    std::uint64_t least = no_distance;
    std::uint64_t most = 0;
  };

  void check_anchor() const {
    if (anchor_.size() < 2 || anchor_.front() != 0) {
      detail::throw_invalid(name, "boundaries must begin with 0 and end with the layers");
    }
    for (std::size_t s = 0; s != stages(); ++s) {
      if (anchor_[s] < anchor_[s + 1]) continue;
      detail::throw_invalid(name, "boundaries[" + detail::to_text(s + 1) + "] is " +
                                      detail::to_text(anchor_[s + 1]) +
                                      ", but every stage must have a layer");
    }
  }

  [[nodiscard]] std::uint64_t move_of(std::size_t boundary, std::uint32_t position) const {
    std::uint32_t const from = anchor_[boundary];
    return position < from ? from - position : position - from;
  }

  [[nodiscard]] distance_range& after(std::size_t boundary, std::uint32_t position) {
    return distances_[boundary * width_ + (position - first_position(boundary))];
  }
  [[nodiscard]] distance_range const& after(std::size_t boundary, std::uint32_t position) const {
    return distances_[boundary * width_ + (position - first_position(boundary))];
  }

  /// Computes `after` for every position of a boundary, from the distances of the next boundary.
  void find_distances(std::size_t boundary) {
    std::size_t const next = boundary + 1;
    if (next == stages()) {
      for (auto p = first_position(boundary); p <= last_position(boundary); ++p) {
        after(boundary, p) = {0, 0};
      }
      return;
    }
    distance_range found;
    std::uint32_t unseen = last_position(next) + 1;
    for (std::uint32_t p = last_position(boundary) + 1; p-- != first_position(boundary);) {
      for (; unseen > std::max(p + 1, first_position(next)); --unseen) {
        distance_range const& rest = after(next, unseen - 1);
        if (rest.least == no_distance) continue;
        std::uint64_t const move = move_of(next, unseen - 1);
        found.least = std::min(found.least, move + rest.least);
        found.most = std::max(found.most, move + rest.most);
      }
      after(boundary, p) = found;
    }
  }

  std::vector<std::uint32_t> anchor_;
  std::size_t radius_ = 0;
  std::size_t width_ = 1;
  std::vector<distance_range> distances_;
};

/// An iterator over a neighborhood. The neighborhood must exist as long as the iterator.
class neighborhood::iterator {
 public:
  using value_type = std::vector<std::uint32_t>;
  using difference_type = std::ptrdiff_t;

  explicit iterator(neighborhood const& range) : range_(&range), now_(range.anchor_) {}

  /// Returns a copy, because the next step changes the boundaries of the iterator.
  [[nodiscard]] value_type operator*() const { return now_; }

  iterator& operator++() {
    if (advance()) return *this;
    is_done_ = distance_ == range_->after(0, 0).most;
    if (!is_done_) place_first(1, ++distance_);
    return *this;
  }
  void operator++(int) { ++*this; }

  [[nodiscard]] friend bool operator==(iterator const& left, std::default_sentinel_t) noexcept {
    return left.is_done_;
  }

 private:
  /// Moves to the next boundaries with the same sum of moves. Returns false if there are none.
  [[nodiscard]] bool advance() {
    std::uint64_t left = 0;
    for (std::size_t cut = range_->stages(); --cut != 0;) {
      left += range_->move_of(cut, now_[cut]);
      if (place(cut, now_[cut] + 1, left)) return true;
    }
    return false;
  }

  /// Places the cuts from `cut` on at the first positions whose moves have the sum `left`.
  void place_first(std::size_t cut, std::uint64_t left) {
    if (cut == range_->stages()) return;
    static_cast<void>(place(cut, std::max(range_->first_position(cut), now_[cut - 1] + 1), left));
  }

  /// Places the cuts from `cut` on in the same way, with `cut` at `first` or after it. Returns
  /// false if this is impossible.
  bool place(std::size_t cut, std::uint32_t first, std::uint64_t left) {
    for (std::uint32_t p = first; p <= range_->last_position(cut); ++p) {
      std::uint64_t const move = range_->move_of(cut, p);
      auto const& rest = range_->after(cut, p);
      if (move > left || left - move < rest.least || left - move > rest.most) continue;
      now_[cut] = p;
      place_first(cut + 1, left - move);
      return true;
    }
    return false;
  }

  neighborhood const* range_;
  value_type now_;
  std::uint64_t distance_ = 0;
  bool is_done_ = false;
};

inline neighborhood::iterator neighborhood::begin() const& { return iterator(*this); }

struct neighbors_fn {
  /// Returns the candidates of the search of OmniBal: all boundaries with each interior cut moved
  /// by at most `radius`. The anchor comes first and the furthest boundaries come last. The
  /// boundaries are created one by one; see `neighborhood`.
  ///
  /// Determinism: portable. Errors: `std::invalid_argument` if the boundaries do not begin with
  /// zero or do not increase. Source: Yao et al., OmniBal, ICML 2025.
  [[nodiscard]] neighborhood operator()(std::span<std::uint32_t const> boundaries,
                                        std::size_t radius) const {
    return neighborhood(boundaries, radius);
  }
};

/// Returns cuts near given cuts; see `neighbors_fn`.
inline constexpr neighbors_fn neighbors{};

}  // namespace omnibal::inline v0
