// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sets of small numbers, whose next member is found by a scan of bits.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// A set of depths, which are small numbers, for each of at most 64 cells. Each set is a
/// hierarchical bitset. A bucket identifies a depth of a cell: `bucket_of(cell, depth)`. Depths are
/// below 4096 unless `is_deep`.
template <bool is_deep>
class hierarchical_bitset {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  hierarchical_bitset() = default;
  hierarchical_bitset(std::size_t cells, std::size_t depths)
      : depth_bits_(static_cast<unsigned>(std::bit_width(std::max<std::size_t>(64, depths) - 1))),
        words_(cells << (depth_bits_ - 6)),
        summaries_(cells << summary_bits()) {}

  [[nodiscard]] std::size_t bucket_count() const { return 64 * words_.size(); }
  [[nodiscard]] std::size_t bucket_of(std::size_t cell, std::size_t depth) const {
    return cell << depth_bits_ | depth;
  }

  /// Returns a bit for every cell whose set is not empty.
  [[nodiscard]] std::uint64_t cells() const { return cells_; }

  void insert(std::size_t bucket) {
    std::size_t const cell = bucket >> depth_bits_;
    std::size_t const word = word_of(bucket);
    words_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
    summaries_[(cell << summary_bits()) + word / 64] |= std::uint64_t{1} << word % 64;
    cells_ |= std::uint64_t{1} << cell;
  }

  void erase(std::size_t bucket) {
    std::size_t const cell = bucket >> depth_bits_;
    std::size_t const word = word_of(bucket);
    std::uint64_t* const summary = summaries_.data() + (cell << summary_bits());
    words_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
    // The other code has no branches, because the processor cannot predict whether the word is
    // zero.
    if (is_deep && words_[bucket / 64] != 0) return;
    std::uint64_t const word_is_empty = words_[bucket / 64] == 0 ? 1 : 0;
    summary[word / 64] &= ~(word_is_empty << word % 64);
    std::uint64_t rest = summary[0];
    for (std::size_t k = 1; is_deep && k >> summary_bits() == 0; ++k) rest |= summary[k];
    std::uint64_t const cell_is_empty = rest == 0 ? 1 : 0;
    cells_ &= ~(cell_is_empty << cell);
  }

  /// Finds the least depth of a cell that is not below `first`, or `none`.
  class search {
   public:
    search(hierarchical_bitset const& sets, std::size_t first)
        : words_(sets.words_.data()),
          summaries_(sets.summaries_.data()),
          word_bits_(sets.depth_bits_ - 6),
          summary_bits_(sets.summary_bits()),
          word_(first / 64),
          here_(~std::uint64_t{0} << first % 64),
          after_(~std::uint64_t{1} << first / 64 % 64) {}

    [[nodiscard]] std::size_t operator()(std::size_t cell) const {
      std::uint64_t const* const words = words_ + (cell << word_bits_);
      std::uint64_t const here = words[word_] & here_;
      if (here != 0) return 64 * word_ + first_of(here);
      std::size_t block = is_deep ? word_ / 64 : 0;
      std::uint64_t const* const summary = summaries_ + (is_deep ? cell << summary_bits_ : cell);
      std::uint64_t after = summary[block] & after_;
      while (is_deep && after == 0 && ++block >> summary_bits_ == 0) after = summary[block];
      if (after == 0) return none;
      std::size_t const word = 64 * block + first_of(after);
      return 64 * word + first_of(words[word]);
    }

   private:
    /// Returns the position of the first bit. Compilers omit a test for zero because one bit is
    /// always set.
    [[nodiscard]] static std::size_t first_of(std::uint64_t bits) {
      return static_cast<std::size_t>(std::countr_zero(bits | std::uint64_t{1} << 63));
    }

    std::uint64_t const* words_;
    std::uint64_t const* summaries_;
    unsigned word_bits_;
    unsigned summary_bits_;
    std::size_t word_;
    std::uint64_t here_;
    std::uint64_t after_;
  };

 private:
  /// Returns the position of the word of a bucket within the words of its cell.
  [[nodiscard]] std::size_t word_of(std::size_t bucket) const {
    return (bucket & ((std::size_t{1} << depth_bits_) - 1)) / 64;
  }

  /// Returns the logarithm to base 2 of the number of summaries of a cell.
  [[nodiscard]] unsigned summary_bits() const {
    return is_deep ? std::max(12u, depth_bits_) - 12 : 0;
  }

  unsigned depth_bits_ = 6;
  std::vector<std::uint64_t> words_;
  /// Bits that mark the nonzero words of each cell.
  std::vector<std::uint64_t> summaries_;
  std::uint64_t cells_ = 0;
};

}  // namespace omnibal::inline v0::detail
