#pragma once

/// \file
/// The samples that wait in an online packer.

#include <omnibal/config.hpp>
#include <omnibal/pack/detail/layout.hpp>
#include <omnibal/pack/detail/level_sets.hpp>
#include <omnibal/pack/detail/room_levels.hpp>
#include <omnibal/pack/detail/share_scale.hpp>
#include <omnibal/pack/online_state.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Samples in the order of their arrival; and in at most 64 cells by all resources but one, the
/// fine one, and within a cell in levels by that one, so that the largest sample that a room takes
/// is found by scanning bits. The samples of a level are a ring in the order of their arrival:
/// every lookup is a function of the waiting samples and their order, not of the past.
///
/// All memory is allocated at construction and depends on the most samples, not on the capacity.
template <std::size_t R, class T>
class waiting_samples {
 public:
  using sample_type = waiting_sample<R, T>;
  using amounts_type = resources<R, T>;
  using layout_type =
      std::conditional_t<std::floating_point<T>, floating_layout<R>, wide_layout<R>>;
  using room_type = typename layout_type::room_type;
  using slot = std::uint32_t;

  static constexpr slot none = std::numeric_limits<slot>::max();

  waiting_samples(amounts_type const& capacity, std::size_t most)
      : layout_(capacity), nodes_(most) {
    for (std::size_t r = 1; r != R; ++r) fine_ = capacity[r] >= capacity[fine_] ? r : fine_;
    std::size_t cells = 1;
    for (std::size_t r = 0; r != R; ++r) {
      scales_[r] = share_scale<T>(capacity[r]);
      if (r != fine_) cells *= divide(r, capacity[r], cells);
    }
    fine_levels_ =
        room_levels<T>(capacity[fine_], std::clamp<std::size_t>(std::bit_ceil(4 * most), 64, 4096));
    levels_ = level_sets(cells, fine_levels_.count());
    heads_.assign(levels_.bucket_count(), none);
    for (std::size_t k = most; k-- != 0;) {
      nodes_[k].newer = std::exchange(free_, static_cast<slot>(k));
    }
  }

  [[nodiscard]] layout_type const& layout() const { return layout_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] slot oldest() const { return oldest_; }
  /// The sample that came next; `none` after the last.
  [[nodiscard]] slot newer(slot of) const { return nodes_[of].newer; }
  [[nodiscard]] sample_type const& operator[](slot of) const { return nodes_[of].sample; }

  /// Precondition: fewer than the most samples wait, none is hidden, and the demand fits the
  /// capacity.
  void add(sample_type const& sample) {
    slot const made = free_;
    node& added = nodes_[made];
    free_ = added.newer;
    added.sample = sample;
    added.older = std::exchange(newest_, made);
    added.newer = none;
    (added.older == none ? oldest_ : nodes_[added.older].newer) = made;
    std::size_t cell = 0;
    for (std::size_t r = 0; r != R; ++r) {
      T const amount = sample.demand[r];
      added.shares[r] = scales_[r](amount);
      totals_[r] += added.shares[r];
      if (r != fine_) cell += strides_[r] * classes_[r](amount);
    }
    added.bucket =
        static_cast<std::uint32_t>(levels_.bucket_of(cell, fine_levels_(sample.demand[fine_])));
    slot const head = heads_[added.bucket];
    added.after = head == none ? made : head;
    added.before = head == none ? made : nodes_[head].before;
    ++size_;
    show(made);
  }

  /// Precondition: the sample is hidden.
  void erase(slot of) {
    node& erased = nodes_[of];
    for (std::size_t r = 0; r != R; ++r) totals_[r] -= erased.shares[r];
    (erased.older == none ? oldest_ : nodes_[erased.older].newer) = erased.newer;
    (erased.newer == none ? newest_ : nodes_[erased.newer].older) = erased.older;
    erased.newer = std::exchange(free_, of);
    --size_;
  }

  /// From now on `most_valuable` passes over the sample.
  void hide(slot of) {
    node const& hidden = nodes_[of];
    if (hidden.after == of) {
      heads_[hidden.bucket] = none;
      levels_.erase(hidden.bucket);
      return;
    }
    nodes_[hidden.before].after = hidden.after;
    nodes_[hidden.after].before = hidden.before;
    if (heads_[hidden.bucket] == of) heads_[hidden.bucket] = hidden.after;
  }

  /// Undoes `hide`. Precondition: what was hidden later has been shown.
  void show(slot of) {
    node const& shown = nodes_[of];
    nodes_[shown.before].after = of;
    nodes_[shown.after].before = of;
    slot& head = heads_[shown.bucket];
    if (head == none) levels_.insert(shown.bucket);
    if (head == none || shown.sample.push < nodes_[head].sample.push) head = of;
  }

  /// Sets the weights of the resources: each in proportion to what of it waits.
  void weigh() {
    std::uint64_t sum = 0;
    for (std::uint64_t const total : totals_) sum += total;
    int const excess = std::max(48, static_cast<int>(std::bit_width(sum))) - 48;
    sum = std::max<std::uint64_t>(1, sum >> excess);
    for (std::size_t r = 0; r != R; ++r) weights_[r] = 1 + ((totals_[r] >> excess) << 15) / sum;
    level_worth_ = (share_scale<T>::whole / fine_levels_.count() + 1) * weights_[fine_];
    for (std::uint64_t cells = levels_.cells(); cells != 0; cells &= cells - 1) {
      auto const cell = static_cast<std::size_t>(std::countr_zero(cells));
      cell_worths_[cell] = 1;
      for (std::size_t r = 0; r != R; ++r) {
        cell_worths_[cell] += cell_shares_[cell][r] * weights_[r];
      }
    }
  }

