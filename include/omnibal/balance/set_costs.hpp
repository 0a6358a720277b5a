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
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

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

}  // namespace detail

/// A padded batch: count * longest, the tokens that are computed where every sample is as long as
/// the longest. `padded_batch{&sample::tokens}` is a set cost for `balance_set`, which finds the
/// best parts for it.
///
/// `length` gives the length of a sample. `T` is the type of the value; it has to float where a
/// length does. Determinism: portable. Errors: `std::invalid_argument` for a length that is
/// negative, not finite or above what `T` can hold, `std::overflow_error` for such a value.
template <class Length = std::identity, weight T = std::int64_t>
class padded_batch {
 public:
  padded_batch()
    requires std::default_initializable<Length>
  = default;
  explicit padded_batch(Length length) : length_(std::move(length)) {}

  template <class Sample>
    requires detail::length_function<Length, Sample const&, T>
  void add(Sample const& sample) {
    longest_ = std::max(longest_, detail::checked_length<T>("padded_batch", length_, sample));
    ++count_;
  }

  [[nodiscard]] T value() const {
    return detail::checked_product("padded_batch", "the value", count_, longest_);
  }

 private:
  Length length_{};
  T count_{0};
  T longest_{0};
};

/// Attention in a padded batch: count * longest^2. All else is as in `padded_batch`.
template <class Length = std::identity, weight T = std::int64_t>
class padded_attention {
 public:
  padded_attention()
    requires std::default_initializable<Length>
  = default;
  explicit padded_attention(Length length) : length_(std::move(length)) {}

  template <class Sample>
    requires detail::length_function<Length, Sample const&, T>
  void add(Sample const& sample) {
    longest_ = std::max(longest_, detail::checked_length<T>("padded_attention", length_, sample));
    ++count_;
  }

  [[nodiscard]] T value() const {
    T const tokens = detail::checked_product("padded_attention", "the value", count_, longest_);
    return detail::checked_product("padded_attention", "the value", tokens, longest_);
  }

 private:
  Length length_{};
  T count_{0};
  T longest_{0};
};

/// What the sum of the lengths and its square count in an `unmasked_pack`.
template <weight T = std::int64_t>
struct pack_weights {
  T linear = 0;
  T quadratic = 1;
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
  unmasked_pack()
    requires std::default_initializable<Length>
  = default;
  explicit unmasked_pack(Length length, pack_weights<T> weights = {})
      : length_(std::move(length)), weights_(weights) {
    detail::check_weight("unmasked_pack", "weights", 0, weights.linear);
    detail::check_weight("unmasked_pack", "weights", 1, weights.quadratic);
  }

  template <class Sample>
    requires detail::length_function<Length, Sample const&, T>
  void add(Sample const& sample) {
    detail::checked_add("unmasked_pack", "the sum of the lengths", sum_,
                        detail::checked_length<T>("unmasked_pack", length_, sample));
  }

  [[nodiscard]] T value() const {
    constexpr auto product = [](T left, T right) {
      return detail::checked_product("unmasked_pack", "the value", left, right);
    };
    T result = product(weights_.linear, sum_);
    T const of_pairs = product(weights_.quadratic, product(sum_, sum_));
    detail::checked_add("unmasked_pack", "the value", result, of_pairs);
    return result;
  }

 private:
  Length length_{};
  pack_weights<T> weights_{};
  T sum_{0};
};

}  // namespace omnibal::inline v0
