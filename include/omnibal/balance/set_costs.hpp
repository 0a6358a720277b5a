// SPDX-License-Identifier: Apache-2.0
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

/// The weights of an amount and of its square in a cost.
template <scalar_measure T = std::int64_t>
struct pack_weights {
  T linear = 0;
  T quadratic = 1;
};

namespace detail {

/// A functor whose lengths fit in `T`: floating-point lengths require a floating-point `T`.
template <class Length, class Sample, class T>
concept length_function = cost_function<Length, Sample> &&
    (std::floating_point<T> || std::integral<demand_result<Length, Sample>>);

/// Returns the length of a sample; throws if it is negative, not finite or too large for `T`.
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
  throw_invalid(function, "the length of a sample is ", value, ", must be finite and not negative");
}

/// The number of samples and the largest length.
template <class Length, scalar_measure T>
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

/// Returns linear * amount + quadratic * square.
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

/// The cost of a padded batch: count * longest, the computed tokens if every sample is padded to
/// the longest. `padded_batch{&sample::tokens}` is a set cost for `balance_set_cost`, which finds
/// the best parts for this cost.
///
/// `length` returns the length of a sample. `T` is the type of the value; it must be a
/// floating-point type if lengths are. Determinism: portable. Errors: `std::invalid_argument` if a
/// length is negative, not finite or too large for `T`; `std::overflow_error` if a value is too
/// large for `T`.
template <class Length = std::identity, scalar_measure T = std::int64_t>
class padded_batch : public detail::padded<Length, T> {
 public:
  padded_batch() requires std::default_initializable<Length> : padded_batch(Length()) {}
  explicit padded_batch(Length length)
      : detail::padded<Length, T>("padded_batch", std::move(length)) {}

  [[nodiscard]] T value() const { return this->tokens(); }
};

/// The cost of attention in a padded batch: count * longest^2. With weights, the cost is count *
/// (linear * longest + quadratic * longest^2), for an encoder whose convolutions and projections
/// also compute the padding. In all other respects the cost is the same as `padded_batch`. Errors:
/// `std::invalid_argument` if weights are negative or not finite.
template <class Length = std::identity, scalar_measure T = std::int64_t>
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

/// The cost of a pack without a mask between its samples: linear * S + quadratic * S^2, with S the
/// sum of the lengths. Every token attends to the whole pack, as in a batch of packed samples that
/// runs as one sequence.
///
/// With a mask, the cost of attention is a sum of squares and therefore a sum over the samples: use
/// a cost functor for `lpt`. Errors: the errors of `padded_batch`, and `std::invalid_argument` if
/// weights are negative or not finite.
template <class Length = std::identity, scalar_measure T = std::int64_t>
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
