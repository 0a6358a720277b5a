#pragma once

/// \file
/// What the layers of a model work on: the tokens of one micro-batch.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

/// Sequences whose tokens attend to tokens of the same sequence only: packed documents, images,
/// clips of sound. Costs depend on nothing else than their tokens, the sum of the squares of their
/// lengths and, for a resampler, their number.
struct sequences {
  std::int64_t count = 0;
  std::int64_t tokens = 0;
  std::int64_t squares = 0;

  [[nodiscard]] friend bool operator==(sequences const&, sequences const&) = default;
};

/// What a cross-attention sees: the tokens of all contexts, and the pairs of a token and a context
/// token, that is the sum over the documents of their tokens times the context tokens they see.
struct cross_context {
  std::int64_t tokens = 0;
  std::int64_t pairs = 0;

  [[nodiscard]] friend bool operator==(cross_context const&, cross_context const&) = default;
};

/// One micro-batch of one data-parallel rank. Each layer takes from it what it works on.
struct workload {
  /// Image tiles of the fixed size of the vision tower.
  std::int64_t tiles = 0;
  /// Images of their own size, in patches (and class tokens) of the vision tower.
  sequences images{};
  /// Clips, in tokens of the audio tower.
  sequences clips{};
  /// Documents of the language model, with the tokens that images and clips became.
  sequences documents{};
  /// Of the cross-attention of the language model.
  cross_context context{};

  [[nodiscard]] friend bool operator==(workload const&, workload const&) = default;
};

namespace detail {

/// Throws unless sequences with these numbers exist.
constexpr void check_sequences(std::string_view function, std::string_view argument,
                               sequences const& given) {
  auto const fail = [&](std::string_view member, std::int64_t value, std::string_view rule) {
    throw_number(function, std::string(argument).append(member), value, rule);
  };
  int128 const tokens = given.tokens;
  int128 const squares = given.squares;
  if (given.tokens < 0 || given.tokens > most_tokens) {
    fail(".tokens", given.tokens, "must be from 0 to " + to_text(most_tokens));
  }
  if (given.count < 0 || given.count > given.tokens) {
    fail(".count", given.count, "must be from 0 to the tokens, " + to_text(given.tokens));
  }
  if (squares < tokens || squares > tokens * tokens) {
    fail(".squares", given.squares,
         "must be between the tokens, " + to_text(given.tokens) + ", and their square");
  }
  // The squares of that many lengths are least where all are equal.
  if (given.count > 0 && squares * given.count < tokens * tokens) {
    fail(".squares", given.squares,
         "less than " + to_text(given.count) + " sequences of " + to_text(given.tokens) +
             " tokens can have");
  }
}

}  // namespace detail

struct sequences_of_fn {
  /// The number, the tokens and the sum of squares of the samples' lengths. Samples without tokens
  /// do not count.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for a negative length, `std::overflow_error` for a sum above 2^63 - 1.
  template <sample_range Samples, class Length = std::identity>
    requires cost_function<Length, sample_reference<Samples>> &&
        integral_amount<demand_result<Length, sample_reference<Samples>>>
  [[nodiscard]] constexpr sequences operator()(Samples const& samples,
                                               Length const& length = {}) const {
    sequences result;
    std::size_t index = 0;
    for (auto&& sample : samples) {
      auto const tokens =
          detail::to_working<std::int64_t>({name, "length", index}, std::invoke(length, sample));
      detail::check_weight(name, "length", index, tokens);
      std::int64_t square = 0;
      if (__builtin_mul_overflow(tokens, tokens, &square)) {
        detail::throw_overflow(name, "the square of length[" + detail::to_text(index) + "]");
      }
      detail::checked_add(name, "the sum of the lengths", result.tokens, tokens);
      detail::checked_add(name, "the sum of the squares", result.squares, square);
      if (tokens > 0) ++result.count;
      ++index;
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "sequences_of";
};

/// Sums over the lengths of samples; see `sequences_of_fn`.
inline constexpr sequences_of_fn sequences_of{};

/// So many sequences of so many tokens each.
struct repeated_length {
  std::int64_t count = 0;
  std::int64_t length = 0;
};

struct equal_sequences_fn {
  /// Sequences of one length: `equal_sequences({.count = 4, .length = 1024})`.
  ///
  /// Complexity: constant. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for a number that is negative or above 2^40, `std::overflow_error`
  /// where the sum of squares exceeds 2^63 - 1.
  [[nodiscard]] constexpr sequences operator()(repeated_length const& given) const {
    detail::check_between("equal_sequences", "count", given.count, 0, detail::most_tokens);
    detail::check_between("equal_sequences", "length", given.length, 0, detail::most_tokens);
    sequences result{.count = given.length == 0 ? 0 : given.count};
    if (__builtin_mul_overflow(given.count, given.length, &result.tokens) ||
        __builtin_mul_overflow(result.tokens, given.length, &result.squares)) {
      detail::throw_overflow("equal_sequences", "the sum of the squares");
    }
    return result;
  }
};

/// Sequences of one length; see `equal_sequences_fn`.
inline constexpr equal_sequences_fn equal_sequences{};

}  // namespace omnibal::inline v0
