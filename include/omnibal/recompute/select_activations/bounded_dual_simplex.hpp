// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The dual simplex method with bounded variables, for rows of consecutive layers.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The dual simplex method for a linear program with bounded variables: maximize the sum of `gain *
/// x` with 0 <= x <= 1 for each item. A row limits the sum of `bytes * x` over the items of
/// consecutive layers. Rows are added one after the other. The basis remains dual feasible, so the
/// method continues from the last solution after each new row.
class bounded_dual_simplex {
 public:
  /// A row: the items of the layers [first, last) have at most `bytes` bytes.
  struct row {
    std::uint32_t first;
    std::uint32_t last;
    double bytes;
  };

  /// Removes all rows and items. Without rows, each item is at its upper bound.
  void reset(std::size_t layers) {
    layers_ = layers;
    items_.clear();
    at_upper_.clear();
    in_basis_.clear();
    rows_.clear();
    basis_.clear();
    values_.clear();
    inverse_.clear();
    duals_.clear();
    pivots_left_ = 200 + 4 * layers;
  }

  /// Adds an item. Precondition: there is no row.
  void push_item(std::uint32_t layer, double bytes, double gain) {
    items_.push_back({bytes, gain, layer});
    at_upper_.push_back(1);
    in_basis_.push_back(0);
  }

  /// Adds a row; the slack of the row becomes basic. If `a` are the coefficients of the row for the
  /// basic items, the inverse of the basis B becomes
  ///
  ///     | B   0 |^-1     |   B^-1      0 |
  ///     | a   1 |     =  | -a B^-1     1 |
  void push_row(row const& one) {
    std::size_t const added = rows_.size();
    rows_.push_back(one);
    inverse_.resize((added + 1) * max_rows, 0.0);
    for (std::size_t c = 0; c != added; ++c) {
      double sum = 0.0;
      for (std::size_t r = 0; r != added; ++r) {
        if (!is_slack(basis_[r]) && is_inside(added, basis_[r])) {
          sum -= items_[basis_[r]].bytes * entry(r, c);
        }
      }
      inverse_[added * max_rows + c] = sum;
    }
    inverse_[added * max_rows + added] = 1.0;
    basis_.push_back(slack_of(added));
    values_.push_back(0.0);
  }

  [[nodiscard]] bool is_full() const { return rows_.size() == max_rows; }

  /// Pivots until all basic variables are within their bounds. Returns false if the limit on pivots
  /// is reached first.
  [[nodiscard]] bool solve() {
    for (;;) {
      find_values();
      find_duals();
      std::size_t leaving = rows_.size();
      double most = tolerance;
      bool is_below = false;
      for (std::size_t r = 0; r != rows_.size(); ++r) {
        double const above = is_slack(basis_[r]) ? -1.0 : values_[r] - 1.0;
        if (-values_[r] > most) {
          most = -values_[r];
          leaving = r;
          is_below = true;
        }
        if (above > most) {
          most = above;
          leaving = r;
          is_below = false;
        }
      }
      if (leaving == rows_.size()) return true;
      if (pivots_left_-- == 0 || !pivot(leaving, most, is_below)) return false;
    }
  }

  /// Returns the dual value of each row: the gain of one additional byte.
  [[nodiscard]] std::span<double const> duals() const { return duals_; }

  /// Returns the share of each item in the solution.
  [[nodiscard]] std::vector<double> parts() const {
    std::vector<double> result(at_upper_.begin(), at_upper_.end());
    for (std::size_t r = 0; r != basis_.size(); ++r) {
      if (!is_slack(basis_[r])) result[basis_[r]] = values_[r];
    }
    return result;
  }

  /// Returns the bytes of the items of each layer in the solution.
  [[nodiscard]] std::span<double const> layer_bytes() {
    sum_nonbasic();
    for (std::size_t r = 0; r != basis_.size(); ++r) {
      if (!is_slack(basis_[r])) {
        item const& one = items_[basis_[r]];
        layer_bytes_[one.layer] += one.bytes * values_[r];
      }
    }
    return layer_bytes_;
  }

