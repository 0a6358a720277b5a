// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A cost functor fitted to profiled points.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The offset of a fit: free, or zero.
enum class fit_offset { free, zero };

/// The signs that the coefficients of a fit may have.
enum class fit_signs {
  any,
  /// No coefficient is negative, so that a larger size never costs less.
  not_negative,
};

/// The loss that a fit minimizes.
enum class fit_loss {
  squares,
  /// Huber's loss: a residual of more than 1.345 standard deviations counts linearly instead of
  /// quadratically. Therefore a few wrong measurements have little influence.
  huber,
};

struct affine_fit_options {
  fit_offset offset = fit_offset::free;
  fit_signs signs = fit_signs::any;
  fit_loss loss = fit_loss::squares;
};

namespace detail {

/// Points that have a size of at most eight kinds and a value.
template <class Points, class Size, class Value>
concept profiled_points = sample_range<Points> && demand_function<Size, sample_reference<Points>> &&
    cost_function<Value, sample_reference<Points>> &&
    (kinds_of<demand_result<Size, sample_reference<Points>>> <= 8);

/// An overdetermined linear system, whose rows rotations reduce to a triangle. Source: Golub,
/// "Numerical methods for solving linear least squares problems", 1965; Givens, 1958.
template <std::size_t K>
class least_squares {
 public:
  using row_type = std::array<double, K>;

  void add(row_type row, double value) {
    for (std::size_t i = 0; i != K; ++i) {
      if (row[i] == 0.0) continue;
      double const length = std::sqrt(triangle_[i][i] * triangle_[i][i] + row[i] * row[i]);
      double const cosine = triangle_[i][i] / length;
      double const sine = row[i] / length;
      for (std::size_t j = i; j != K; ++j) rotate(triangle_[i][j], row[j], cosine, sine);
      rotate(values_[i], value, cosine, sine);
    }
    missed_squares_ += value * value;
  }

  /// Returns the sum of the squares of the residuals of the solution.
  [[nodiscard]] double missed_squares() const { return missed_squares_; }

  /// Returns the first column that depends on the columns before it; K if all columns are
  /// independent.
  [[nodiscard]] std::size_t dependent_column() const {
    constexpr double least = 1e3 * std::numeric_limits<double>::epsilon();
    for (std::size_t j = 0; j != K; ++j) {
      double squares = 0.0;
      for (std::size_t i = 0; i <= j; ++i) squares += triangle_[i][j] * triangle_[i][j];
      if (!(std::abs(triangle_[j][j]) > least * std::sqrt(squares))) return j;
    }
    return K;
  }

  /// Returns the coefficients with which the columns before `column` add up to `column`.
  /// Precondition: the columns before `column` are independent.
  [[nodiscard]] row_type combination(std::size_t column) const {
    row_type result{};
    for (std::size_t i = column; i-- != 0;) {
      double rest = triangle_[i][column];
      for (std::size_t j = i + 1; j != column; ++j) rest -= triangle_[i][j] * result[j];
      result[i] = rest / triangle_[i][i];
    }
    return result;
  }

  /// Returns the variance inflation of a column among the first `count` columns. The inflation is
  /// the squared length of the column divided by the squared length of its residual after a fit on
  /// the other columns. It is computed from the row of the inverted triangle. Source: Marquardt,
  /// "Generalized inverses, ridge regression and biased linear estimation", 1970. Precondition:
  /// these columns are independent.
  [[nodiscard]] double inflation(std::size_t column, std::size_t count) const {
    double length = 0.0;
    for (std::size_t i = 0; i <= column; ++i) length += triangle_[i][column] * triangle_[i][column];
    row_type inverse{};
    double spread = 0.0;
    for (std::size_t j = column; j != count; ++j) {
      double rest = j == column ? 1.0 : 0.0;
      for (std::size_t i = column; i != j; ++i) rest -= inverse[i] * triangle_[i][j];
      inverse[j] = rest / triangle_[j][j];
      spread += inverse[j] * inverse[j];
    }
    return length * spread;
  }

