// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The tokens of a step on their ranks.

#include <omnibal/grouping.hpp>
#include <omnibal/pack/cu_seqlens.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// Neighboring tokens of a sample, on one rank.
struct context_piece {
  std::uint32_t sample = 0;
  /// The position of the first token in the sample.
  std::int32_t first = 0;
  std::int32_t tokens = 0;
  /// The number of tokens, including the padding that follows them.
  std::int32_t padded_tokens = 0;

  [[nodiscard]] friend bool operator==(context_piece const&, context_piece const&) = default;
};

/// The pieces of all samples of a step and their ranks: the result of `context_pieces`, equal on
/// all ranks. All numbers of tokens are the 32-bit signed integers of attention kernels. The only
/// valid operations on an object that has been moved from are assignment and destruction.
class context_layout {
 public:
  /// Constructs a layout without ranks.
  context_layout() = default;

  [[nodiscard]] std::size_t ranks() const noexcept { return ranks_; }
  [[nodiscard]] std::size_t micro_steps() const noexcept { return micro_steps_; }
  [[nodiscard]] std::size_t sample_count() const noexcept { return piece_offsets_.size() - 1; }

  /// Returns the pieces of sample 0 by ascending tokens, then the pieces of sample 1 and so on. The
  /// index in this list is the number of a piece.
  [[nodiscard]] std::span<context_piece const> pieces() const& { return pieces_; }
  /// Returns the offsets of the samples in `pieces()`: sample s has the pieces [offsets[s],
  /// offsets[s + 1]).
  [[nodiscard]] std::span<std::uint32_t const> piece_offsets() const& { return piece_offsets_; }

  /// Returns the pieces of each rank in each micro-step: cell `micro_step * ranks() + rank`. For
  /// each sample, in the order of its group, a cell lists the head, then the tail. The cell of an
  /// idle rank is empty.
  [[nodiscard]] grouping_view cells() const& { return cells_; }
  /// Returns the pieces of one rank in one micro-step. Precondition, here and below: the micro-step
  /// and the rank exist.
  [[nodiscard]] std::span<std::uint32_t const> pieces_of(std::size_t micro_step,
                                                         std::size_t rank) const& {
    return cells_[cell(micro_step, rank)];
  }

  /// Returns the cumulative padded tokens of a rank in a micro-step: one sequence for each sample
  /// of its group, even if the rank has no tokens of the sample.
  [[nodiscard]] std::span<std::int32_t const> cu_seqlens(std::size_t micro_step,
                                                         std::size_t rank) const& {
    return own_[cell(micro_step, rank)];
  }
  /// Returns the padded tokens of a rank in a micro-step; `longest` returns the most padded tokens
  /// that the rank has of one sample.
  [[nodiscard]] std::int32_t tokens(std::size_t micro_step, std::size_t rank) const {
    return own_.tokens(cell(micro_step, rank));
  }
  [[nodiscard]] std::int32_t longest(std::size_t micro_step, std::size_t rank) const {
    return own_.longest(cell(micro_step, rank));
  }

  /// Returns the whole samples of each group of the plan, as `cu_seqlens(plan.samples, lengths)`
  /// does; `padded_sequences` returns the same with their padding.
  [[nodiscard]] sequence_offsets const& sequences() const& { return whole_; }
  [[nodiscard]] sequence_offsets const& padded_sequences() const& { return padded_; }

  /// A temporary returns no views, because they would dangle.
  void pieces() const&& = delete;
  void piece_offsets() const&& = delete;
  void cells() const&& = delete;
  void pieces_of(std::size_t, std::size_t) const&& = delete;
  void cu_seqlens(std::size_t, std::size_t) const&& = delete;
  void sequences() const&& = delete;
  void padded_sequences() const&& = delete;

  /// Writes the position in its sample of each token of a rank in a micro-step, and returns the end
  /// of the output. Positions continue through the padding. Complexity: linear in
  /// `tokens(micro_step, rank)`. Allocates nothing.
  template <std::output_iterator<std::int32_t> Output>
  Output position_ids(std::size_t micro_step, std::size_t rank, Output output) const {
    for (std::uint32_t const number : pieces_of(micro_step, rank)) {
      context_piece const& piece = pieces_[number];
      for (std::int32_t k = 0; k != piece.padded_tokens; ++k) *output++ = piece.first + k;
    }
    return output;
  }

 private:
  friend struct context_pieces_fn;

  [[nodiscard]] std::size_t cell(std::size_t micro_step, std::size_t rank) const {
    return micro_step * ranks_ + rank;
  }

  std::size_t ranks_ = 0;
  std::size_t micro_steps_ = 0;
  std::vector<context_piece> pieces_;
  std::vector<std::uint32_t> piece_offsets_{0};
  grouping cells_;
  sequence_offsets own_;
  sequence_offsets whole_;
  sequence_offsets padded_;
};

}  // namespace omnibal::inline v0
