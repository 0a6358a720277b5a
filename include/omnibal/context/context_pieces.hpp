// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cut of samples among the ranks of their groups.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/context/context_pieces/head_tail_cut.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/context/detail/copy_lengths.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The padded length of a sample. The padding follows the end of the sample.
enum class context_padding {
  /// A multiple of `multiple`: no padding if `multiple` is 1.
  to_multiple,
  /// A multiple of 2 * d * `multiple` on d > 1 ranks. Then head and tail of all ranks are equal, as
  /// ring attention over packed samples requires (Megatron-Core, Transformer Engine).
  to_equal_pieces,
};

struct context_pieces_options {
  /// The divisor of the number of tokens of each piece, including padding. Use the tensor-parallel
  /// degree if its ranks share the tokens, or the block size of a kernel.
  std::uint32_t multiple = 1;
  context_padding padding = context_padding::to_multiple;
};

namespace detail {

/// Returns the number of blocks of `multiple` tokens of a sample with its padding.
[[nodiscard]] inline std::uint64_t context_blocks(std::int64_t length, std::uint32_t degree,
                                                  context_pieces_options const& options) {
  auto const tokens = static_cast<std::uint64_t>(length);
  std::uint64_t const blocks = (tokens + options.multiple - 1) / options.multiple;
  if (options.padding == context_padding::to_multiple || degree == 1) return blocks;
  std::uint64_t const pieces = 2 * std::uint64_t{degree};
  return (blocks + pieces - 1) / pieces * pieces;
}

}  // namespace detail

struct padded_piece_tokens_fn {
  /// Returns the most tokens, padding included, that a rank of a group of `degree` ranks has of a
  /// sample. The layout is the result of `context_pieces` with these options:
  /// `padded_piece_tokens(length, degree, {.multiple = 2, .padding =
  /// context_padding::to_equal_pieces})`. A memory functor of `context_groups` that counts these
  /// tokens respects the capacity with the padding.
  ///
  /// With `to_equal_pieces` all ranks of the group have this number of tokens. A sample of at most
  /// `multiple` tokens has twice the tokens on two or more ranks as on one rank. Therefore the
  /// capacity of `context_groups` must hold 2 * `multiple` tokens. Complexity: constant.
  /// Determinism: portable. Errors: `std::invalid_argument` if the length is negative or above
  /// 2^32 - 1, if the degree is zero, and if the multiple is zero.
  [[nodiscard]] std::int64_t operator()(std::int64_t length, std::uint32_t degree,
                                        context_pieces_options const& options = {}) const {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (length < 0 || length > most) {
      detail::throw_invalid(name, "length is ", length, ", must be from 0 to ", most);
    }
    detail::check_positive(name, "degree", degree);
    detail::check_positive(name, "options.multiple", options.multiple);
    std::uint64_t const blocks = detail::context_blocks(length, degree, options);
    std::uint64_t const each = (blocks + degree - 1) / degree;
    return static_cast<std::int64_t>(each * options.multiple);
  }

 private:
  static constexpr std::string_view name = "padded_piece_tokens";
};

/// Returns the padded tokens of a sample on a rank of its group; see `padded_piece_tokens_fn`.
inline constexpr padded_piece_tokens_fn padded_piece_tokens{};

/// The memory of `context_pieces`, and its last result, for use in all steps.
class context_pieces_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] context_layout const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct context_pieces_fn;

  std::vector<std::uint32_t> group_of_;
  std::vector<std::int64_t> lengths_;
  std::vector<detail::head_tail_cut> cuts_;
  context_layout result_;
};

