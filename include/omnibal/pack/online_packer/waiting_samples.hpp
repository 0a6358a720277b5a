// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The waiting samples of an online packer, sorted into cells and depths.

#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/hierarchical_bitset.hpp>
#include <omnibal/pack/detail/quantized_axis.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A division of the demands up to a capacity into cells and depths. At most 64 cells divide all
/// resources except for the fine resource. The fine resource has the largest capacity; of equal
/// resources, it is the last. Within a cell, depths divide the fine resource. Small numbers mean
/// large amounts: depth zero contains the capacity, and classes of smaller amounts have higher
/// numbers.
template <std::size_t R, class T>
class size_classes {
 public:
  using amounts_type = resources<R, T>;

  static constexpr std::size_t max_cells = 64;

  size_classes(amounts_type const& capacity, std::size_t max_depths) {
    for (std::size_t r = 1; r != R; ++r) fine_ = capacity[r] >= capacity[fine_] ? r : fine_;
    levels_ = quantized_axis<T>(capacity[fine_], max_depths);
    last_level_ = levels_.count() - 1;
    for (std::size_t r = 0; r != R; ++r) {
      scales_[r] = share_scale<T>(capacity[r]);
      if (r != fine_) count_ *= divide(r, capacity[r]);
    }
  }

  /// Returns the resource of the depths.
  [[nodiscard]] std::size_t fine() const { return fine_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t depth_count() const { return levels_.count(); }
  [[nodiscard]] std::size_t depth_of(amounts_type const& amounts) const {
    return last_level_ - levels_(amounts[fine_]);
  }
  [[nodiscard]] std::size_t cell_of(amounts_type const& amounts) const {
    std::size_t cell = 0;
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_) cell += kinds_[r].stride * class_of(r, amounts[r]);
    }
    return cell;
  }

  /// Returns the cells, one bit for each, whose samples may fit a room with these amounts left.
  [[nodiscard]] std::uint64_t within(amounts_type const& left) const {
    std::uint64_t result = ~std::uint64_t{0};
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_) result &= kinds_[r].within[class_of(r, left[r])];
    }
    return result;
  }

  /// Returns the share of the capacity, up to `share_scale<T>::whole`.
  [[nodiscard]] std::uint32_t share(std::size_t kind, T amount) const {
    return scales_[kind](amount);
  }
  /// Returns the share that every sample of a cell requires at least; zero for the resource of the
  /// depths.
  [[nodiscard]] std::uint64_t min_share(std::size_t cell, std::size_t kind) const {
    return kinds_[kind].min_shares[cell];
  }

 private:
  struct kind_cells {
    quantized_axis<T> classes;
    std::size_t last_class = 0;
    std::size_t stride = 0;
    /// For each class, counted from the largest amounts: bits that mark the cells whose amounts are
    /// not above the class.
    std::array<std::uint64_t, max_cells> within{};
    std::array<std::uint64_t, max_cells> min_shares{};
  };

  [[nodiscard]] std::size_t class_of(std::size_t kind, T amount) const {
    return kinds_[kind].last_class - kinds_[kind].classes(amount);
  }

  /// Returns the largest number of classes per resource for which R - 1 resources have at most
  /// `max_cells` cells.
  [[nodiscard]] static constexpr std::size_t max_classes() {
    for (std::size_t classes = max_cells; classes > 1; --classes) {
      std::size_t cells = 1;
      for (std::size_t r = 1; r != R && cells <= max_cells; ++r) cells *= classes;
      if (cells <= max_cells) return classes;
    }
    return 1;
  }

  /// Divides each of the cells into classes of this resource and returns their number.
  std::size_t divide(std::size_t kind, T capacity) {
    kind_cells& made = kinds_[kind];
    made.classes = quantized_axis<T>(capacity, max_classes());
    made.stride = count_;
    std::size_t const classes = made.classes.count();
    made.last_class = classes - 1;
    for (std::size_t cell = 0; cell != max_cells; ++cell) {
      std::size_t const own = cell / count_ % classes;
      std::uint64_t const bit = std::uint64_t{1} << cell;
      for (std::size_t k = 0; k <= own; ++k) made.within[k] |= bit;
      made.min_shares[cell] = scales_[kind](made.classes.least(classes - 1 - own));
    }
    return classes;
  }

  std::size_t fine_ = 0;
  quantized_axis<T> levels_;
  std::size_t last_level_ = 0;
  std::size_t count_ = 1;
  std::array<share_scale<T>, R> scales_{};
  std::array<kind_cells, R> kinds_{};
};

/// Waiting samples in the order of their arrival, and in cells and depths. The largest sample that
/// fits a room is found by scanning bits. The samples of a depth of a cell are a ring in the order
/// of their arrival. Every lookup is therefore a function of the waiting samples and their order,
/// not of the past.
///
/// All memory is allocated at construction. Its size depends on the largest number of samples, not
/// on the capacity.
template <std::size_t R, class T>
class waiting_samples {
 public:
  using amounts_type = resources<R, T>;
  using layout_type = plain_layout<R, T>;
  using room_type = typename layout_type::room_type;
  using slot = std::uint32_t;

