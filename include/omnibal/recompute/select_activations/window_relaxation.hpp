// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The linear relaxation of the choice of saved modules, and the bound of its prices.

#include <omnibal/config.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Prices of windows as whole numbers: a byte of a layer costs the sum of the prices of the windows
/// with the layer. A gain is comparable after multiplication by 2^shift.
struct window_prices {
  std::vector<window> windows;
  std::vector<std::int64_t> prices;
  int shift = 0;
  /// The price of a byte of each layer.
  std::vector<std::int64_t> of_layer;
  /// The upper bound on the gain, times 2^shift.
  int128 bound = 0;

  [[nodiscard]] int128 reduced_gain(saved_item const& item) const {
    return (static_cast<int128>(item.gain) << shift) -
           static_cast<int128>(of_layer[item.layer]) * item.bytes;
  }
};

/// The linear relaxation by cutting planes: the dual simplex method with bounded variables. A row
/// is a window whose limit the relaxed solution exceeds. Numbers are floating-point, but the bound
/// is computed from the prices in integers and is therefore valid for any prices.
class window_relaxation {
 public:
  explicit window_relaxation(queue_limits const& limits) : limits_(limits) {}

  /// Solves the relaxation and fills the prices.
  void solve(window_prices& result) {
    start();
    for (std::size_t round = 0; round != max_rounds; ++round) {
      if (!add_windows()) break;
      if (!restore()) break;
    }
    to_prices(result);
  }

  /// Returns the part of each item that the relaxed solution saves.
  [[nodiscard]] std::vector<double> parts() const {
    std::vector<double> result(at_upper_.begin(), at_upper_.end());
    for (std::size_t r = 0; r != basis_.size(); ++r) {
      if (!is_slack(basis_[r])) result[basis_[r]] = values_[r];
    }
    return result;
  }

 private:
  static constexpr std::size_t max_rounds = 64;
  static constexpr std::size_t max_rows = 32;
  static constexpr double tolerance = 1e-9;

  void start() {
    auto const count = limits_.items.size();
    byte_unit_ = std::max(1.0, static_cast<double>(limits_.total_bytes));
    gain_unit_ = std::max(1.0, static_cast<double>(limits_.total_gain));
    bytes_.resize(count);
    gains_.resize(count);
    for (std::size_t j = 0; j != count; ++j) {
      bytes_[j] = static_cast<double>(limits_.items[j].bytes) / byte_unit_;
      gains_[j] = static_cast<double>(limits_.items[j].gain) / gain_unit_;
    }
    at_upper_.assign(count, 1);
    in_basis_.assign(count, 0);
    rows_.clear();
    basis_.clear();
    values_.clear();
    inverse_.clear();
    duals_.clear();
    iterations_left_ = 200 + 4 * limits_.size();
  }

  [[nodiscard]] std::size_t slack_of(std::size_t row) const { return limits_.items.size() + row; }
  [[nodiscard]] bool is_slack(std::size_t variable) const {
    return variable >= limits_.items.size();
  }
  [[nodiscard]] double entry(std::size_t row, std::size_t column) const {
    return inverse_[row * max_rows + column];
  }
  [[nodiscard]] bool is_inside(std::size_t row, std::size_t item) const {
    std::uint32_t const layer = limits_.items[item].layer;
    return layer >= rows_[row].first && layer < rows_[row].last;
  }

  /// The bytes of each layer in the relaxed solution, as a share of all bytes.
  void sum_layers() {
    layer_sums_.assign(limits_.size(), 0.0);
    for (std::size_t j = 0; j != bytes_.size(); ++j) {
      if (in_basis_[j] == 0 && at_upper_[j] != 0) layer_sums_[limits_.items[j].layer] += bytes_[j];
    }
  }

  /// Adds the windows that exceed the limit of each queue most. False if there are none.
  [[nodiscard]] bool add_windows() {
    sum_layers();
    for (std::size_t r = 0; r != basis_.size(); ++r) {
      if (!is_slack(basis_[r])) {
        layer_sums_[limits_.items[basis_[r]].layer] += bytes_[basis_[r]] * values_[r];
      }
    }
    bool const is_added = add_window(true);
    return add_window(false) || is_added;
  }

