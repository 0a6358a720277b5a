#pragma once

/// \file
/// Demands sorted into cells and depths.

#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/pack/detail/open_groups.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The order in which the resource with the largest capacity, of equal ones the last, comes first
/// and the others follow as they are.
template <std::size_t R, class T>
class resource_order {
 public:
  using amounts_type = resources<R, T>;

  explicit constexpr resource_order(amounts_type const& capacity) {
    for (std::uint32_t r = 1; r != R; ++r) {
      kinds_[0] = capacity[r] >= capacity[kinds_[0]] ? r : kinds_[0];
    }
    for (std::uint32_t r = 1; r != R; ++r) kinds_[r] = r <= kinds_[0] ? r - 1 : r;
  }

  [[nodiscard]] constexpr amounts_type ordered(amounts_type const& amounts) const {
    amounts_type result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = amounts[kinds_[r]];
    return result;
  }

  /// The inverse.
  [[nodiscard]] constexpr amounts_type restored(amounts_type const& amounts) const {
    amounts_type result{};
    for (std::size_t r = 0; r != R; ++r) result[kinds_[r]] = amounts[r];
    return result;
  }

 private:
  std::array<std::uint32_t, R> kinds_{};
};

/// Sets of depths below 4096. A depth of a cell is named by a bucket, `bucket_of(cell, depth)`.
class depth_sets {
 public:
  /// A bucket is less than two to this power.
  static constexpr unsigned bucket_bits = 18;
  static constexpr std::size_t none = ~std::size_t{0};

  depth_sets() = default;
  depth_sets(std::size_t cells, std::size_t depths)
      : depth_bits_(static_cast<unsigned>(std::bit_width(std::max<std::size_t>(64, depths) - 1))),
        words_(cells << (depth_bits_ - 6)),
        summaries_(cells) {}

  [[nodiscard]] std::size_t bucket_count() const { return 64 * words_.size(); }
  [[nodiscard]] std::size_t bucket_of(std::size_t cell, std::size_t depth) const {
    return cell << depth_bits_ | depth;
  }
  [[nodiscard]] std::size_t cell_of(std::size_t bucket) const { return bucket >> depth_bits_; }
  [[nodiscard]] std::size_t depth_of(std::size_t bucket) const {
    return bucket & ((std::size_t{1} << depth_bits_) - 1);
  }

  /// A bit for every cell whose set is not empty.
  [[nodiscard]] std::uint64_t cells() const { return cells_; }

  void insert(std::size_t bucket) {
    std::size_t const cell = cell_of(bucket);
    words_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
    summaries_[cell] |= std::uint64_t{1} << depth_of(bucket) / 64;
    cells_ |= std::uint64_t{1} << cell;
  }

  void erase(std::size_t bucket) {
    // Without branches: whether a word becomes zero is hard to predict.
    std::size_t const cell = cell_of(bucket);
    words_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
    std::uint64_t const word_is_empty = words_[bucket / 64] == 0 ? 1 : 0;
    summaries_[cell] &= ~(word_is_empty << depth_of(bucket) / 64);
    std::uint64_t const cell_is_empty = summaries_[cell] == 0 ? 1 : 0;
    cells_ &= ~(cell_is_empty << cell);
  }

  /// One more than the greatest depth of the cell; zero where it has none.
  [[nodiscard]] std::size_t height(std::size_t cell) const {
    if (summaries_[cell] == 0) return 0;
    auto const word = static_cast<std::size_t>(std::bit_width(summaries_[cell])) - 1;
    std::uint64_t const bits = words_[bucket_of(cell, 0) / 64 + word];
    return 64 * word + static_cast<std::size_t>(std::bit_width(bits));
  }

  /// Finds the least depth of a cell that is not below `first`, or `none`.
  class search {
   public:
    search(depth_sets const& sets, std::size_t first)
        : words_(sets.words_.data()),
          summaries_(sets.summaries_.data()),
          word_bits_(sets.depth_bits_ - 6),
          word_(first / 64),
          here_(~std::uint64_t{0} << first % 64),
          after_(~std::uint64_t{1} << first / 64) {}

    [[nodiscard]] std::size_t operator()(std::size_t cell) const {
      std::uint64_t const* const words = words_ + (cell << word_bits_);
      std::uint64_t const here = words[word_] & here_;
      if (here != 0) return 64 * word_ + first_of(here);
      std::uint64_t const after = summaries_[cell] & after_;
      if (after == 0) return none;
      std::size_t const word = first_of(after);
      return 64 * word + first_of(words[word]);
    }

   private:
    /// The position of the first bit. With a bit that is always set compilers omit a test for zero.
    [[nodiscard]] static std::size_t first_of(std::uint64_t bits) {
      return static_cast<std::size_t>(std::countr_zero(bits | std::uint64_t{1} << 63));
    }

    std::uint64_t const* words_;
    std::uint64_t const* summaries_;
    unsigned word_bits_;
    std::size_t word_;
    std::uint64_t here_;
    std::uint64_t after_;
  };

 private:
  unsigned depth_bits_ = 6;
  std::vector<std::uint64_t> words_;
  /// For each cell, which of its words are not zero.
  std::vector<std::uint64_t> summaries_;
  std::uint64_t cells_ = 0;
};

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