  /// Returns the same system, but only with the columns whose bit is set.
  [[nodiscard]] least_squares with_columns(unsigned columns) const {
    least_squares result;
    result.missed_squares_ = missed_squares_;
    for (std::size_t i = 0; i != K; ++i) {
      row_type row{};
      for (std::size_t j = i; j != K; ++j) row[j] = has(columns, j) ? triangle_[i][j] : 0.0;
      result.add(row, values_[i]);
    }
    return result;
  }

  /// Returns the coefficients of the columns whose bit is set, and zero for the other columns.
  [[nodiscard]] row_type solution(unsigned columns) const {
    row_type result{};
    for (std::size_t i = K; i-- != 0;) {
      if (!has(columns, i)) continue;
      double rest = values_[i];
      for (std::size_t j = i + 1; j != K; ++j) rest -= triangle_[i][j] * result[j];
      result[i] = rest / triangle_[i][i];
    }
    return result;
  }

  [[nodiscard]] static bool has(unsigned columns, std::size_t column) {
    return (columns >> column & 1u) != 0;
  }

 private:
  static void rotate(double& kept, double& rest, double cosine, double sine) {
    double const rotated = cosine * kept + sine * rest;
    rest = cosine * rest - sine * kept;
    kept = rotated;
  }

  std::array<row_type, K> triangle_{};
  row_type values_{};
  double missed_squares_ = 0.0;
};

/// Returns the root of the mean of the squares. Numbers are scaled, because the square of a large
/// number may exceed the type.
[[nodiscard]] inline double root_mean_square(std::span<double const> numbers) {
  double largest = 0.0;
  for (double const number : numbers) largest = std::max(largest, std::abs(number));
  if (largest == 0.0) return 0.0;
  double squares = 0.0;
  for (double const number : numbers) squares += (number / largest) * (number / largest);
  return largest * std::sqrt(squares / static_cast<double>(numbers.size()));
}

/// Least squares for R slopes and an offset, which is the last coefficient. Columns and values are
/// first divided by their largest number, so the result does not depend on units.
template <std::size_t R>
class affine_solver {
 public:
  using coefficients_type = std::array<double, R + 1>;

  affine_solver(std::string_view function, std::size_t points, affine_fit_options const& fit)
      : function_(function), options_(fit) {
    bool const has_offset = fit.offset == fit_offset::free;
    columns_ = (has_offset ? 1u << R : 0u) | ((1u << R) - 1);
    sizes_.reserve(points);
    values_.reserve(points);
    scales_.fill(0.0);
    scales_[R] = 1.0;
  }

  void push(resources<R, double> const& size, double value) {
    for (std::size_t r = 0; r != R; ++r) {
      check_finite("size", size[r]);
      scales_[r] = std::max(scales_[r], std::abs(size[r]));
    }
    check_finite("value", value);
    value_scale_ = std::max(value_scale_, std::abs(value));
    sizes_.push_back(size);
    values_.push_back(value);
  }

  /// Throws unless the points determine the coefficients.
  void check() {
    std::size_t const unknowns = R + (columns_ >> R);
    if (sizes_.size() < unknowns) {
      throw_invalid(function_, "points has ", sizes_.size(), " elements, fewer than the ", unknowns,
                    " coefficients");
    }
    for (double& scale : scales_) scale = scale == 0.0 ? 1.0 : scale;
    if (value_scale_ == 0.0) value_scale_ = 1.0;
    weights_.assign(sizes_.size(), 1.0);
    system const all = with_values(values_);
    if (std::size_t const dependent = all.dependent_column(); dependent < unknowns) {
      throw_dependent(all, dependent);
    }
    for (std::size_t r = 0; r != R; ++r) inflations_[r] = all.inflation(r, unknowns);
  }

  /// Returns the factor by which the variance of each slope is inflated.
  [[nodiscard]] resources<R, double> const& inflations() const { return inflations_; }

  void run() {
    solve();
    if (options_.loss == fit_loss::huber) reweight();
  }

