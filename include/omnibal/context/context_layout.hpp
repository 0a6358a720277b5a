#pragma once

/// \file
/// Which tokens of a step lie on which rank.

#include <omnibal/grouping.hpp>
#include <omnibal/pack/cu_seqlens.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// Neighbouring tokens of a sample, on one rank.
struct context_piece {
  std::uint32_t sample = 0;
  /// The position in the sample of the first one.
  std::int32_t first = 0;
  std::int32_t tokens = 0;
  /// The tokens, and the padding that follows them.
  std::int32_t padded_tokens = 0;

  [[nodiscard]] friend bool operator==(context_piece const&, context_piece const&) = default;
};

/// The pieces of all samples of a step, and who has them: the result of `context_pieces`, equal on
/// all ranks. All numbers of tokens are the 32-bit signed integers of attention kernels. An object
/// that has been moved from may only be assigned to or destroyed.
class context_layout {
 public:
  /// No ranks.
  context_layout() = default;

  [[nodiscard]] std::size_t ranks() const noexcept { return ranks_; }
  [[nodiscard]] std::size_t micro_steps() const noexcept { return micro_steps_; }
  [[nodiscard]] std::size_t sample_count() const noexcept { return piece_offsets_.size() - 1; }

  /// The pieces of sample 0 by ascending tokens, then those of sample 1 and so on. By their place
  /// here others name them.
  [[nodiscard]] std::span<context_piece const> pieces() const& { return pieces_; }
  /// Sample s has the pieces [offsets[s], offsets[s + 1]).
  [[nodiscard]] std::span<std::uint32_t const> piece_offsets() const& { return piece_offsets_; }

  /// The pieces of each rank in each micro-step: cell `micro_step * ranks() + rank`. Of each sample
  /// in the order of its group the head, then the tail; none where the rank is idle.
  [[nodiscard]] grouping_view cells() const& { return cells_; }
  /// Those of one rank in one micro-step. Precondition: there are such, here and below.
  [[nodiscard]] std::span<std::uint32_t const> pieces_of(std::size_t micro_step,
                                                         std::size_t rank) const& {
    return cells_[cell(micro_step, rank)];
  }

  /// The cumulative padded tokens of a rank in a micro-step: one sequence for each sample of its
  /// group, also where the rank has nothing of it.
  [[nodiscard]] std::span<std::int32_t const> cu_seqlens(std::size_t micro_step,
                                                         std::size_t rank) const& {
    return own_[cell(micro_step, rank)];
  }
  /// Its padded tokens, and the most that it has of one sample.
  [[nodiscard]] std::int32_t tokens(std::size_t micro_step, std::size_t rank) const {
    return own_.tokens(cell(micro_step, rank));
  }
  [[nodiscard]] std::int32_t longest(std::size_t micro_step, std::size_t rank) const {
    return own_.longest(cell(micro_step, rank));
  }

  /// The whole samples of each group of the plan, as `cu_seqlens(plan.samples, lengths)` has them,
  /// and the same with their padding.
  [[nodiscard]] sequence_offsets const& sequences() const& { return whole_; }
  [[nodiscard]] sequence_offsets const& padded_sequences() const& { return padded_; }

  /// Of a temporary there are no views.
  void pieces() const&& = delete;
  void piece_offsets() const&& = delete;
  void cells() const&& = delete;
  void pieces_of(std::size_t, std::size_t) const&& = delete;
  void cu_seqlens(std::size_t, std::size_t) const&& = delete;
  void sequences() const&& = delete;
  void padded_sequences() const&& = delete;

  /// Writes the position in its sample of each token of a rank in a micro-step, and returns the end
  /// of the output. Padding counts on. Complexity: linear in `tokens(micro_step, rank)`. Allocates
  /// nothing.
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
