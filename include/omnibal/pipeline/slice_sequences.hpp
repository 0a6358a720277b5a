// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Slices of sequences that take equal times in a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct slice_options {
  /// Slices end at multiples of this number of tokens or at the end of their sequence.
  std::int64_t block = 128;
};

/// The tokens [first, last) of a sequence.
struct sequence_part {
  std::uint32_t sequence = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;

  [[nodiscard]] friend bool operator==(sequence_part const&, sequence_part const&) = default;
};

/// The slices of a step.
template <class T>
struct sequence_slices {
  /// The parts of each slice: one part of a long sequence, or several whole short sequences.
  std::vector<std::vector<sequence_part>> slices;
  /// The number of slices of each long sequence, followed by a 1 for each slice of short sequences.
  /// This list is the argument of `sliced_1f1b`.
  std::vector<std::uint32_t> slice_counts;
  /// The cost of the most expensive slice.
  T largest{};

  [[nodiscard]] friend bool operator==(sequence_slices const&, sequence_slices const&) = default;
};

/// A functor that returns the cost of the first n tokens of a sequence, such as
/// `layer.sample_cost()`. The cost must not decrease with n.
template <class Cost>
concept prefix_cost = std::regular_invocable<Cost const&, std::int64_t> &&
    scalar_measure<std::remove_cvref_t<std::invoke_result_t<Cost const&, std::int64_t>>>;

namespace detail {

template <prefix_cost Cost>
using prefix_cost_type =
    working_weight<std::remove_cvref_t<std::invoke_result_t<Cost const&, std::int64_t>>>;

/// Returns the cost of the first tokens of a sequence.
template <prefix_cost Cost>
[[nodiscard]] auto cost_of_prefix(std::string_view function, Cost const& cost,
                                  std::int64_t tokens) {
  auto const value = static_cast<prefix_cost_type<Cost>>(std::invoke(cost, tokens));
  check_weight(function, joined_text("cost(", tokens, ")"), value);
  return value;
}

/// Cuts a sequence into slices of nearly equal cost. Returns the largest cost of a slice and the
/// ends of the slices in tokens.
template <prefix_cost Cost>
[[nodiscard]] std::pair<prefix_cost_type<Cost>, std::vector<std::int64_t>> cut_sequence(
    std::string_view function, std::int64_t length, std::size_t slices, Cost const& cost,
    std::int64_t block) {
  std::vector<prefix_cost_type<Cost>> blocks;
  auto before = prefix_cost_type<Cost>{};
  for (std::int64_t first = 0; first < length; first += block) {
    std::int64_t const last = std::min(length, first + block);
    auto const value = cost_of_prefix(function, cost, last);
    if (value < before) {
      throw_invalid(function, "cost(", last, ") is ", value, ", less than cost(", first,
                    "), which is ", before);
    }
    blocks.push_back(value - std::exchange(before, value));
  }
  auto const cut = partition_minimax(blocks, std::min(slices, blocks.size()));
  std::vector<std::int64_t> ends;
  for (std::uint32_t const boundary : cut.boundaries) {
    ends.push_back(std::min(length, boundary * block));
  }
  return {cut.bottleneck, std::move(ends)};
}

inline void check_slice_options(std::string_view function, slice_options const& options) {
  check_positive(function, "block", options.block);
}

}  // namespace detail

struct slice_sequence_fn {
  /// Cuts a sequence into `slices` slices so that the largest cost of a slice is smallest. Returns
  /// the places of the cuts in tokens, from 0 to `length`. There are fewer slices if the sequence
  /// has fewer blocks. `cost(n)` is the cost of the first n tokens, so the cost of a slice is the
  /// difference of two values. Later slices have fewer tokens, because their tokens attend to more
  /// keys.
  ///
  /// Complexity: a call of `cost` and a few steps for each block. Memory: 20 bytes for each block.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` if the length, the slices
  /// or the block is not positive, and if a cost is negative, not finite or smaller than the cost
  /// of fewer tokens.
  template <prefix_cost Cost>
  [[nodiscard]] std::vector<std::int64_t> operator()(std::int64_t length, std::size_t slices,
                                                     Cost const& cost,
                                                     slice_options const& options = {}) const {
    detail::check_positive(name, "length", length);
    detail::check_positive(name, "slices", slices);
    detail::check_slice_options(name, options);
    return detail::cut_sequence(name, length, slices, cost, options.block).second;
  }

