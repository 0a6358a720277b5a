// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Conversion of samples to pieces and of pieces to samples.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// The samples of a rank, and their pieces.
struct home_range {
  std::size_t first_sample = 0;
  std::size_t samples = 0;
  std::size_t first_piece = 0;
  std::size_t pieces = 0;
};

template <class Offsets>
[[nodiscard]] home_range home_of_rank(std::string_view function, context_layout const& layout,
                                      Offsets const& home_offsets, std::size_t rank) {
  check_size(function, "home_offsets", std::ranges::size(home_offsets), layout.ranks() + 1,
             "ranks and an end");
  if (rank >= layout.ranks()) {
    throw_invalid(function, "rank is ", rank, ", must be below the number of ranks, ",
                  layout.ranks());
  }
  auto const at = std::ranges::begin(home_offsets) +
                  static_cast<std::ranges::range_difference_t<Offsets const>>(rank);
  auto const first = at[0];
  auto const last = at[1];
  if (std::cmp_less(first, 0) || std::cmp_less(last, first) ||
      std::cmp_greater(last, layout.sample_count())) {
    throw_invalid(function, "home_offsets[", rank, "] is ", first, " and the next one ", last,
                  "; offsets do not decrease and end with the number of samples, ",
                  layout.sample_count());
  }
  auto const offsets = layout.piece_offsets();
  home_range result{.first_sample = static_cast<std::size_t>(first),
                    .samples = static_cast<std::size_t>(last - first)};
  result.first_piece = offsets[result.first_sample];
  result.pieces = offsets[result.first_sample + result.samples] - result.first_piece;
  return result;
}

/// The number of values of a token: the same in all samples of a rank.
class token_width {
 public:
  token_width(std::string_view function, std::string_view argument)
      : function_(function), argument_(argument) {}

  /// Throws unless the i-th of these arrays has the same number of values for each token as the
  /// arrays before it.
  [[nodiscard]] std::size_t of(std::size_t i, std::size_t values, std::size_t tokens) {
    if (!is_known_ && tokens != 0) {
      width_ = values / tokens;
      is_known_ = true;
    }
    if (values == width_ * tokens) return width_;
    throw_invalid(function_, argument_, "[", i, "] has ", values, " values for ", tokens,
                  " tokens, must have as many for each token");
  }

 private:
  std::string_view function_;
  std::string_view argument_;
  std::size_t width_ = 0;
  bool is_known_ = false;
};

}  // namespace detail

/// Samples that are arrays of values, with the same number of values for each token: ids, or rows
/// of queries.
template <class Samples>
concept token_arrays =
    sendable_samples<Samples> && detail::sized_payload<detail::sample_value<Samples>>;

namespace detail {

template <class Samples>
using token_view = std::span<payload_value<sample_value<Samples>> const>;

}  // namespace detail

struct cut_pieces_fn {
  /// Returns views of the pieces of the samples that `rank` has: a field of `exchange_samples` for
  /// the plan of `context_exchange`. The elements of `samples` are arrays with any number of values
  /// for each token, the same for all tokens. They must outlive the views. `home_offsets` are the
  /// offsets of the plan.
  ///
  /// Complexity: linear in the pieces. Memory: 16 bytes for each piece. Determinism: portable.
  /// Errors: `std::invalid_argument` if offsets do not match the layout, or if the rank does not
  /// exist. It is also thrown if the number of samples is not the number of samples of the rank,
  /// and if the values of a sample do not match its tokens.
  template <offset_range Offsets, token_arrays Samples>
  [[nodiscard]] auto operator()(context_layout const& layout, Offsets const& home_offsets,
                                std::size_t rank, Samples const& samples) const {
    std::vector<detail::token_view<Samples>> result;
    (*this)(layout, home_offsets, rank, samples, result);
    return result;
  }
  template <offset_range Offsets, token_arrays Samples>
  void operator()(context_layout const&, Offsets const&, std::size_t,
                  Samples const&& /* which the views would outlive */) const = delete;