struct context_pieces_fn {
  /// Cuts each sample of a plan among the ranks of its group so that all ranks have the same amount
  /// of causal attention: `context_pieces(plan, lengths, ranks, {.multiple = 2})`. The first rank
  /// of a group gets the head and the tail of a sample. The next rank gets the pieces next to head
  /// and tail. The last rank gets the middle, which is one piece. `lengths` and `ranks` are the
  /// arguments of the plan.
  ///
  /// The ranks of a group have the same number of tokens over all samples of a micro-step, up to
  /// `multiple`, if padding counts as tokens. The ranks have the same number of causal pairs of a
  /// sample of n padded tokens, up to `multiple` * (n + `multiple`). `to_equal_pieces` leaves no
  /// difference between the ranks. Every token is in one piece of one rank of its group. A piece
  /// without tokens does not exist, but with `to_equal_pieces` some pieces may contain only
  /// padding.
  ///
  /// Complexity: linear in the pieces, in samples times the ranks of their groups, and in ranks
  /// times micro-steps. A sample has at most two pieces for each rank of its group. Memory: 20
  /// bytes for each piece, 4 for each sample on each rank of its group, 20 for each rank in each
  /// micro-step, 32 for each group, 56 for each sample. Determinism: portable. Errors:
  /// `std::invalid_argument` if the plan has no solution, or if its groups are not on ranks below
  /// `ranks`, share ranks within a micro-step or do not contain each sample once. It is also thrown
  /// if lengths are negative or above 2^31 - 1, and if the multiple is zero. Further errors:
  /// `std::overflow_error` if the padded samples of a group have more than 2^31 - 1 tokens;
  /// `std::length_error` if there are more than 2^32 - 1 pieces. Source: the cut of Megatron-Core's
  /// context parallelism, which has only equal pieces.
  template <sample_range Lengths>
    requires std::integral<std::ranges::range_value_t<Lengths const>>
  [[nodiscard]] context_layout operator()(context_plan const& plan, Lengths const& lengths,
                                          std::size_t ranks,
                                          context_pieces_options const& options = {}) const {
    context_pieces_workspace workspace;
    (*this)(plan, lengths, ranks, options, workspace);
    return std::move(workspace.result_);
  }

  /// Cuts each sample in the memory of a workspace, for a training loop. A call allocates only if
  /// it requires more memory than all calls before it. The workspace owns the result.
  template <sample_range Lengths>
  requires std::integral<std::ranges::range_value_t<Lengths const>> context_layout const&
  operator()(context_plan const& plan, Lengths const& lengths, std::size_t ranks,
             context_pieces_options const& options, context_pieces_workspace& workspace) const {
    detail::check_positive(name, "ranks", ranks);
    detail::check_number(name, "ranks", ranks);
    detail::check_positive(name, "options.multiple", options.multiple);
    detail::check_index_count(name, "lengths", std::ranges::size(lengths));
    detail::copy_lengths(name, lengths, max_tokens, workspace.lengths_);
    check_plan(plan, ranks);
    detail::part_of_samples(name, "group", plan.samples, workspace.lengths_.size(),
                            workspace.group_of_);
    workspace.result_.ranks_ = ranks;
    workspace.result_.micro_steps_ = plan.micro_steps();
    cut(plan, options, workspace);
    number_pieces(workspace);
    deal(plan, options.multiple, workspace);
    return workspace.result_;
  }

