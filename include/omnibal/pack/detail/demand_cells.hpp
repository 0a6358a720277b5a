#pragma once

/// \file
/// Demands sorted into cells and depths.

#include <omnibal/pack/detail/room_levels.hpp>
#include <omnibal/pack/detail/share_scale.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Divides the demands up to a capacity into at most 64 cells by all resources but the first, and
/// within a cell into depths by the first. Small numbers mean large amounts: depth zero holds the
/// capacity, and what takes less of a resource than a cell has a higher number.
template <std::size_t R, class T>
class demand_cells {
 public:
  using amounts_type = resources<R, T>;

  static constexpr std::size_t most_cells = 64;

  demand_cells(amounts_type const& capacity, std::size_t most_depths)
      : levels_(capacity[0], most_depths), last_level_(levels_.count() - 1) {
    for (std::size_t r = 0; r != R; ++r) {
      scales_[r] = share_scale<T>(capacity[r]);
      if (r != 0) count_ *= divide(r, capacity[r]);
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t depth_count() const { return levels_.count(); }
  [[nodiscard]] std::size_t depth_of(T amount) const { return last_level_ - levels_(amount); }
  [[nodiscard]] std::size_t cell_of(amounts_type const& amounts) const {
    std::size_t cell = 0;
    for (std::size_t r = 1; r != R; ++r) {
      std::size_t const own = class_of(r, amounts[r]);
      cell += r == 1 ? own : kinds_[r].stride * own;
    }
    return cell;
  }

  /// Some of the cells, one bit for each.
  struct selection {
    /// The cells of which a sample may fit.
    std::uint64_t open;
    /// Those among them of which others may not.
    std::uint64_t mixed;
  };

  /// The cells whose samples may fit a room that has left these amounts.
  [[nodiscard]] selection within(amounts_type const& left) const {
    // Rounding may separate the class of a floating-point sum from those of its terms.
    selection result{~std::uint64_t{0}, std::floating_point<T> ? ~std::uint64_t{0} : 0};
    for (std::size_t r = 1; r != R; ++r) {
      selection const& own = kinds_[r].selections[class_of(r, left[r])];
      result.open &= own.open;
      result.mixed |= own.mixed;
    }
    return result;
  }

  /// The share of the capacity, up to `share_scale<T>::whole`.
  [[nodiscard]] std::uint32_t share(std::size_t kind, T amount) const {
    return scales_[kind](amount);
  }
  /// The share that every sample of a cell takes at least; `kind` is not the first.
  [[nodiscard]] std::uint64_t least_share(std::size_t cell, std::size_t kind) const {
    return kinds_[kind].least_shares[cell];
  }

 private:
  struct kind_cells {
    room_levels<T> classes;
    std::size_t last_class = 0;
    std::size_t stride = 0;
    /// For each class, counted from the largest amounts.
    std::array<selection, most_cells> selections{};
    std::array<std::uint64_t, most_cells> least_shares{};
  };

  [[nodiscard]] std::size_t class_of(std::size_t kind, T amount) const {
    return kinds_[kind].last_class - kinds_[kind].classes(amount);
  }

  /// The most classes of one resource so that all but the first can have as many.
  [[nodiscard]] static constexpr std::size_t most_classes() {
    for (std::size_t classes = most_cells; classes > 1; --classes) {
      std::size_t cells = 1;
      for (std::size_t r = 1; r != R && cells <= most_cells; ++r) cells *= classes;
      if (cells <= most_cells) return classes;
    }
    return 1;
  }

  /// Divides each of the cells into classes of this resource and returns their number.
  std::size_t divide(std::size_t kind, T capacity) {
    kind_cells& made = kinds_[kind];
    made.classes = room_levels<T>(capacity, most_classes());
    made.stride = count_;
    std::size_t const classes = made.classes.count();
    made.last_class = classes - 1;
    for (std::size_t cell = 0; cell != most_cells; ++cell) {
      std::size_t const own = cell / count_ % classes;
      std::uint64_t const bit = std::uint64_t{1} << cell;
      for (std::size_t k = 0; k <= own; ++k) made.selections[k].open |= bit;
      if (made.classes.least(1) != T{1}) made.selections[own].mixed |= bit;
      made.least_shares[cell] = scales_[kind](made.classes.least(classes - 1 - own));
    }
    return classes;
  }

  room_levels<T> levels_;
  std::size_t last_level_;
  std::size_t count_ = 1;
  std::array<share_scale<T>, R> scales_{};
  std::array<kind_cells, R> kinds_{};
};

}  // namespace omnibal::inline v0::detail
