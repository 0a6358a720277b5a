#pragma once

/// \file
/// Costs of batches that are not sums over their samples.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

/// What an amount and its square count in a cost.
template <weight T = std::int64_t>
struct pack_weights {
  T linear = 0;
  T quadratic = 1;
};

namespace detail {

/// A functor whose lengths `T` can hold: floating-point ones only where it floats.
template <class Length, class Sample, class T>
concept length_function = cost_function<Length, Sample> &&
    (std::floating_point<T> || std::integral<demand_result<Length, Sample>>);

/// The length of a sample; throws where it is negative, not finite or above what `T` can hold.
template <class T, class Length, class Sample>
[[nodiscard]] T checked_length(std::string_view function, Length const& length,
                               Sample const& sample) {
  auto const value = std::invoke(length, sample);
  if constexpr (std::integral<T>) {
    if (std::in_range<T>(value) && value >= 0) return static_cast<T>(value);
  } else {
    auto const result = static_cast<T>(value);
    if (is_valid_weight(result)) return result;
  }
  throw_invalid(function, "the length of a sample is " + to_text(value) +
                              ", must be finite and not negative");
}

/// How many samples there are, and the longest of them.
template <class Length, weight T>
class padded {
 public:
  padded(std::string_view function, Length length)
      : function_(function), length_(std::move(length)) {}

  template <class Sample>
    requires length_function<Length, Sample const&, T>
  void add(Sample const& sample) {
    longest_ = std::max(longest_, checked_length<T>(function_, length_, sample));
    ++count_;
  }

 protected:
  [[nodiscard]] T product(T left, T right) const {
    return checked_product(function_, "the value", left, right);
  }
  [[nodiscard]] T tokens() const { return product(count_, longest_); }

  std::string_view function_;
  Length length_;
  T count_{0};
  T longest_{0};
};

/// linear * amount + quadratic * square.
template <class T>
[[nodiscard]] T weighted(std::string_view function, pack_weights<T> const& weights, T amount,
                         T square) {
  T result = checked_product(function, "the value", weights.linear, amount);
  checked_add(function, "the value", result,
              checked_product(function, "the value", weights.quadratic, square));
  return result;
}

template <class T>
[[nodiscard]] pack_weights<T> checked_weights(std::string_view function,
                                              pack_weights<T> const& weights) {
  check_weight(function, "weights", 0, weights.linear);
  check_weight(function, "weights", 1, weights.quadratic);
  return weights;
}

}  // namespace detail

/// A padded batch: count * longest, the tokens that are computed where every sample is as long as
/// the longest. `padded_batch{&sample::tokens}` is a set cost for `balance_set`, which finds the
/// best parts for it.
///
/// `length` gives the length of a sample. `T` is the type of the value; it has to float where a
/// length does. Determinism: portable. Errors: `std::invalid_argument` for a length that is
/// negative, not finite or above what `T` can hold, `std::overflow_error` for such a value.
template <class Length = std::identity, weight T = std::int64_t>
class padded_batch : public detail::padded<Length, T> {
 public:
  padded_batch() requires std::default_initializable<Length> : padded_batch(Length()) {}
  explicit padded_batch(Length length)
      : detail::padded<Length, T>("padded_batch", std::move(length)) {}

  [[nodiscard]] T value() const { return this->tokens(); }
};

/// Attention in a padded batch: count * longest^2. With weights, count * (linear * longest +
/// quadratic * longest^2): an encoder whose convolutions and projections compute the padding too.
/// All else is as in `padded_batch`; weights that are negative or not finite are a
/// `std::invalid_argument`.
template <class Length = std::identity, weight T = std::int64_t>
class padded_attention : public detail::padded<Length, T> {
 public:
  padded_attention() requires std::default_initializable<Length> : padded_attention(Length()) {}
  explicit padded_attention(Length length, pack_weights<T> weights = {})
      : detail::padded<Length, T>("padded_attention", std::move(length)),
        weights_(detail::checked_weights("padded_attention", weights)) {}

  [[nodiscard]] T value() const {
    T const pairs = this->product(this->tokens(), this->longest_);
    return detail::weighted("padded_attention", weights_, this->tokens(), pairs);
  }

 private:
  pack_weights<T> weights_;
};

/// A pack without a mask between its samples: linear * S + quadratic * S^2, S the sum of the
/// lengths. Every token attends to the whole pack, as in a batch of packed samples that is run as
/// one sequence.
///
/// With a mask the cost of attention is a sum of squares, and so of the samples: a cost functor for
/// `lpt`. Errors: those of `padded_batch`, and `std::invalid_argument` for weights that are
/// negative or not finite.
template <class Length = std::identity, weight T = std::int64_t>
class unmasked_pack {
 public:
  unmasked_pack() requires std::default_initializable<Length> : unmasked_pack(Length()) {}
  explicit unmasked_pack(Length length, pack_weights<T> weights = {})
      : length_(std::move(length)), weights_(detail::checked_weights("unmasked_pack", weights)) {}

  template <class Sample>
    requires detail::length_function<Length, Sample const&, T>
  void add(Sample const& sample) {
    detail::checked_add("unmasked_pack", "the sum of the lengths", sum_,
                        detail::checked_length<T>("unmasked_pack", length_, sample));
  }

  [[nodiscard]] T value() const {
    T const square = detail::checked_product("unmasked_pack", "the value", sum_, sum_);
    return detail::weighted("unmasked_pack", weights_, sum_, square);
  }

 private:
  Length length_;
  pack_weights<T> weights_;
  T sum_{0};
};

}  // namespace omnibal::inline v0