  /// Cuts each sample in the memory of a workspace, with default options.
  template <sample_range Lengths>
  requires std::integral<std::ranges::range_value_t<Lengths const>> context_layout const&
  operator()(context_plan const& plan, Lengths const& lengths, std::size_t ranks,
             context_pieces_workspace& workspace) const {
    return (*this)(plan, lengths, ranks, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "context_pieces";
  static constexpr std::int64_t max_tokens = std::numeric_limits<std::int32_t>::max();

  static void check_plan(context_plan const& plan, std::size_t ranks) {
    if (plan.status != solve_status::solved) {
      detail::throw_invalid(name, "plan has no groups, since sample ", plan.sample,
                            " fits on no degree");
    }
    std::size_t const groups = plan.groups.size();
    detail::check_size(name, "plan.samples", plan.samples.size(), groups, "groups");
    auto const& offsets = plan.micro_step_offsets;
    bool const is_whole = !offsets.empty() && offsets.front() == 0 && offsets.back() == groups;
    if (!is_whole || !std::is_sorted(offsets.begin(), offsets.end())) {
      detail::throw_invalid(name, "plan.micro_step_offsets is ", detail::list_text(offsets),
                            ", must start with 0, not decrease and end with ", groups);
    }
    for (std::size_t k = 0; k != plan.micro_steps(); ++k) check_ranks(plan, k, ranks);
  }

  static void check_ranks(context_plan const& plan, std::size_t micro_step, std::size_t ranks) {
    std::uint64_t free_from = 0;
    for (std::size_t g = plan.micro_step_offsets[micro_step];
         g != plan.micro_step_offsets[micro_step + 1]; ++g) {
      context_group const& group = plan.groups[g];
      std::uint64_t const end = std::uint64_t{group.first_rank} + group.degree;
      if (group.first_rank < free_from || group.degree == 0 || end > ranks) {
        detail::throw_invalid(name, "plan.groups[", g, "] has ", group.degree, " ranks from ",
                              group.first_rank, " on, must have some from ", free_from, " to ",
                              ranks - 1);
      }
      free_from = end;
    }
  }

  /// Finds the blocks of each sample, and the lengths of the samples of each group.
  static void cut(context_plan const& plan, context_pieces_options const& options,
                  context_pieces_workspace& workspace) {
    detail::sequence_writer const whole{workspace.result_.whole_};
    detail::sequence_writer const padded{workspace.result_.padded_};
    for (auto const* const writer : {&whole, &padded}) {
      writer->start(plan.groups.size(), plan.samples.item_count());
    }
    workspace.cuts_.resize(workspace.lengths_.size());
    for (std::size_t g = 0; g != plan.groups.size(); ++g) {
      whole.open();
      padded.open();
      std::uint32_t extra = 0;
      for (std::uint32_t const sample : plan.samples[g]) {
        std::int64_t const length = workspace.lengths_[sample];
        std::uint64_t const blocks = detail::context_blocks(length, plan.groups[g].degree, options);
        detail::head_tail_cut const& made =
            workspace.cuts_[sample] = {blocks, plan.groups[g].degree, extra};
        extra = made.next_extra();
        whole.push(name, length);
        padded.push(name,
                    detail::checked_product(name, "the padded length of a sample",
                                            static_cast<std::int64_t>(blocks), options.multiple));
      }
      whole.close();
      padded.close();
    }
  }

  static void number_pieces(context_pieces_workspace& workspace) {
    auto& offsets = workspace.result_.piece_offsets_;
    offsets.assign(1, 0);
    offsets.reserve(workspace.cuts_.size() + 1);
    std::uint64_t end = 0;
    for (auto const& made : workspace.cuts_) {
      end += made.pieces();
      detail::check_index_count(name, "the list of pieces", end);
      offsets.push_back(static_cast<std::uint32_t>(end));
    }
    workspace.result_.pieces_.resize(end);
  }

  /// Writes the cells: the pieces of each rank in each micro-step.
  static void deal(context_plan const& plan, std::uint32_t multiple,
                   context_pieces_workspace& workspace) {
    context_layout& layout = workspace.result_;
    std::size_t const cells = plan.micro_steps() * layout.ranks_;
    std::size_t sequences = 0;
    for (std::size_t g = 0; g != plan.groups.size(); ++g) {
      sequences += plan.groups[g].degree * plan.samples[g].size();
    }
    detail::sequence_writer const own{layout.own_};
    own.start(cells, sequences);
    layout.cells_.clear();
    layout.cells_.reserve(cells, layout.pieces_.size());
    for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
      std::size_t g = plan.micro_step_offsets[k];
      for (std::uint32_t rank = 0; rank != layout.ranks_; ++rank) {
        own.open();
        std::size_t const last = plan.micro_step_offsets[k + 1];
        if (g != last && rank == plan.groups[g].first_rank + plan.groups[g].degree) ++g;
        if (g != last && rank >= plan.groups[g].first_rank) {
          for (std::uint32_t const sample : plan.samples[g]) {
            own.push(name, give(workspace, sample, rank - plan.groups[g].first_rank, multiple));
          }
        }
        own.close();
        layout.cells_.close();
      }
    }
  }

  /// Adds the pieces of a sample on the `place`-th rank of its group to the open cell.
  /// Returns their padded tokens.
  static std::int64_t give(context_pieces_workspace& workspace, std::uint32_t sample,
                           std::uint32_t place, std::uint32_t multiple) {
    context_layout& layout = workspace.result_;
    detail::head_tail_cut const& made = workspace.cuts_[sample];
    std::int64_t const length = workspace.lengths_[sample];
    std::int64_t sum = 0;
    auto const add = [&](detail::block_range blocks, std::uint64_t number) {
      if (blocks.first == blocks.last) return;
      auto const first = static_cast<std::int64_t>(blocks.first * multiple);
      auto const padded = static_cast<std::int64_t>(blocks.last * multiple) - first;
      auto const tokens = std::clamp<std::int64_t>(length - first, 0, padded);
      auto const piece = layout.piece_offsets_[sample] + static_cast<std::uint32_t>(number);
      layout.pieces_[piece] = {sample, static_cast<std::int32_t>(first),
                               static_cast<std::int32_t>(tokens),
                               static_cast<std::int32_t>(padded)};
      layout.cells_.push(piece);
      sum += padded;
    };
    add(made.head(place), made.head_number(place));
    add(made.tail(place), made.tail_number(place));
    return sum;
  }
};

/// Cuts samples among the ranks of their groups; see `context_pieces_fn`.
inline constexpr context_pieces_fn context_pieces{};

}  // namespace omnibal::inline v0