  /// Numbers are treated as equal if they differ by at most this tolerance. Bytes and gains are
  /// given as shares of their sums.
  static constexpr double tolerance = 1e-9;

 private:
  static constexpr double pivot_tolerance = 1e-13;
  static constexpr std::size_t max_rows = 32;

  struct item {
    double bytes;
    double gain;
    std::uint32_t layer;
  };

  /// Returns the index of the slack of a row. Variables are the items, followed by the slacks of
  /// the rows.
  [[nodiscard]] std::size_t slack_of(std::size_t number) const { return items_.size() + number; }
  [[nodiscard]] bool is_slack(std::size_t variable) const { return variable >= items_.size(); }
  [[nodiscard]] double entry(std::size_t number, std::size_t column) const {
    return inverse_[number * max_rows + column];
  }
  [[nodiscard]] bool is_inside(std::size_t number, std::size_t variable) const {
    std::uint32_t const layer = items_[variable].layer;
    return layer >= rows_[number].first && layer < rows_[number].last;
  }

  /// Sums the bytes of the nonbasic items at their upper bounds for each layer.
  void sum_nonbasic() {
    layer_bytes_.assign(layers_, 0.0);
    for (std::size_t j = 0; j != items_.size(); ++j) {
      if (in_basis_[j] == 0 && at_upper_[j] != 0) layer_bytes_[items_[j].layer] += items_[j].bytes;
    }
  }

  /// Solves B x = b - N u for the basic variables x, with nonbasic items at their bounds u.
  void find_values() {
    sum_nonbasic();
    std::size_t const count = rows_.size();
    rest_.resize(count);
    for (std::size_t r = 0; r != count; ++r) {
      rest_[r] = rows_[r].bytes;
      for (std::uint32_t i = rows_[r].first; i != rows_[r].last; ++i) rest_[r] -= layer_bytes_[i];
    }
    for (std::size_t r = 0; r != count; ++r) {
      values_[r] = 0.0;
      for (std::size_t c = 0; c != count; ++c) values_[r] += entry(r, c) * rest_[c];
    }
  }

  /// Computes the dual values g B^-1 from the gains g of the basic variables.
  void find_duals() {
    duals_.assign(rows_.size(), 0.0);
    for (std::size_t r = 0; r != rows_.size(); ++r) {
      if (is_slack(basis_[r])) continue;
      for (std::size_t c = 0; c != rows_.size(); ++c) {
        duals_[c] += items_[basis_[r]].gain * entry(r, c);
      }
    }
  }

  /// Computes for each layer the sum of a number of each row over the rows that contain the layer.
  template <class Of>
  void sum_rows(std::vector<double>& result, Of const& of) const {
    result.assign(layers_ + 1, 0.0);
    for (std::size_t r = 0; r != rows_.size(); ++r) {
      result[rows_[r].first] += of(r);
      result[rows_[r].last] -= of(r);
    }
    for (std::size_t i = 1; i < result.size(); ++i) result[i] += result[i - 1];
  }

  struct candidate {
    double ratio;
    double step;
    std::size_t variable;
  };

