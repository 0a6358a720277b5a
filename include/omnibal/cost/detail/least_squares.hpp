#pragma once

/// \file
/// Linear least squares by rotations, row after row.

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

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

}  // namespace omnibal::inline v0::detail
