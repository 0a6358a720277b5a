#pragma once

/// \file
/// The coefficients of an affine function through points.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The triangle to which rotations bring the rows of an overdetermined system. Source: Golub,
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

  /// The sum of the squares of what the solution misses.
  [[nodiscard]] double missed_squares() const { return missed_squares_; }

  /// The first column that depends on those before it; K where all are independent.
  [[nodiscard]] std::size_t dependent_column() const {
    constexpr double least = 1e3 * std::numeric_limits<double>::epsilon();
    for (std::size_t j = 0; j != K; ++j) {
      double squares = 0.0;
      for (std::size_t i = 0; i <= j; ++i) squares += triangle_[i][j] * triangle_[i][j];
      if (!(std::abs(triangle_[j][j]) > least * std::sqrt(squares))) return j;
    }
    return K;
  }

  /// The same system with only those columns whose bit is set.
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

  /// The coefficients of the columns whose bit is set, zero for the others.
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
    double const turned = cosine * kept + sine * rest;
    rest = cosine * rest - sine * kept;
    kept = turned;
  }

  std::array<row_type, K> triangle_{};
  row_type values_{};
  double missed_squares_ = 0.0;
};

/// Not above the largest number, whose square may leave the type.
[[nodiscard]] inline double root_mean_square(std::span<double const> numbers) {
  double largest = 0.0;
  for (double const number : numbers) largest = std::max(largest, std::abs(number));
  if (largest == 0.0) return 0.0;
  double squares = 0.0;
  for (double const number : numbers) squares += (number / largest) * (number / largest);
  return largest * std::sqrt(squares / static_cast<double>(numbers.size()));
}

/// Least squares of R slopes and an offset, which is the last coefficient. Columns and values are
/// divided by their largest number first, so that units do not matter.
template <std::size_t R>
class affine_solver {
 public:
  using coefficients_type = std::array<double, R + 1>;

  affine_solver(std::string_view function, std::size_t points, bool has_offset,
                bool is_not_negative)
      : function_(function), is_not_negative_(is_not_negative) {
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
      throw_invalid(function_, "points has " + to_text(sizes_.size()) +
                                   " elements, fewer than the " + to_text(unknowns) +
                                   " coefficients");
    }
    for (double& scale : scales_) scale = scale == 0.0 ? 1.0 : scale;
    if (value_scale_ == 0.0) value_scale_ = 1.0;
    weights_.assign(sizes_.size(), 1.0);
    std::size_t const dependent = with_values(values_).dependent_column();
    if (dependent == R && (columns_ >> R) == 0) return;
    if (dependent == R + 1) return;
    throw_invalid(function_, dependent == R
                                 ? "size has a combination that is the same in all points"
                                 : "kind " + to_text(dependent) +
                                       " of size is zero or follows from the kinds before it");
  }

  void run(bool is_robust) {
    solve();
    if (is_robust) reweight();
    for (double const coefficient : coefficients_) {
      if (!(std::abs(coefficient) <= std::numeric_limits<double>::max())) {
        throw_overflow(function_, "a coefficient");
      }
    }
  }

  /// Takes the nearest whole numbers as coefficients where they miss no point.
  [[nodiscard]] bool round_if_exact() {
    constexpr double most = 0x1p62;
    // Integers from here on may have been rounded when they came.
    constexpr double most_given = 0x1p53;
    if (value_scale_ >= most_given) return false;
    for (double const scale : scales_) {
      if (scale >= most_given) return false;
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

  /// Values less what the coefficients give.
  [[nodiscard]] std::vector<double> residuals() const {
    std::vector<double> result(values_);
    for (std::size_t i = 0; i != sizes_.size(); ++i) {
      result[i] -= coefficients_[R];
      for (std::size_t r = 0; r != R; ++r) result[i] -= coefficients_[r] * sizes_[i][r];
    }
    return result;
  }

 private:
  using system = least_squares<R + 1>;

  void check_finite(std::string_view argument, double value) const {
    if (std::abs(value) <= std::numeric_limits<double>::max()) return;
    throw_invalid(function_, std::string(argument) + "[" + to_text(sizes_.size()) + "] is " +
                                 to_text(value) + ", must be finite");
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
    system const whole = with_values(values_);
    unsigned const chosen = is_not_negative_ ? best_columns(whole) : columns_;
    coefficients_ = unscaled(whole.with_columns(chosen).solution(chosen));
    // One step of refinement: the rotations have rounded each row.
    auto const missed = residuals();
    auto const change = unscaled(with_values(missed).with_columns(chosen).solution(chosen));
    for (std::size_t j = 0; j != R + 1; ++j) {
      double const refined = coefficients_[j] + change[j];
      coefficients_[j] = is_not_negative_ ? std::max(0.0, refined) : refined;
    }
  }

  /// The best solution without negative numbers is the free one of its positive columns.
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

  /// Least squares again and again, with less weight for points that were missed by more than their
  /// spread, until nothing changes.
  void reweight() {
    constexpr int most_rounds = 64;
    constexpr double to_deviation = 1.4826;
    constexpr double full_weight = 1.345;
    for (int round = 0; round != most_rounds; ++round) {
      auto const missed = residuals();
      std::vector<double> sizes(missed);
      for (double& size : sizes) size = std::abs(size);
      auto const middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
      std::nth_element(sizes.begin(), middle, sizes.end());
      double const limit = full_weight * to_deviation * *middle;
      if (!(limit > 0.0)) return;
      for (std::size_t i = 0; i != missed.size(); ++i) {
        double const size = std::abs(missed[i]);
        // Rows are multiplied by the root of their weight.
        weights_[i] = size <= limit ? 1.0 : std::sqrt(limit / size);
      }
      auto const before = coefficients_;
      solve();
      if (coefficients_ == before) return;
    }
  }

  std::string_view function_;
  bool is_not_negative_;
  unsigned columns_;
  std::array<double, R + 1> scales_;
  double value_scale_ = 0.0;
  std::vector<resources<R, double>> sizes_;
  std::vector<double> values_;
  std::vector<double> weights_;
  coefficients_type coefficients_{};
};

}  // namespace omnibal::inline v0::detail
