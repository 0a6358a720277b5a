#pragma once

/// \file
/// One weight for each layer or stage.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Measures the elements of a range in what can be a `T`: no fraction is lost.
template <class Measure, class T, class Values>
concept measures_as = cost_function<Measure, sample_reference<Values>> &&
    (std::floating_point<T> || std::integral<demand_result<Measure, sample_reference<Values>>>);

}  // namespace detail

/// A list of weights in an option. It is made of weights in braces, of any range of weights, or of
/// any range and what is to be measured: `{layers, &layer::bytes}`, or of one weight. It owns its
/// weights.
///
/// Errors: `std::invalid_argument` for an unsigned value above 2^63 - 1, and for one weight that is
/// no whole number where whole numbers are listed.
template <weight T>
class weight_list {
 public:
  weight_list() = default;
  weight_list(std::initializer_list<T> weights) : weights_(weights) {}

  /// One value, which holds for all where the option says so: `.capacity = 80e9`.
  template <weight Value>
  weight_list(Value value) {
    if constexpr (std::integral<T> && std::floating_point<Value>) {
      if (!(value >= -0x1p63 && value < 0x1p63 && std::trunc(value) == value)) {
        detail::throw_invalid("weight_list", "the value is " + detail::to_text(value) +
                                                 ", must be a whole number below 2^63");
      }
      weights_.push_back(static_cast<T>(value));
    } else {
      using working = detail::working_weight<Value>;
      weights_.push_back(
          static_cast<T>(detail::to_working<working>({"weight_list", "weight", 0}, value)));
    }
  }

  template <sample_range Values, detail::measures_as<T, Values> Measure = std::identity>
  weight_list(Values const& values, Measure const& measure = {}) {
    weights_.reserve(std::ranges::size(values));
    for (auto&& value : values) {
      using working = detail::working_weight<demand_result<Measure, sample_reference<Values>>>;
      auto const weight = detail::to_working<working>({"weight_list", "weight", weights_.size()},
                                                      std::invoke(measure, value));
      weights_.push_back(static_cast<T>(weight));
    }
  }

  [[nodiscard]] bool empty() const noexcept { return weights_.empty(); }
  [[nodiscard]] std::span<T const> values() const& noexcept { return weights_; }
  void values() const&& = delete;

 private:
  std::vector<T> weights_;
};

}  // namespace omnibal::inline v0
