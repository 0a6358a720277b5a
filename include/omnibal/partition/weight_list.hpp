#pragma once

/// \file
/// One weight for each layer or stage.

#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

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
/// any range and what is to be measured: `{layers, &layer::bytes}`. It owns its weights.
///
/// Errors: `std::invalid_argument` for an unsigned value above 2^63 - 1.
template <weight T>
class weight_list {
 public:
  weight_list() = default;
  weight_list(std::initializer_list<T> weights) : weights_(weights) {}

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
