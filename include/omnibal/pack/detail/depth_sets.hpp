#pragma once

/// \file
/// Sets of depths as bits, one set for each of at most 64 cells.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

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

}  // namespace omnibal::inline v0::detail