  /// Replaces the basic variable of a row, which is outside of its bounds by `excess`.
  ///
  /// The ratio test: let e be the row of B^-1. If the dual values move by t along e, the reduced
  /// gain of nonbasic item j becomes `gain - dual * bytes - t * step` with its step e * bytes, and
  /// changes its sign at `ratio = reduced gain / step`. The dual objective improves by `excess` for
  /// each unit of t. If t passes the ratio of an item, the item moves to its other bound, which is
  /// 1 away, and the improvement decreases by |step|. The variable at whose ratio the improvement
  /// ends enters the basis. A slack has no other bound, so it always enters.
  [[nodiscard]] bool pivot(std::size_t leaving, double excess, bool is_below) {
    double const sign = is_below ? 1.0 : -1.0;
    sum_rows(layer_duals_, [&](std::size_t r) { return duals_[r]; });
    sum_rows(layer_steps_, [&](std::size_t r) { return entry(leaving, r); });
    candidates_.clear();
    for (std::size_t j = 0; j != items_.size(); ++j) {
      if (in_basis_[j] != 0) continue;
      item const& one = items_[j];
      double const step = sign * layer_steps_[one.layer] * one.bytes;
      // The leaving variable moves toward its bound if the item moves away from its own bound.
      if (at_upper_[j] != 0 ? step <= pivot_tolerance : step >= -pivot_tolerance) continue;
      double const reduced = one.gain - layer_duals_[one.layer] * one.bytes;
      candidates_.push_back({std::abs(reduced / step), std::abs(step), j});
    }
    for (std::size_t r = 0; r != rows_.size(); ++r) {
      bool const is_basic = std::find(basis_.begin(), basis_.end(), slack_of(r)) != basis_.end();
      double const step = sign * entry(leaving, r);
      if (is_basic || step >= -pivot_tolerance) continue;
      candidates_.push_back({std::abs(duals_[r] / step), std::abs(step), slack_of(r)});
    }
    std::sort(candidates_.begin(), candidates_.end(), [](candidate const& a, candidate const& b) {
      return a.ratio != b.ratio ? a.ratio < b.ratio : a.variable < b.variable;
    });
    for (candidate const& one : candidates_) {
      excess -= one.step;
      if (!is_slack(one.variable) && excess > 0.0) {
        at_upper_[one.variable] ^= 1;
        continue;
      }
      enter(leaving, one.variable, is_below);
      return true;
    }
    return false;
  }

  /// Replaces the basic variable of a row by another variable, whose column is d = B^-1 a. Divides
  /// the leaving row of the inverse by its element of d. Subtracts from each other row its element
  /// of d times the new leaving row.
  void enter(std::size_t leaving, std::size_t variable, bool is_below) {
    std::size_t const count = rows_.size();
    column_.assign(count, 0.0);
    for (std::size_t r = 0; r != count; ++r) {
      if (is_slack(variable)) {
        column_[r] = entry(r, variable - items_.size());
        continue;
      }
      for (std::size_t c = 0; c != count; ++c) {
        if (is_inside(c, variable)) column_[r] += entry(r, c) * items_[variable].bytes;
      }
    }
    std::size_t const old = basis_[leaving];
    if (!is_slack(old)) {
      in_basis_[old] = 0;
      at_upper_[old] = is_below ? 0 : 1;
    }
    basis_[leaving] = variable;
    if (!is_slack(variable)) in_basis_[variable] = 1;
    for (std::size_t c = 0; c != count; ++c) inverse_[leaving * max_rows + c] /= column_[leaving];
    for (std::size_t r = 0; r != count; ++r) {
      if (r == leaving || column_[r] == 0.0) continue;
      for (std::size_t c = 0; c != count; ++c) {
        inverse_[r * max_rows + c] -= column_[r] * entry(leaving, c);
      }
    }
  }

  std::size_t layers_ = 0;
  std::vector<item> items_;
  std::vector<row> rows_;
  /// For each item: whether it is basic, and otherwise whether it is at its upper bound.
  std::vector<unsigned char> in_basis_;
  std::vector<unsigned char> at_upper_;
  /// The basic variable of each row, and its value.
  std::vector<std::size_t> basis_;
  std::vector<double> values_;
  /// The inverse of the basis with `max_rows` numbers for each row, and the dual values of the
  /// rows.
  std::vector<double> inverse_;
  std::vector<double> duals_;
  std::size_t pivots_left_ = 0;
  /// Scratch memory of one pivot.
  std::vector<double> layer_bytes_;
  std::vector<double> rest_;
  std::vector<double> column_;
  std::vector<double> layer_duals_;
  std::vector<double> layer_steps_;
  std::vector<candidate> candidates_;
};

}  // namespace omnibal::inline v0::detail