  /// The weighted sum of the shares of the capacity that the sample takes.
  [[nodiscard]] std::uint64_t worth(slot of) const {
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r != R; ++r) sum += nodes_[of].shares[r] * weights_[r];
    return sum;
  }

  /// The sample with the largest weighted share of those that the room takes, at the resolution of
  /// cells and levels: of equal ones the oldest of the lowest cell. Where a level or a cell has
  /// both samples that fit and samples that do not, `probes` are tried, and one may be missed.
  [[nodiscard]] slot most_valuable(room_type const& room) const {
    amounts_type const left = layout_.left(room);
    std::uint64_t cells = levels_.cells();
    // Rounding may separate the level of a floating-point sum from those of its terms.
    std::uint64_t mixed = std::floating_point<T> ? ~std::uint64_t{0} : 0;
    for (std::size_t r = 0; r != R; ++r) {
      if (r == fine_) continue;
      std::size_t const k = classes_[r](left[r]);
      cells &= up_to_class_[r][k];
      mixed |= mixed_in_class_[r][k];
    }
    std::size_t const level = fine_levels_(left[fine_]);
    std::uint64_t best_worth = 0;
    std::size_t best = 0;
    for (; cells != 0; cells &= cells - 1) {
      auto const cell = static_cast<std::size_t>(std::countr_zero(cells));
      auto [found, highest] = levels_.up_to(cell, level);
      if (found && (highest == level || (mixed >> cell & 1) != 0)) [[unlikely]] {
        slot const sample = find(cell, highest, room);
        found = sample != none;
        if (found) highest = levels_.level_of(nodes_[sample].bucket);
      }
      std::uint64_t const worth = found ? cell_worths_[cell] + highest * level_worth_ : 0;
      best = worth > best_worth ? levels_.bucket_of(cell, highest) : best;
      best_worth = std::max(best_worth, worth);
    }
    if (best_worth == 0) return none;
    slot result = heads_[best];
    while (!layout_.fits(room, nodes_[result].sample.demand)) result = nodes_[result].after;
    return result;
  }

 private:
  struct node {
    sample_type sample;
    std::uint32_t shares[R];
    slot older, newer;
    slot before, after;
    std::uint32_t bucket;
  };

  static constexpr std::size_t most_cells = 64;
  static constexpr std::size_t probes = 4;

  /// The most classes of one resource so that all but the fine one can have as many.
  [[nodiscard]] static constexpr std::size_t most_classes() {
    for (std::size_t classes = most_cells; classes > 1; --classes) {
      std::size_t cells = 1;
      for (std::size_t r = 1; r != R && cells <= most_cells; ++r) cells *= classes;
      if (cells <= most_cells) return classes;
    }
    return 1;
  }

  /// Divides each of `cells` cells into classes of this resource and returns their number.
  std::size_t divide(std::size_t kind, T capacity, std::size_t cells) {
    classes_[kind] = room_levels<T>(capacity, most_classes());
    strides_[kind] = cells;
    for (std::size_t cell = 0; cell != most_cells; ++cell) {
      std::size_t const own = cell / cells % classes_[kind].count();
      std::uint64_t const bit = std::uint64_t{1} << cell;
      for (std::size_t k = own; k != most_cells; ++k) up_to_class_[kind][k] |= bit;
      if (classes_[kind].least(1) != T{1}) mixed_in_class_[kind][own] |= bit;
      cell_shares_[cell][kind] = scales_[kind](classes_[kind].least(own));
    }
    return classes_[kind].count();
  }

  /// A sample of the cell that fits the room, from `level` on down.
  [[nodiscard]] slot find(std::size_t cell, std::size_t level, room_type const& room) const {
    for (std::size_t k = 0; k != probes; ++k) {
      auto const [found, highest] = levels_.up_to(cell, level);
      if (!found) return none;
      slot const head = heads_[levels_.bucket_of(cell, highest)];
      slot tried = head;
      for (std::size_t probe = 0; probe != probes; ++probe) {
        if (layout_.fits(room, nodes_[tried].sample.demand)) return tried;
        tried = nodes_[tried].after;
        if (tried == head) break;
      }
      if (highest == 0) return none;
      level = highest - 1;
    }
    return none;
  }

  layout_type layout_;
  std::array<share_scale<T>, R> scales_{};
  std::size_t fine_ = 0;
  room_levels<T> fine_levels_;
  std::array<room_levels<T>, R> classes_{};
  std::array<std::size_t, R> strides_{};
  /// The cells whose class of a resource is at most k; those of class k where it has several
  /// amounts.
  std::array<std::array<std::uint64_t, most_cells>, R> up_to_class_{};
  std::array<std::array<std::uint64_t, most_cells>, R> mixed_in_class_{};
  std::array<std::array<std::uint64_t, R>, most_cells> cell_shares_{};

  level_sets levels_;
  /// The oldest sample of each level of each cell.
  std::vector<slot> heads_;
  std::vector<node> nodes_;
  slot free_ = none;
  slot oldest_ = none;
  slot newest_ = none;
  std::size_t size_ = 0;

  std::array<std::uint64_t, R> totals_{};
  std::array<std::uint64_t, R> weights_{};
  std::array<std::uint64_t, most_cells> cell_worths_{};
  std::uint64_t level_worth_ = 0;
};

}  // namespace omnibal::inline v0::detail
