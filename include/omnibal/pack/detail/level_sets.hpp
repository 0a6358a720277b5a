#pragma once

/// \file
/// Sets of levels as bits, one set for each of at most 64 cells.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Sets of levels below 4096. A level of a cell is named by a bucket, `bucket_of(cell, level)`.
class level_sets {
 public:
  struct search_result {
    bool found;
    std::size_t level;
  };

  level_sets() = default;
  level_sets(std::size_t cells, std::size_t levels)
      : level_bits_(static_cast<unsigned>(std::bit_width(std::max<std::size_t>(64, levels) - 1))),
        words_(cells << (level_bits_ - 6)),
        summaries_(cells) {}

  [[nodiscard]] std::size_t bucket_count() const { return 64 * words_.size(); }
  [[nodiscard]] std::size_t bucket_of(std::size_t cell, std::size_t level) const {
    return cell << level_bits_ | level;
  }
  [[nodiscard]] std::size_t level_of(std::size_t bucket) const {
    return bucket & ((std::size_t{1} << level_bits_) - 1);
  }

  /// A bit for every cell whose set is not empty.
  [[nodiscard]] std::uint64_t cells() const { return cells_; }

  void insert(std::size_t bucket) {
    std::size_t const cell = bucket >> level_bits_;
    words_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
    summaries_[cell] |= std::uint64_t{1} << level_of(bucket) / 64;
    cells_ |= std::uint64_t{1} << cell;
  }

  void erase(std::size_t bucket) {
    // Without branches: whether a word becomes zero is hard to predict.
    std::size_t const cell = bucket >> level_bits_;
    words_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
    std::uint64_t const word_is_empty = words_[bucket / 64] == 0 ? 1 : 0;
    summaries_[cell] &= ~(word_is_empty << level_of(bucket) / 64);
    std::uint64_t const cell_is_empty = summaries_[cell] == 0 ? 1 : 0;
    cells_ &= ~(cell_is_empty << cell);
  }

  /// The highest level of the cell that is not above `level`.
  [[nodiscard]] search_result up_to(std::size_t cell, std::size_t level) const {
    std::size_t const first_word = bucket_of(cell, 0) / 64;
    std::size_t const word = level / 64;
    std::uint64_t const here = words_[first_word + word] & ~std::uint64_t{0} >> (63 - level % 64);
    std::uint64_t const below = summaries_[cell] & ((std::uint64_t{1} << word) - 1);
    std::size_t const chosen = here != 0 ? word : highest(below);
    std::uint64_t const bits = here != 0 ? here : words_[first_word + chosen];
    return {(here | below) != 0, 64 * chosen + highest(bits)};
  }

 private:
  /// The position of the highest bit; zero where there is none.
  [[nodiscard]] static std::size_t highest(std::uint64_t bits) {
    return static_cast<std::size_t>(63 - std::countl_zero(bits | 1));
  }

  unsigned level_bits_ = 6;
  std::vector<std::uint64_t> words_;
  /// For each cell, which of its words are not zero.
  std::vector<std::uint64_t> summaries_;
  std::uint64_t cells_ = 0;
};

}  // namespace omnibal::inline v0::detail