  [[nodiscard]] bool add_window(bool is_sending) {
    double queue = 0.0;
    double most = tolerance;
    std::uint32_t first = 0;
    window found{0, 0, is_sending, 0};
    auto const& limit = is_sending ? limits_.max_sending : limits_.max_fetching;
    for (std::uint32_t i = 0; i != limits_.size(); ++i) {
      double const leaving =
          static_cast<double>(is_sending ? limits_.sent[i] : limits_.fetched[i]) / byte_unit_;
      if (!is_sending) queue -= leaving;
      if (queue <= 0.0) {
        queue = 0.0;
        first = i;
      }
      queue += layer_sums_[i];
      if (is_sending) queue -= leaving;
      double const excess = queue - static_cast<double>(limit[i]) / byte_unit_;
      if (excess <= most) continue;
      most = excess;
      found.first = first;
      found.last = i + 1;
    }
    if (found.last == 0 || rows_.size() == max_rows) return false;
    int128 sum = limit[found.last - 1];
    for (std::uint32_t i = found.first; i != found.last; ++i) {
      if (is_sending || i != found.first) sum += is_sending ? limits_.sent[i] : limits_.fetched[i];
    }
    if (sum >= limits_.total_bytes) return false;
    found.bytes = static_cast<std::int64_t>(sum);
    push_row(found);
    return true;
  }

  void push_row(window const& one) {
    std::size_t const row = rows_.size();
    rows_.push_back(one);
    inverse_.resize((row + 1) * max_rows, 0.0);
    for (std::size_t c = 0; c != row; ++c) {
      double sum = 0.0;
      for (std::size_t r = 0; r != row; ++r) {
        if (!is_slack(basis_[r]) && is_inside(row, basis_[r])) {
          sum -= bytes_[basis_[r]] * entry(r, c);
        }
      }
      inverse_[row * max_rows + c] = sum;
    }
    inverse_[row * max_rows + row] = 1.0;
    basis_.push_back(slack_of(row));
    values_.push_back(0.0);
  }

  /// Sums numbers of rows for each layer: the number of a row belongs to all its layers.
  template <class Of>
  void spread(Of const& of) {
    layer_prices_.assign(limits_.size() + 1, 0.0);
    for (std::size_t r = 0; r != rows_.size(); ++r) {
      layer_prices_[rows_[r].first] += of(r);
      layer_prices_[rows_[r].last] -= of(r);
    }
    for (std::size_t i = 1; i < layer_prices_.size(); ++i) layer_prices_[i] += layer_prices_[i - 1];
  }

  void find_values() {
    sum_layers();
    std::size_t const count = rows_.size();
    rest_.resize(count);
    for (std::size_t r = 0; r != count; ++r) {
      rest_[r] = static_cast<double>(rows_[r].bytes) / byte_unit_;
      for (std::uint32_t i = rows_[r].first; i != rows_[r].last; ++i) rest_[r] -= layer_sums_[i];
    }
    for (std::size_t r = 0; r != count; ++r) {
      values_[r] = 0.0;
      for (std::size_t c = 0; c != count; ++c) values_[r] += entry(r, c) * rest_[c];
    }
  }

  void find_duals() {
    duals_.assign(rows_.size(), 0.0);
    for (std::size_t r = 0; r != rows_.size(); ++r) {
      if (is_slack(basis_[r])) continue;
      for (std::size_t c = 0; c != rows_.size(); ++c) {
        duals_[c] += gains_[basis_[r]] * entry(r, c);
      }
    }
  }

