// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packing of texts, some of which are longer than the capacity.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The treatment of a sample that is longer than the capacity.
enum class long_samples {
  /// Lists the sample as oversized and puts it into no group.
  reject,
  /// Puts the sample into its own group, which exceeds the capacity.
  own_group,
  /// Cuts the sample into pieces that fit.
  split,
};

/// The lengths of the pieces of one sample.
enum class piece_sizes {
  /// The fewest pieces; their lengths differ by at most `split_long_options::multiple` tokens.
  even,
  /// Pieces as long as the capacity allows; the last piece has the remaining tokens.
  full,
};

struct split_long_options {
  long_samples policy = long_samples::split;
  piece_sizes sizes = piece_sizes::even;
  /// The unit in tokens: every piece of a cut sample starts at a multiple of this number.
  std::int64_t multiple = 1;
};

/// A piece of a sample: the tokens [first, first + length). `part` is the number of the piece
/// within the sample.
struct text_piece {
  std::uint32_t sample;
  std::uint32_t part;
  std::int64_t first;
  std::int64_t length;

  [[nodiscard]] friend constexpr bool operator==(text_piece const&, text_piece const&) = default;
};

/// Groups of pieces. Every token of every sample is in exactly one piece and every piece is in
/// exactly one group, except for the samples in `oversized`, which are in no piece.
struct split_packing {
  /// The pieces of samples that were packed, by sample and then by first token; after them the
  /// samples that have their own group.
  std::vector<text_piece> pieces;
  /// Groups of indices into `pieces`.
  grouping groups;
  /// The first group of long samples; from this group on each group is one sample that exceeds the
  /// capacity.
  std::size_t first_long_group = 0;
  /// The samples that were rejected, ascending.
  std::vector<std::uint32_t> oversized;
  /// The report of the packer; its lower bound also counts the groups of long samples.
  packing_report report;

  [[nodiscard]] friend bool operator==(split_packing const&, split_packing const&) = default;
};

struct split_long_fn {
  /// Applies `options.policy` to the samples that are longer than `capacity`, and packs the other
  /// samples. `pack` can be any packer and packs whole samples and pieces together. It is called
  /// with a span of `text_piece`, their length and the capacity.
  ///
  /// `length` maps a sample to an integer. A sample that fits is one piece; an empty sample is a
  /// piece of zero tokens. Complexity: linear in samples and pieces, plus the packer. Memory: 24
  /// bytes per piece, plus the packer. Determinism: portable if the packer is portable. Errors:
  /// `std::invalid_argument` if the capacity is not positive, a length is negative, or the multiple
  /// is not in [1, capacity]. It is also thrown if the packer does not put every piece into a
  /// group. Further errors: `std::length_error` if there are more than 2^32 - 1 samples or pieces.
  template <class Samples, class Length, class Packer>
  requires detail::measured_samples<Samples, Length, std::int64_t> &&
      integral_measure<demand_result<Length, sample_reference<Samples>>> &&
      packer<Packer, std::span<text_piece const>, std::int64_t text_piece::*,
             std::int64_t> [[nodiscard]] split_packing
      operator()(Samples const& samples, Length const& length, std::int64_t capacity,
                 Packer const& pack, split_long_options const& options = {}) const {
    check_arguments(std::ranges::size(samples), capacity, options);
    split_packing result;
    std::vector<text_piece> own;
    detail::for_each_demand<resources<1>>(name, samples, length,
                                          [&](std::uint32_t index, resources<1> const& tokens) {
                                            detail::check_demand(name, index, tokens);
                                            text_piece const whole{index, 0, 0, tokens[0]};
                                            if (tokens[0] <= capacity) {
                                              result.pieces.push_back(whole);
                                            } else if (options.policy == long_samples::reject) {
                                              result.oversized.push_back(index);
                                            } else if (options.policy == long_samples::own_group) {
                                              own.push_back(whole);
                                            } else {
                                              cut(whole, capacity, options, result.pieces);
                                            }
                                          });

    std::span<text_piece const> const packed_pieces(result.pieces);
    packing packed = pack(packed_pieces, &text_piece::length, capacity);
    detail::permutation_check named(name, "the packer", "pieces", packed_pieces.size());
    named.take(packed.groups.items());
    named.finish();
    result.groups = std::move(packed.groups);
    result.report = packed.report;
    result.report.lower_bound += own.size();
    result.first_long_group = result.groups.size();
    for (text_piece const& whole : own) {
      result.groups.push(static_cast<std::uint32_t>(result.pieces.size()));
      result.groups.close();
      result.pieces.push_back(whole);
    }
    return result;
  }

  /// Packs with `best_fit_decreasing`.
  template <class Samples, class Length>
    requires detail::measured_samples<Samples, Length, std::int64_t> &&
        integral_measure<demand_result<Length, sample_reference<Samples>>>
  [[nodiscard]] split_packing operator()(Samples const& samples, Length const& length,
                                         std::int64_t capacity,
                                         split_long_options const& options = {}) const {
    return (*this)(samples, length, capacity, best_fit_decreasing, options);
  }

 private:
  static constexpr std::string_view name = "split_long";

  static void check_arguments(std::size_t sample_count, std::int64_t capacity,
                              split_long_options const& options) {
    detail::check_index_count(name, "samples", sample_count);
    detail::check_capacity(name, resources<1>{capacity});
    detail::check_between(name, "options.multiple", options.multiple, 1, capacity);
  }

  /// Appends the pieces of a sample that exceeds the capacity.
  static void cut(text_piece const& whole, std::int64_t capacity, split_long_options const& options,
                  std::vector<text_piece>& pieces) {
    std::int64_t const blocks_of_a_piece = capacity / options.multiple;
    std::int64_t const blocks = 1 + (whole.length - 1) / options.multiple;
    std::int64_t const count = 1 + (blocks - 1) / blocks_of_a_piece;
    if (static_cast<std::uint64_t>(count) > max_index_count - pieces.size()) {
      detail::throw_length(name, "pieces", pieces.size() + static_cast<std::size_t>(count));
    }
    bool const even = options.sizes == piece_sizes::even;
    std::int64_t const least = even ? blocks / count : blocks_of_a_piece;
    // The longer pieces come last, so that the incomplete last block does not cause a short piece.
    std::int64_t const shorter = even ? count - blocks % count : count;
    std::int64_t first = 0;
    for (std::int64_t part = 0; part != count; ++part) {
      std::int64_t const size = (least + (part < shorter ? 0 : 1)) * options.multiple;
      std::int64_t const length = std::min(size, whole.length - first);
      pieces.push_back({whole.sample, static_cast<std::uint32_t>(part), first, length});
      first += length;
    }
  }
};

/// Packs texts, some of which are longer than the capacity; see `split_long_fn`.
inline constexpr split_long_fn split_long{};

}  // namespace omnibal::inline v0
