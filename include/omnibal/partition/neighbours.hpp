#pragma once

/// \file
/// Cuts near given ones, from the nearest on.

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

/// All boundaries that one gets by moving each interior cut of an anchor by at most a radius such
/// that every stage keeps a layer: an input range, made one by one. The anchor comes first, then
/// boundaries by the sum of all moves, equal ones in lexicographic order.
///
/// A step takes stages times radius at worst, and none is made that does not lead to boundaries.
/// Memory: 16 bytes for each cut and position.
class neighbourhood {
 public:
  class iterator;

  /// Errors: `std::invalid_argument` for boundaries that do not begin with zero or do not increase.
  neighbourhood(std::span<std::uint32_t const> boundaries, std::size_t radius)
      : anchor_(boundaries.begin(), boundaries.end()) {
    check_anchor();
    radius_ = std::min<std::size_t>(radius, anchor_.back());
    width_ = 2 * radius_ + 1;
    distances_.assign(anchor_.size() * width_, {});
    for (std::size_t cut = stages(); cut-- != 0;) find_distances(cut);
  }

  /// Iterators live as long as this object.
  [[nodiscard]] inline iterator begin() const&;
  void begin() const&& = delete;
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  [[nodiscard]] std::span<std::uint32_t const> anchor() const& noexcept { return anchor_; }
  void anchor() const&& = delete;
  [[nodiscard]] std::size_t stages() const noexcept { return anchor_.size() - 1; }
  [[nodiscard]] std::size_t radius() const noexcept { return radius_; }

  /// The first and the last position of a boundary. The ends of the chain do not move.
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
  static constexpr std::string_view name = "neighbours";
  static constexpr std::uint64_t impossible = std::numeric_limits<std::uint64_t>::max();

  /// By how much all cuts after one move together. All sums in between are possible, because
  /// boundaries can be led back to the nearest by moves of one.
  struct distance_range {
    std::uint64_t least = impossible;
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

  /// Finds `after` for every position of a boundary, from the last to the first.
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
        if (rest.least == impossible) continue;
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

/// Goes through a neighbourhood, which must live as long.
class neighbourhood::iterator {
 public:
  using value_type = std::vector<std::uint32_t>;
  using difference_type = std::ptrdiff_t;

  explicit iterator(neighbourhood const& range) : range_(&range), now_(range.anchor_) {}

  /// A copy, so that nothing refers to what the next step changes.
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
  /// The next boundaries with the same sum of moves; false where there are none.
  [[nodiscard]] bool advance() {
    std::uint64_t left = 0;
    for (std::size_t cut = range_->stages(); --cut != 0;) {
      left += range_->move_of(cut, now_[cut]);
      if (place(cut, now_[cut] + 1, left)) return true;
    }
    return false;
  }

  /// Puts the cuts from `cut` on at the first positions with moves of this sum.
  void place_first(std::size_t cut, std::uint64_t left) {
    if (cut == range_->stages()) return;
    static_cast<void>(place(cut, std::max(range_->first_position(cut), now_[cut - 1] + 1), left));
  }

  /// The same with `cut` at `first` or behind; false where that cannot be.
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

  neighbourhood const* range_;
  value_type now_;
  std::uint64_t distance_ = 0;
  bool is_done_ = false;
};

inline neighbourhood::iterator neighbourhood::begin() const& { return iterator(*this); }

struct neighbours_fn {
  /// The candidates of OmniBal's search: boundaries with each interior cut moved by at most
  /// `radius`, from the anchor to the furthest, made one by one. See `neighbourhood`.
  ///
  /// Determinism: portable. Errors: `std::invalid_argument` for boundaries that do not begin with
  /// zero or do not increase. Source: Yao et al., OmniBal, ICML 2025.
  [[nodiscard]] neighbourhood operator()(std::span<std::uint32_t const> boundaries,
                                         std::size_t radius) const {
    return neighbourhood(boundaries, radius);
  }
};

/// Cuts near given ones; see `neighbours_fn`.
inline constexpr neighbours_fn neighbours{};

}  // namespace omnibal::inline v0