  static constexpr slot none = std::numeric_limits<slot>::max();

  waiting_samples(amounts_type const& capacity, std::size_t most)
      : layout_(capacity),
        cells_(capacity, std::clamp<std::size_t>(std::bit_ceil(4 * most), 64, 4096)),
        depths_(cells_.count(), cells_.depth_count()),
        heads_(depths_.bucket_count(), none),
        nodes_(most) {
    for (std::size_t k = most; k-- != 0;) {
      nodes_[k].newer = std::exchange(free_, static_cast<slot>(k));
    }
  }

  [[nodiscard]] layout_type const& layout() const { return layout_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] slot oldest() const { return oldest_; }
  /// Returns the sample that arrived next; `none` after the last.
  [[nodiscard]] slot newer(slot of) const { return nodes_[of].newer; }
  [[nodiscard]] std::uint64_t id(slot of) const { return nodes_[of].id; }
  [[nodiscard]] std::uint64_t push(slot of) const { return nodes_[of].push; }
  [[nodiscard]] amounts_type const& demand(slot of) const { return nodes_[of].demand; }

  /// Adds a sample. Precondition: fewer than the largest number of samples wait, none is hidden,
  /// and the demand fits the capacity.
  void add(std::uint64_t id, std::uint64_t push, amounts_type const& demand) {
    slot const made = free_;
    node& added = nodes_[made];
    free_ = added.newer;
    added.demand = demand;
    added.id = id;
    added.push = push;
    added.older = std::exchange(newest_, made);
    added.newer = none;
    (added.older == none ? oldest_ : nodes_[added.older].newer) = made;
    std::size_t const cell = cells_.cell_of(demand);
    std::size_t const depth = cells_.depth_of(demand);
    for (std::size_t r = 0; r != R; ++r) {
      added.shares[r] = cells_.share(r, demand[r]);
      totals_[r] += added.shares[r];
    }
    added.bucket = static_cast<std::uint32_t>(depths_.bucket_of(cell, depth));
    slot const head = heads_[added.bucket];
    added.after = head == none ? made : head;
    added.before = head == none ? made : nodes_[head].before;
    ++size_;
    show(made);
  }

  /// Removes a sample. Precondition: the sample is hidden.
  void erase(slot of) {
    node& erased = nodes_[of];
    for (std::size_t r = 0; r != R; ++r) totals_[r] -= erased.shares[r];
    (erased.older == none ? oldest_ : nodes_[erased.older].newer) = erased.newer;
    (erased.newer == none ? newest_ : nodes_[erased.newer].older) = erased.older;
    erased.newer = std::exchange(free_, of);
    --size_;
  }

  /// Hides a sample, so that `most_valuable` no longer returns it.
  void hide(slot of) {
    node const& hidden = nodes_[of];
    if (hidden.after == of) {
      heads_[hidden.bucket] = none;
      depths_.erase(hidden.bucket);
      return;
    }
    nodes_[hidden.before].after = hidden.after;
    nodes_[hidden.after].before = hidden.before;
    if (heads_[hidden.bucket] == of) heads_[hidden.bucket] = hidden.after;
  }

  /// Undoes `hide`. Precondition: all samples that were hidden later have been shown.
  void show(slot of) {
    node const& shown = nodes_[of];
    nodes_[shown.before].after = of;
    nodes_[shown.after].before = of;
    slot& head = heads_[shown.bucket];
    if (head == none) depths_.insert(shown.bucket);
    if (head == none || shown.push < nodes_[head].push) head = of;
  }