  /// Sets the coefficients to the nearest integers if these fit all points exactly. Returns true if
  /// they do.
  [[nodiscard]] bool round_if_exact() {
    constexpr double most = 0x1p62;
    // A caller may already have rounded integers of this size or larger.
    constexpr double max_given = 0x1p53;
    if (value_scale_ >= max_given) return false;
    for (double const scale : scales_) {
      if (scale >= max_given) return false;
    }
    std::array<int128, R + 1> whole{};
    for (std::size_t j = 0; j != R + 1; ++j) {
      if (!(std::abs(coefficients_[j]) < most)) return false;
      whole[j] = static_cast<int128>(std::round(coefficients_[j]));
    }
    for (std::size_t i = 0; i != sizes_.size(); ++i) {
      int128 sum = whole[R];
      for (std::size_t r = 0; r != R; ++r) sum += whole[r] * static_cast<int128>(sizes_[i][r]);
      if (sum != static_cast<int128>(values_[i])) return false;
    }
    for (std::size_t j = 0; j != R + 1; ++j) coefficients_[j] = static_cast<double>(whole[j]);
    return true;
  }

  [[nodiscard]] coefficients_type const& coefficients() const { return coefficients_; }

  /// Returns the differences between the values and the fit. Throws if a difference is not finite.
  [[nodiscard]] std::vector<double> residuals() const {
    std::vector<double> result(values_);
    for (std::size_t i = 0; i != sizes_.size(); ++i) {
      result[i] -= coefficients_[R];
      for (std::size_t r = 0; r != R; ++r) result[i] -= coefficients_[r] * sizes_[i][r];
      if (!is_finite(result[i])) {
        throw_overflow(function_, "a residual");
      }
    }
    return result;
  }

 private:
  using system = least_squares<R + 1>;

  void check_finite(std::string_view argument, double value) const {
    if (is_finite(value)) return;
    throw_invalid(function_, argument, "[", sizes_.size(), "] is ", value, ", must be finite");
  }

  /// Throws because columns cannot be distinguished. The message names a kind that does not vary,
  /// or the columns that add up to another column.
  [[noreturn]] void throw_dependent(system const& all, std::size_t dependent) const {
    for (std::size_t r = 0; r != R; ++r) {
      double const first = sizes_.front()[r];
      bool const varies = std::any_of(sizes_.begin(), sizes_.end(),
                                      [&](auto const& size) { return size[r] != first; });
      if (varies || (first != 0.0 && !system::has(columns_, R))) continue;
      throw_invalid(function_, "kind ", r, " of size is ", first, " in all points",
                    (first == 0.0 ? "" : ", which cannot be told from the offset"));
    }
    auto const parts = all.combination(dependent);
    std::string sum;
    for (std::size_t r = 0; r != dependent; ++r) {
      double const part = parts[r] * scales_[dependent] / scales_[r];
      if (!(std::abs(parts[r]) > 1e-6)) continue;
      sum.append(sum.empty() ? "" : " + ").append(rounded_text(part)).append(" * kind ");
      sum.append(to_text(r));
    }
    if (dependent == R) {
      throw_invalid(function_, sum, " of size is 1 in all points, up to rounding",
                    ", which cannot be told from the offset");
    }
    throw_invalid(function_, "kind ", dependent, " of size is ", sum,
                  " in all points, up to rounding");
  }

  /// Returns a number with at most six digits.
  [[nodiscard]] static std::string rounded_text(double value) {
    char buffer[32];
    auto const written =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 6);
    return std::string(buffer, written.ptr);
  }

  [[nodiscard]] system with_values(std::span<double const> values) const {
    system result;
    for (std::size_t i = 0; i != sizes_.size(); ++i) {
      typename system::row_type row{};
      for (std::size_t r = 0; r != R; ++r) row[r] = weights_[i] * (sizes_[i][r] / scales_[r]);
      if (system::has(columns_, R)) row[R] = weights_[i];
      result.add(row, weights_[i] * (values[i] / value_scale_));
    }
    return result;
  }