 private:
  static constexpr std::string_view name = "slice_sequence";
};

/// Cuts a sequence into slices of equal cost; see `slice_sequence_fn`.
inline constexpr slice_sequence_fn slice_sequence{};

struct slice_sequences_fn {
  /// Creates slices whose cost is at most `limit` for a pipeline with the schedule `sliced_1f1b`. A
  /// sequence above the limit is cut into the fewest slices of nearly equal cost within the limit.
  /// Other sequences are packed into slices by `best_fit_decreasing`. The slices of long sequences
  /// come first, in the order of the sequences.
  ///
  /// With a smaller limit there are more slices, and the pipeline fills and drains in less time.
  /// Kernels become less efficient if slices are very short.
  ///
  /// Complexity: a call of `slice_sequence` for each long sequence, a few calls if blocks are
  /// large, and a call of `best_fit_decreasing` for the others. Memory: the result. Determinism:
  /// portable for integers. Errors: `std::invalid_argument` if a length, the limit or the block is
  /// not positive, if a single block exceeds the limit, and the errors of `slice_sequence`.
  template <sample_range Lengths, prefix_cost Cost>
    requires std::integral<std::ranges::range_value_t<Lengths const>>
  [[nodiscard]] sequence_slices<detail::prefix_cost_type<Cost>> operator()(
      Lengths const& lengths, detail::prefix_cost_type<Cost> limit, Cost const& cost,
      slice_options const& options = {}) const {
    using cost_type = detail::prefix_cost_type<Cost>;
    detail::check_positive(name, "limit", limit);
    detail::check_slice_options(name, options);
    detail::check_number(name, "the number of lengths", std::ranges::size(lengths));
    sequence_slices<cost_type> result;
    std::vector<sequence_part> wholes;
    std::vector<cost_type> costs;
    std::uint32_t sequence = 0;
    for (auto const given : lengths) {
      auto const length = static_cast<std::int64_t>(given);
      detail::check_positive(name, "lengths", sequence, length);
      cost_type const all = detail::cost_of_prefix(name, cost, length);
      if (limit < all) {
        cut(sequence, length, limit, cost, options, result);
      } else {
        wholes.push_back({.sequence = sequence, .last = length});
        costs.push_back(all);
      }
      ++sequence;
    }
    pack(wholes, costs, limit, result);
    return result;
  }

 private:
  static constexpr std::string_view name = "slice_sequences";

  template <class T, class Cost>
  static void cut(std::uint32_t sequence, std::int64_t length, T limit, Cost const& cost,
                  slice_options const& options, sequence_slices<T>& result) {
    auto const all = static_cast<double>(detail::cost_of_prefix(name, cost, length));
    auto const blocks = static_cast<std::size_t>((length - 1) / options.block + 1);
    auto const fewest = static_cast<std::size_t>(
        std::min(all / static_cast<double>(limit), static_cast<double>(blocks)));
    for (std::size_t slices = std::max<std::size_t>(fewest, 2); slices <= blocks; ++slices) {
      auto const [bottleneck, ends] =
          detail::cut_sequence(name, length, slices, cost, options.block);
      if (limit < bottleneck) continue;
      for (std::size_t i = 0; i + 1 != ends.size(); ++i) {
        result.slices.push_back({{.sequence = sequence, .first = ends[i], .last = ends[i + 1]}});
      }
      result.slice_counts.push_back(static_cast<std::uint32_t>(ends.size() - 1));
      result.largest = std::max(result.largest, bottleneck);
      return;
    }
    detail::throw_invalid(name, "sequence ", sequence, " of ", length,
                          " tokens has a block that costs more than limit, which is ", limit);
  }

  template <class T>
  static void pack(std::vector<sequence_part> const& wholes, std::vector<T> const& costs, T limit,
                   sequence_slices<T>& result) {
    auto const packed = best_fit_decreasing(costs, std::identity{}, limit);
    for (auto const& group : packed.groups) {
      auto& parts = result.slices.emplace_back();
      T sum{};
      for (std::uint32_t const i : group) {
        parts.push_back(wholes[i]);
        sum += costs[i];
      }
      result.slice_counts.push_back(1);
      result.largest = std::max(result.largest, sum);
    }
  }
};

/// Cuts and packs sequences into slices of nearly equal cost; see `slice_sequences_fn`.
inline constexpr slice_sequences_fn slice_sequences{};

}  // namespace omnibal::inline v0
