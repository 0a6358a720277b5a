// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Attention that is limited to a window or a chunk of the sequence.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

enum class span_kind {
  whole,
  /// The last tokens up to and including the token itself: a sliding window. Also the number of
  /// tokens that an indexer selects.
  window,
  /// The tokens of the same chunk. Chunks divide the sequence from its beginning.
  chunk,
};

/// The part of the sequence to which a token attends, such as `{span_kind::window, 1024}`.
struct attention_span {
  span_kind kind = span_kind::whole;
  /// The number of tokens of a window or chunk; ignored for `whole`.
  std::int64_t tokens = 0;

  /// Returns the number that replaces length^2 in the cost of attention. With a causal mask a
  /// sequence has length^2 / 2 pairs of tokens. If the sequence is longer than a window of w
  /// tokens, w * length - w^2 / 2 pairs remain. With chunks, half of the sum of their squares
  /// remains. The result is twice the number of pairs, so it is an integer.
  ///
  /// Determinism: portable. Errors: `std::invalid_argument` for a length that is negative or above
  /// 2^40 and for a window or chunk without tokens, `std::overflow_error` above 2^63 - 1.
  [[nodiscard]] constexpr std::int64_t squares(std::int64_t length) const {
    constexpr std::string_view name = "attention_span";
    detail::check_between(name, "length", length, 0, detail::max_tokens);
    check(name, "tokens");
    detail::int128 const all = detail::int128{length} * length;
    if (kind == span_kind::whole || length <= tokens) return in_64_bits(all);
    if (kind == span_kind::window) {
      return in_64_bits(detail::int128{tokens} * (2 * length - tokens));
    }
    std::int64_t const rest = length % tokens;
    return in_64_bits(detail::int128{length - rest} * tokens + detail::int128{rest} * rest);
  }

  /// Throws unless a window or chunk has from 1 to 2^40 tokens.
  constexpr void check(std::string_view function, std::string_view argument) const {
    if (kind != span_kind::whole) {
      detail::check_between(function, argument, tokens, 1, detail::max_tokens);
    }
  }

  [[nodiscard]] friend bool operator==(attention_span const&, attention_span const&) = default;

 private:
  [[nodiscard]] static constexpr std::int64_t in_64_bits(detail::int128 value) {
    return detail::checked_cast<std::int64_t>("attention_span", "the squares of a length", value);
  }
};

/// The sum of `span.squares(length)` over the lengths of sequences.
struct span_squares {
  attention_span span{};
  std::int64_t squares = 0;

  [[nodiscard]] friend bool operator==(span_squares const&, span_squares const&) = default;
};

/// The largest number of different windows and chunks of one model.
inline constexpr std::size_t max_attention_spans = 2;

namespace detail {

/// Returns the entry with this span, or the first unused entry, whose span is `whole`; null if
/// there is neither. `span_of` returns the span of an entry.
template <class Entries, class SpanOf>
[[nodiscard]] constexpr auto* find_entry(Entries& entries, attention_span const& span,
                                         SpanOf const& span_of) {
  for (auto& entry : entries) {
    attention_span const known = span_of(entry);
    if (known == span || known.kind == span_kind::whole) return &entry;
  }
  return static_cast<decltype(entries.data())>(nullptr);
}

/// Returns a span as text, such as "a window of 1024 tokens".
[[nodiscard]] inline std::string text_of(attention_span const& span) {
  std::string const kind = span.kind == span_kind::window ? "window" : "chunk";
  return "a " + kind + " of " + std::to_string(span.tokens) + " tokens";
}

}  // namespace detail

}  // namespace omnibal::inline v0