  void solve() {
    bool const is_not_negative = options_.signs == fit_signs::not_negative;
    system const whole = with_values(values_);
    unsigned const chosen = is_not_negative ? best_columns(whole) : columns_;
    coefficients_ = unscaled(whole.with_columns(chosen).solution(chosen));
    check_coefficients();
    // One step of iterative refinement reduces the rounding errors of the rotations.
    auto const missed = residuals();
    auto const change = unscaled(with_values(missed).with_columns(chosen).solution(chosen));
    for (std::size_t j = 0; j != R + 1; ++j) {
      double const refined = coefficients_[j] + change[j];
      coefficients_[j] = is_not_negative ? std::max(0.0, refined) : refined;
    }
    check_coefficients();
  }

  void check_coefficients() const {
    for (double const coefficient : coefficients_) {
      if (is_finite(coefficient)) continue;
      throw_overflow(function_, "a coefficient");
    }
  }

  /// Returns the columns of the best solution without negative coefficients. This solution is the
  /// unconstrained solution for its positive columns.
  [[nodiscard]] unsigned best_columns(system const& whole) const {
    unsigned best = 0;
    double least = whole.with_columns(0).missed_squares();
    for (unsigned columns = 1; columns <= columns_; ++columns) {
      if ((columns & ~columns_) != 0) continue;
      system const reduced = whole.with_columns(columns);
      auto const solution = reduced.solution(columns);
      bool const is_valid =
          std::all_of(solution.begin(), solution.end(), [](double x) { return x >= 0.0; });
      if (!is_valid || !(reduced.missed_squares() < least)) continue;
      best = columns;
      least = reduced.missed_squares();
    }
    return best;
  }

  [[nodiscard]] coefficients_type unscaled(coefficients_type solution) const {
    for (std::size_t j = 0; j != R + 1; ++j) solution[j] *= value_scale_ / scales_[j];
    return solution;
  }

  /// Repeats least squares with smaller weights for points whose residual exceeds the spread, until
  /// the coefficients do not change.
  void reweight() {
    constexpr int max_rounds = 64;
    constexpr double to_deviation = 1.4826;
    constexpr double full_weight = 1.345;
    for (int round = 0; round != max_rounds; ++round) {
      auto const missed = residuals();
      std::vector<double> sizes(missed);
      for (double& size : sizes) size = std::abs(size);
      auto const middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
      std::nth_element(sizes.begin(), middle, sizes.end());
      double const limit = full_weight * to_deviation * *middle;
      if (!(limit > 0.0)) return;
      for (std::size_t i = 0; i != missed.size(); ++i) {
        double const size = std::abs(missed[i]);
        // Rows are multiplied by the square root of their weight.
        weights_[i] = size <= limit ? 1.0 : std::sqrt(limit / size);
      }
      auto const before = coefficients_;
      solve();
      if (coefficients_ == before) return;
    }
  }

  std::string_view function_;
  affine_fit_options options_;
  unsigned columns_;
  std::array<double, R + 1> scales_;
  double value_scale_ = 0.0;
  std::vector<resources<R, double>> sizes_;
  std::vector<double> values_;
  std::vector<double> weights_;
  resources<R, double> inflations_{};
  coefficients_type coefficients_{};
};

}  // namespace detail

/// A cost functor that returns offset + the sum of slope * size over the kinds of a size. It also
/// has the residuals of the points from which it was fitted.
template <std::size_t R>
struct affine_cost {
  double offset = 0.0;
  resources<R, double> slopes{};
  /// The root of the mean of the squared differences between points and functor.
  double root_mean_square_residual = 0.0;
  /// The largest absolute difference between a point and the functor, followed by the index of the
  /// point.
  double largest_residual = 0.0;
  std::size_t largest_residual_index = 0;
  /// True if the coefficients are integers that reproduce every point exactly.
  bool exact = false;
  /// The variance inflation of each slope: the sum of squares of the kind, divided by the sum of
  /// squares of its residual after a fit on the other kinds and the offset. The inflation is one if
  /// the kind is independent of the other kinds and the offset. Otherwise the noise of measurements
  /// changes the slope more, by a factor of the root of the inflation. The inflation depends
  /// neither on units nor on values. It is zero if nothing was fitted.
  resources<R, double> variance_inflation{};

  /// The inflation above which a single slope is not reliable: the effect of noise is then ten
  /// times as large.
  static constexpr double near_collinear = 100.0;

