#pragma once

/// \file
/// From profiled points to a cost functor.

#include <omnibal/concepts.hpp>
#include <omnibal/cost/affine_fit/affine_solver.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <ranges>
#include <string_view>

namespace omnibal::inline v0 {

/// offset + the sum of slope * size over the kinds of a size: a cost functor, and how well it fits
/// the points that it was made from.
template <std::size_t R>
struct affine_cost {
  double offset = 0.0;
  resources<R, double> slopes{};
  /// The root of the mean of the squared differences between points and functor.
  double root_mean_square_residual = 0.0;
  /// The largest difference, and at which point.
  double largest_residual = 0.0;
  std::size_t largest_residual_index = 0;
  /// True where the coefficients are whole numbers that give every point exactly.
  bool exact = false;

  /// The cost of a size, zero where the formula is negative. Determinism: run-to-run.
  template <amount Size>
    requires(detail::kinds_of<Size> == R)
  [[nodiscard]] double operator()(Size const& size) const {
    auto const sizes = detail::to_resources<double>({"affine_cost", "size"}, size);
    double result = offset;
    for (std::size_t r = 0; r != R; ++r) result += slopes[r] * sizes[r];
    return std::max(0.0, result);
  }

  [[nodiscard]] friend bool operator==(affine_cost const&, affine_cost const&) = default;
};

enum class fit_offset { free, zero };

enum class fit_signs {
  any,
  /// No coefficient is negative, so that a larger size never costs less.
  not_negative,
};

enum class fit_loss {
  squares,
  /// Huber's: beyond 1.345 standard deviations the difference counts instead of its square, so that
  /// a few wrong measurements do little harm.
  huber,
};

struct affine_fit_options {
  fit_offset offset = fit_offset::free;
  fit_signs signs = fit_signs::any;
  fit_loss loss = fit_loss::squares;
};

namespace detail {

/// Points with a size of at most eight kinds and a value.
template <class Points, class Size, class Value>
concept profiled_points = sample_range<Points> && demand_function<Size, sample_reference<Points>> &&
    cost_function<Value, sample_reference<Points>> &&
    (kinds_of<demand_result<Size, sample_reference<Points>>> <= 8);

}  // namespace detail

struct affine_fit_fn {
  /// The affine functor that is nearest to measured points:
  /// `affine_fit(points, &point::tokens, &point::seconds)`, or by several kinds of size at once
  /// `affine_fit(points, demand_of(&point::tokens, &point::squares), &point::seconds)`. `size` and
  /// `value` are called once for each point, in order.
  ///
  /// Where sizes and values are integers that whole coefficients give exactly, these are the
  /// result.
  ///
  /// Preconditions: at least as many points as coefficients, and sizes that determine them.
  /// Complexity: linear in the points, 2^kinds small systems where no coefficient may be negative,
  /// up to 64 times for Huber's loss. Memory: 8 (kinds + 3) bytes for each point. Determinism:
  /// run-to-run; portable where the result is exact. Errors: `std::invalid_argument` for too few
  /// points, sizes that do not determine the coefficients, and a number that is not finite;
  /// `std::overflow_error` for a coefficient above the largest number.
  /// Sources: Golub, 1965; Huber, "Robust estimation of a location parameter", 1964.
  template <class Points, class Size, class Value>
    requires detail::profiled_points<Points, Size, Value>
  [[nodiscard]] auto operator()(Points const& points, Size const& size, Value const& value,
                                affine_fit_options const& options = {}) const {
    using size_type = demand_result<Size, sample_reference<Points>>;
    using value_type = demand_result<Value, sample_reference<Points>>;
    constexpr std::size_t kinds = detail::kinds_of<size_type>;
    constexpr bool is_whole = integral_amount<size_type> && std::integral<value_type>;
    detail::affine_solver<kinds> solver(name, std::ranges::size(points),
                                        options.offset == fit_offset::free,
                                        options.signs == fit_signs::not_negative);
    for (auto&& point : points) {
      solver.push(detail::to_resources<double>({name, "size"}, std::invoke(size, point)),
                  static_cast<double>(std::invoke(value, point)));
    }
    solver.check();
    solver.run(options.loss == fit_loss::huber);
    bool const is_exact = is_whole && solver.round_if_exact();
    return to_cost(solver, is_exact);
  }

 private:
  static constexpr std::string_view name = "affine_fit";

  template <std::size_t R>
  [[nodiscard]] static affine_cost<R> to_cost(detail::affine_solver<R> const& solver,
                                              bool is_exact) {
    affine_cost<R> result{.exact = is_exact};
    auto const& coefficients = solver.coefficients();
    for (std::size_t r = 0; r != R; ++r) result.slopes[r] = coefficients[r];
    result.offset = coefficients[R];
    auto const residuals = solver.residuals();
    result.root_mean_square_residual = detail::root_mean_square(residuals);
    for (std::size_t i = 0; i != residuals.size(); ++i) {
      if (std::abs(residuals[i]) <= result.largest_residual) continue;
      result.largest_residual = std::abs(residuals[i]);
      result.largest_residual_index = i;
    }
    return result;
  }
};

/// The nearest affine cost functor; see `affine_fit_fn`.
inline constexpr affine_fit_fn affine_fit{};

}  // namespace omnibal::inline v0