  /// Pivots until all basic variables are within their bounds. False if the iterations end first.
  [[nodiscard]] bool restore() {
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
      if (iterations_left_-- == 0 || !pivot(leaving, most, is_below)) return false;
    }
  }

  struct candidate {
    double ratio;
    double step;
    std::size_t variable;
  };

  /// Replaces a basic variable. Nonbasic variables whose reduced gains change their sign on the way
  /// move to their other bound.
  [[nodiscard]] bool pivot(std::size_t row, double excess, bool is_below) {
    double const sign = is_below ? 1.0 : -1.0;
    spread([&](std::size_t r) { return duals_[r]; });
    dual_prices_ = layer_prices_;
    spread([&](std::size_t r) { return entry(row, r); });
    candidates_.clear();
    for (std::size_t j = 0; j != bytes_.size(); ++j) {
      if (in_basis_[j] != 0) continue;
      std::uint32_t const layer = limits_.items[j].layer;
      double const step = sign * layer_prices_[layer] * bytes_[j];
      // The basic variable moves to its bound if the item moves from its own bound.
      if (at_upper_[j] != 0 ? step <= pivot_tolerance : step >= -pivot_tolerance) continue;
      double const reduced = gains_[j] - dual_prices_[layer] * bytes_[j];
      candidates_.push_back({std::abs(reduced / step), std::abs(step), j});
    }
    for (std::size_t r = 0; r != rows_.size(); ++r) {
      bool const is_basic = std::find(basis_.begin(), basis_.end(), slack_of(r)) != basis_.end();
      double const step = sign * entry(row, r);
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
      enter(row, one.variable, is_below);
      return true;
    }
    return false;
  }

  void enter(std::size_t row, std::size_t variable, bool is_below) {
    std::size_t const count = rows_.size();
    column_.assign(count, 0.0);
    for (std::size_t r = 0; r != count; ++r) {
      if (is_slack(variable)) {
        column_[r] = entry(r, variable - limits_.items.size());
        continue;
      }
      for (std::size_t c = 0; c != count; ++c) {
        if (is_inside(c, variable)) column_[r] += entry(r, c) * bytes_[variable];
      }
    }
    std::size_t const old = basis_[row];
    if (!is_slack(old)) {
      in_basis_[old] = 0;
      at_upper_[old] = is_below ? 0 : 1;
    }
    basis_[row] = variable;
    if (!is_slack(variable)) in_basis_[variable] = 1;
    for (std::size_t c = 0; c != count; ++c) inverse_[row * max_rows + c] /= column_[row];
    for (std::size_t r = 0; r != count; ++r) {
      if (r == row || column_[r] == 0.0) continue;
      for (std::size_t c = 0; c != count; ++c) {
        inverse_[r * max_rows + c] -= column_[r] * entry(row, c);
      }
    }
  }

  /// Rounds the duals to whole prices and computes their bound.
  void to_prices(window_prices& result) const {
    constexpr int price_bits = 50;
    constexpr int bound_bits = 118;
    result.windows.clear();
    result.prices.clear();
    double largest = 0.0;
    for (double const dual : duals_) largest = std::max(largest, dual * gain_unit_ / byte_unit_);
    int const gain_bits =
        limits_.total_gain > 0
            ? 64 - std::countl_zero(static_cast<std::uint64_t>(limits_.total_gain))
            : 0;
    result.shift = std::clamp(largest > 0.0 ? price_bits - std::ilogb(largest) : 0, 0,
                              std::min(bound_bits - gain_bits, 60));
    result.bound = 0;
    for (std::size_t r = 0; r != duals_.size(); ++r) {
      double const price = std::ldexp(duals_[r] * gain_unit_ / byte_unit_, result.shift);
      if (!(price >= 1.0) || price >= 0x1p57) continue;
      result.windows.push_back(rows_[r]);
      result.prices.push_back(static_cast<std::int64_t>(price));
      result.bound += static_cast<int128>(result.prices.back()) * rows_[r].bytes;
    }
    result.of_layer.assign(limits_.size(), 0);
    for (std::size_t c = 0; c != result.windows.size(); ++c) {
      for (std::uint32_t i = result.windows[c].first; i != result.windows[c].last; ++i) {
        result.of_layer[i] += result.prices[c];
      }
    }
    for (saved_item const& item : limits_.items) {
      result.bound += std::max<int128>(0, result.reduced_gain(item));
    }
  }

  static constexpr double pivot_tolerance = 1e-13;

  queue_limits const& limits_;
  double byte_unit_ = 1.0;
  double gain_unit_ = 1.0;
  std::vector<double> bytes_;
  std::vector<double> gains_;
  std::vector<unsigned char> at_upper_;
  std::vector<unsigned char> in_basis_;
  std::vector<window> rows_;
  /// The basic variable of each row and its value.
  std::vector<std::size_t> basis_;
  std::vector<double> values_;
  /// The inverse of the basis, `max_rows` numbers for each row.
  std::vector<double> inverse_;
  std::vector<double> duals_;
  std::vector<double> rest_;
  std::vector<double> column_;
  std::vector<double> layer_sums_;
  std::vector<double> layer_prices_;
  std::vector<double> dual_prices_;
  std::vector<candidate> candidates_;
  std::size_t iterations_left_ = 0;
};

}  // namespace omnibal::inline v0::detail