  /// Returns the weighted sum of the shares of the capacity that are left in a room.
  [[nodiscard]] std::uint64_t worth(room_type const& room) const {
    amounts_type const left = layout_.left(room);
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r != R; ++r) sum += cells_.share(r, left[r]) * weights_[r];
    return sum;
  }

  /// The cells and depths of the samples that may fit a room.
  struct place {
    /// One bit for each cell; zero if certainly no sample fits.
    std::uint64_t cells;
    /// The smallest depth of samples that may fit.
    std::size_t depth;
  };

  /// Prepares lookups for this room and smaller ones: sets the weight of each resource in
  /// proportion to the total waiting demand for it. Returns the place of the room.
  [[nodiscard]] place weigh(room_type const& room) {
    place const result = place_of(room);
    if (result.cells == 0) return result;
    std::uint64_t sum = 0;
    for (std::uint64_t const total : totals_) sum += total;
    int const excess = std::max(48, static_cast<int>(std::bit_width(sum))) - 48;
    std::uint64_t const scale =
        (std::uint64_t{1} << 62) / std::max<std::uint64_t>(1, sum >> excess);
    for (std::size_t r = 0; r != R; ++r) weights_[r] = 1 + ((totals_[r] >> excess) * scale >> 47);
    std::uint64_t const depth_worth =
        (share_scale<T>::whole / cells_.depth_count() + 1) * weights_[cells_.fine()];
    depth_key_ = (depth_worth << bucket_bits) - 1;
    min_worth_ = 1 + (cells_.depth_count() - 1) * depth_worth;
    return result;
  }

  [[nodiscard]] place place_of(room_type const& room) const {
    amounts_type const left = layout_.left(room);
    return {depths_.cells() & cells_.within(left), cells_.depth_of(left)};
  }

  /// Returns the sample with the largest weighted share among the samples that fit the room, at the
  /// resolution of cells and depths. Among equal samples, returns the oldest sample of the last
  /// cell. A depth or a cell may have both samples that fit and samples that do not fit. In this
  /// case, only `probes` samples are tried, and a sample that fits may be missed. Adds the work to
  /// `work`, in the units of `work_of_probe`. Precondition: `at` is the place of the room, and
  /// `weigh` has been called for a room that is not below this one.
  [[nodiscard]] slot most_valuable(room_type const& room, place const& at,
                                   std::uint64_t& work) const {
    work += work_of_lookup;
    // The high bits of a key are the worth of a cell and a depth, the low bits are the bucket. One
    // comparison of keys therefore suffices.
    typename depth_sets::search const depth_in(depths_, at.depth);
    std::uint64_t const depth_key = depth_key_;
    std::uint64_t const min_depth_key = at.depth * depth_key;
    std::uint64_t best = 0;
    for (std::uint64_t cells = at.cells; cells != 0; cells &= cells - 1) {
      auto const cell = static_cast<std::size_t>(std::countr_zero(cells));
      std::uint64_t const key = key_of(cell);
      work += work_of_cell;
      // With two resources, a later cell is worth less.
      if (R == 2 && key - min_depth_key <= best) break;
      if (R > 2 && key - min_depth_key <= best) continue;
      std::size_t depth = depth_in(cell);
      if (depth == depth_sets::none) [[unlikely]]
        continue;
      if (key - depth * depth_key <= best) continue;
      depth = depth_with_fit(cell, depth, room, work);
      if (depth == depth_sets::none) continue;
      best = std::max(best, key - depth * depth_key);
    }
    if (best == 0) return none;
    slot result = heads_[best & ~(~std::uint64_t{0} << bucket_bits)];
    while (!layout_.fits(room, nodes_[result].demand)) result = nodes_[result].after;
    return result;
  }

 private:
  /// A size that is a power of two makes the address of a node cheap to compute.
  struct alignas(R <= 2 ? 64 : alignof(std::uint64_t)) node {
    amounts_type demand;
    std::uint32_t shares[R];
    slot older, newer;
    slot before, after;
    std::uint32_t bucket;
    std::uint64_t id;
    std::uint64_t push;
  };

  using depth_sets = hierarchical_bitset<false>;
  /// The number of a bucket is less than two to this power: 64 cells of 4096 depths.
  static constexpr unsigned bucket_bits = 18;
  static constexpr std::size_t probes = 4;
  static constexpr std::uint64_t work_of_lookup = 8;
  static constexpr std::uint64_t work_of_cell = 2;
  static constexpr std::uint64_t work_of_probe = 6;

  /// Returns the key of a cell: the worth of a sample at depth zero in the high bits, the bucket of
  /// the cell in the low bits.
  [[nodiscard]] std::uint64_t key_of(std::size_t cell) const {
    std::uint64_t worth = min_worth_;
    for (std::size_t r = 0; r != R; ++r) worth += cells_.min_share(cell, r) * weights_[r];
    return worth << bucket_bits | depths_.bucket_of(cell, 0);
  }

  /// Returns the first depth of the cell, from `depth` on, at which a sample fits the room.
  [[nodiscard]] std::size_t depth_with_fit(std::size_t cell, std::size_t depth,
                                           room_type const& room, std::uint64_t& work) const {
    for (std::size_t k = 0; k != probes; ++k) {
      slot const head = heads_[depths_.bucket_of(cell, depth)];
      slot tried = head;
      for (std::size_t probe = 0; probe != probes; ++probe) {
        work += work_of_probe;
        if (layout_.fits(room, nodes_[tried].demand)) return depth;
        tried = nodes_[tried].after;
        if (tried == head) break;
      }
      if (depth + 1 == cells_.depth_count()) return depth_sets::none;
      depth = typename depth_sets::search(depths_, depth + 1)(cell);
      if (depth == depth_sets::none) return depth;
    }
    return depth_sets::none;
  }

  layout_type layout_;
  size_classes<R, T> cells_;
  depth_sets depths_;
  /// The oldest sample of each bucket.
  std::vector<slot> heads_;
  std::vector<node> nodes_;
  slot free_ = none;
  slot oldest_ = none;
  slot newest_ = none;
  std::size_t size_ = 0;

  std::array<std::uint64_t, R> totals_{};
  std::array<std::uint64_t, R> weights_{};
  std::uint64_t depth_key_ = 0;
  std::uint64_t min_worth_ = 0;
};

}  // namespace omnibal::inline v0::detail