  /// Returns the kinds whose inflation is above `most`, ascending, as a warning. If there are
  /// several such kinds, they vary together in the points. A single such kind hardly varies, or
  /// depends on the offset. The fit is still accurate for sizes similar to its points. The slopes
  /// of these kinds, `per_sample()`, and costs of other mixtures of sizes are not reliable. Measure
  /// points that differ more, or remove a kind.
  [[nodiscard]] std::vector<std::size_t> collinear_kinds(double most = near_collinear) const {
    std::vector<std::size_t> result;
    for (std::size_t r = 0; r != R; ++r) {
      if (variance_inflation[r] > most) result.push_back(r);
    }
    return result;
  }

  /// Returns the cost of a size; zero if the formula is negative. Determinism: run-to-run.
  template <measure Size>
    requires(detail::kinds_of<Size> == R)
  [[nodiscard]] double operator()(Size const& size) const {
    auto const sizes = detail::to_resources<double>({"affine_cost", "size"}, size);
    double result = offset;
    for (std::size_t r = 0; r != R; ++r) result += slopes[r] * sizes[r];
    return std::max(0.0, result);
  }

  /// Returns the cost of one sample of a batch, if this functor is the cost of a batch with the sum
  /// of its samples as its size. The result has the slopes, but not the offset, which occurs once
  /// in a batch. If no slope is negative, the costs of all samples and the offset add up to the
  /// cost of the batch. The result has no residuals, because the residuals belong to batches.
  [[nodiscard]] constexpr affine_cost per_sample() const { return {.slopes = slopes}; }

  [[nodiscard]] friend bool operator==(affine_cost const&, affine_cost const&) = default;
};

struct affine_fit_fn {
  /// Fits the affine cost functor that is nearest to measured points: `affine_fit(points,
  /// &point::tokens, &point::seconds)`. For several kinds of size, use `affine_fit(points,
  /// demand_of(&point::tokens, &point::squares), &point::seconds)`. `size` and `value` are called
  /// once for each point, in order.
  ///
  /// If sizes and values are integers and integer coefficients fit them exactly, the result has
  /// these coefficients. `collinear_kinds()` of the result lists the kinds that the points hardly
  /// distinguish. If the points do not distinguish kinds at all, or only by rounding, the function
  /// throws. The message names the kind and its value, or the sum of other kinds that it equals.
  ///
  /// Preconditions: no fewer points than coefficients, and sizes that determine them. Complexity:
  /// linear in the points. If no coefficient may be negative, 2^kinds small systems are solved.
  /// Huber's loss repeats the fit up to 64 times. Memory: 8 (kinds + 3) bytes for each point.
  /// Determinism: run-to-run; portable if the result is exact. Errors: `std::invalid_argument` for
  /// too few points, sizes that do not determine the coefficients, and a number that is not finite;
  /// `std::overflow_error` for a coefficient or a residual above the largest number. Sources:
  /// Golub, 1965; Marquardt, 1970; Huber, "Robust estimation of a location parameter", 1964.
  template <class Points, class Size, class Value>
    requires detail::profiled_points<Points, Size, Value>
  [[nodiscard]] auto operator()(Points const& points, Size const& size, Value const& value,
                                affine_fit_options const& options = {}) const {
    using size_type = demand_result<Size, sample_reference<Points>>;
    using value_type = demand_result<Value, sample_reference<Points>>;
    constexpr std::size_t kinds = detail::kinds_of<size_type>;
    constexpr bool is_whole = integral_measure<size_type> && std::integral<value_type>;
    detail::affine_solver<kinds> solver(name, std::ranges::size(points), options);
    for (auto&& point : points) {
      solver.push(detail::to_resources<double>({name, "size"}, std::invoke(size, point)),
                  static_cast<double>(std::invoke(value, point)));
    }
    solver.check();
    solver.run();
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
    result.variance_inflation = solver.inflations();
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

/// Fits an affine cost functor to measured points; see `affine_fit_fn`.
inline constexpr affine_fit_fn affine_fit{};

}  // namespace omnibal::inline v0