  /// Writes the views of the pieces to `result`, whose memory is reused.
  template <offset_range Offsets, token_arrays Samples>
  void operator()(context_layout const& layout, Offsets const& home_offsets, std::size_t rank,
                  Samples const& samples, std::vector<detail::token_view<Samples>>& result) const {
    auto const home = detail::home_of_rank(name, layout, home_offsets, rank);
    detail::check_size(name, "samples", std::ranges::size(samples), home.samples,
                       "samples of this rank");
    detail::token_width width(name, "samples");
    result.clear();
    result.reserve(home.pieces);
    auto const offsets = layout.piece_offsets();
    auto const first = std::ranges::begin(samples);
    for (std::size_t i = 0; i != home.samples; ++i) {
      std::size_t const sample = home.first_sample + i;
      auto const pieces =
          layout.pieces().subspan(offsets[sample], offsets[sample + 1] - offsets[sample]);
      std::size_t tokens = 0;
      for (context_piece const& piece : pieces) tokens += static_cast<std::size_t>(piece.tokens);
      detail::token_view<Samples> const values =
          detail::values_of(first[static_cast<std::ranges::range_difference_t<Samples const>>(i)]);
      std::size_t const each = width.of(i, values.size(), tokens);
      std::size_t begin = 0;
      for (context_piece const& piece : pieces) {
        std::size_t const size = each * static_cast<std::size_t>(piece.tokens);
        result.push_back(values.subspan(begin, size));
        begin += size;
      }
    }
  }
  template <offset_range Offsets, token_arrays Samples>
  void operator()(context_layout const&, Offsets const&, std::size_t,
                  Samples const&& /* which the views would outlive */,
                  std::vector<detail::token_view<Samples>>&) const = delete;

 private:
  static constexpr std::string_view name = "cut_pieces";
};

struct join_pieces_fn {
  /// Returns views of whole samples of `rank` from the rows that the inverse of an exchange
  /// returns. The range `rows` has a row for each piece, with any number of values for each token,
  /// the same for all tokens. The rows must outlive the views.
  ///
  /// Complexity: linear in the pieces. Memory: 16 bytes for each sample. Determinism: portable.
  /// Errors: `std::invalid_argument` if offsets do not match the layout, or if the rank does not
  /// exist. It is also thrown if the number of rows is not the number of pieces of the rank, and if
  /// the values of a row do not match its tokens.
  template <offset_range Offsets, class T>
  [[nodiscard]] std::vector<std::span<T const>> operator()(context_layout const& layout,
                                                           Offsets const& home_offsets,
                                                           std::size_t rank,
                                                           ragged<T> const& rows) const {
    std::vector<std::span<T const>> result;
    (*this)(layout, home_offsets, rank, rows, result);
    return result;
  }
  template <offset_range Offsets, class T>
  void operator()(context_layout const&, Offsets const&, std::size_t,
                  ragged<T> const&& /* which the views would outlive */) const = delete;

  /// Writes the views of whole samples to `result`, whose memory is reused.
  template <offset_range Offsets, class T>
  void operator()(context_layout const& layout, Offsets const& home_offsets, std::size_t rank,
                  ragged<T> const& rows, std::vector<std::span<T const>>& result) const {
    auto const home = detail::home_of_rank(name, layout, home_offsets, rank);
    detail::check_size(name, "rows", rows.size(), home.pieces, "pieces of this rank");
    detail::token_width width(name, "rows");
    for (std::size_t p = 0; p != home.pieces; ++p) {
      auto const tokens = layout.pieces()[home.first_piece + p].tokens;
      static_cast<void>(width.of(p, rows[p].size(), static_cast<std::size_t>(tokens)));
    }
    result.clear();
    result.reserve(home.samples);
    for (std::size_t i = 0; i != home.samples; ++i) {
      auto const at = [&](std::size_t sample) {
        return rows.offsets()[layout.piece_offsets()[sample] - home.first_piece];
      };
      std::uint64_t const begin = at(home.first_sample + i);
      result.push_back(rows.values().subspan(begin, at(home.first_sample + i + 1) - begin));
    }
  }
  template <offset_range Offsets, class T>
  void operator()(context_layout const&, Offsets const&, std::size_t,
                  ragged<T> const&& /* which the views would outlive */,
                  std::vector<std::span<T const>>&) const = delete;

 private:
  static constexpr std::string_view name = "join_pieces";
};

/// Returns views of the pieces of samples, for an exchange; see `cut_pieces_fn`.
inline constexpr cut_pieces_fn cut_pieces{};

/// Returns views of samples whose pieces have come back; see `join_pieces_fn`.
inline constexpr join_pieces_fn join_pieces{};

}  // namespace omnibal::inline v0
