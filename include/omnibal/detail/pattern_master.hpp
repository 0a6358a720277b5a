// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Linear program over patterns, the ways to fill a group.

#include <omnibal/config.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A type of samples in a group, and the number of samples of this type.
struct pattern_entry {
  std::uint32_t type;
  std::uint32_t count;
};

/// The samples of a group: the number of samples of each type. Each type occurs once.
using pattern = std::vector<pattern_entry>;

/// The largest number of samples of one type in a group of a linear program. With more, the worth
/// of a pattern would not fit an integer. The absolute value of a price is at most 2^33, so that
/// this number of samples of each of 4096 types is worth up to 2^61.
inline constexpr std::uint32_t max_alone = 1U << 16;

/// The restricted master problem: known patterns, as fractions of groups, hold all samples in the
/// fewest groups. The method is a revised simplex method, whose dual solution is the prices of the
/// types. Source: Gilmore, Gomory, "A linear programming approach to the cutting-stock problem",
/// 1961.
///
/// The inverse of the basis consists of `float`. A product of two such numbers, or of such a number
/// and an integer below 2^29, is exact in `double`. Results are therefore the same if a compiler
/// fuses the product with a sum. Prices are integers with exact residuals. Iterative refinement
/// therefore makes them precise even if the inverse is not.
///
/// The number of samples of each type is increased by a small share that differs from type to type.
/// Without this perturbation, many patterns fill no group, and the method exchanges them without
/// end.
class pattern_master {
 public:
  /// The price of a whole group.
  static constexpr std::int64_t one = std::int64_t{1} << 30;

  /// Begins with a basis of one pattern per type. `counts[i]` samples have type i, and `alone[i]`
  /// of them fill a group; all are positive.
  pattern_master(std::span<std::uint64_t const> counts, std::span<std::uint32_t const> alone)
      : types_(counts.size()) {
    std::size_t const types = size();
    inverse_.assign(types * types, 0.0F);
    for (std::size_t i = 0; i != types; ++i) {
      inverse_[i * types + i] = 1.0F / static_cast<float>(alone[i]);
      basis_.push_back({{static_cast<std::uint32_t>(i), alone[i]}});
      needed_.push_back(perturbed(counts[i], i));
      groups_.push_back(needed_[i] / static_cast<float>(alone[i]));
    }
    prices_.resize(types);
    column_.resize(types);
    corrections_.resize(types);
    correct_prices();
  }

  [[nodiscard]] std::size_t size() const { return types_; }

  /// Returns the prices, for which no pattern of the basis is worth more than `one`, except for
  /// rounding. Some prices may be below zero.
  [[nodiscard]] std::span<std::int64_t const> prices() const { return prices_; }

  /// Returns the worth of a pattern.
  [[nodiscard]] std::int64_t worth(pattern const& of) const {
    std::int64_t sum = 0;
    for (pattern_entry const entry : of) sum += prices_[entry.type] * entry.count;
    return sum;
  }

  /// Returns the patterns of the basis.
  [[nodiscard]] std::span<pattern const> basis() const { return basis_; }

  /// Returns how many whole groups each pattern of the basis fills, rounded to the nearest number
  /// and such that the groups contain at most `counts[i]` samples of type i. The numbers of groups
  /// are refined iteratively, with exact residuals. Complexity: types^2.
  [[nodiscard]] std::vector<std::uint64_t> whole_groups(
      std::span<std::uint64_t const> counts) const {
    std::size_t const types = size();
    std::vector<std::int64_t> groups(types, 0);
    std::vector<int128> missing(types);
    for (int round = 0; round != 8; ++round) {
      for (std::size_t i = 0; i != types; ++i) missing[i] = static_cast<int128>(counts[i]);
      for (std::size_t row = 0; row != types; ++row) {
        for (pattern_entry const entry : basis_[row]) {
          missing[entry.type] -= static_cast<int128>(groups[row]) * entry.count;
        }
      }
      for (std::size_t row = 0; row != types; ++row) {
        float const* const line = inverse_.data() + row * types;
        double sum = 0.0;
        for (std::size_t i = 0; i != types; ++i) {
          sum += static_cast<double>(line[i]) * static_cast<double>(static_cast<float>(missing[i]));
        }
        groups[row] = nearest(groups[row], sum);
      }
    }
    std::vector<std::uint64_t> left(counts.begin(), counts.end());
    std::vector<std::uint64_t> result(types, 0);
    for (std::size_t row = 0; row != types; ++row) {
      std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
      for (pattern_entry const entry : basis_[row]) {
        most = std::min(most, left[entry.type] / entry.count);
      }
      if (groups[row] > 0) result[row] = std::min(most, static_cast<std::uint64_t>(groups[row]));
      for (pattern_entry const entry : basis_[row]) left[entry.type] -= result[row] * entry.count;
    }
    return result;
  }

  /// Replaces a pattern of the basis by `entering`. Returns false if no pattern may leave the
  /// basis.
  bool enter(pattern const& entering) {
    multiply(entering);
    std::size_t const leaving = leaving_row();
    if (leaving == size()) return false;
    replace(leaving);
    basis_[leaving] = entering;
    correct_prices();
    if (++changes_ % changes_between_inversions == 0) invert();
    return true;
  }

 private:
  [[nodiscard]] static float perturbed(std::uint64_t count, std::size_t type) {
    // The high bits of multiples of an odd number of 32 bits are spread evenly.
    std::uint32_t const spread = static_cast<std::uint32_t>(type) * 0x9e3779b9U >> 22;
    // The largest relative increase of a count by the perturbation.
    constexpr float largest_share = 1.0F / 8192;
    float const share = static_cast<float>(spread) * (largest_share / 1024);
    return static_cast<float>(count) * (1.0F + share);
  }

  /// Returns the integer that is nearest to a sum, within 2^62 of zero and even if the second
  /// number is not one.
  [[nodiscard]] static std::int64_t nearest(std::int64_t groups, double more) {
    constexpr std::int64_t most = std::int64_t{1} << 61;
    double const rounded = std::floor(more + 0.5);
    if (!(rounded > static_cast<double>(-most))) return std::max(groups, std::int64_t{0}) - most;
    if (rounded >= static_cast<double>(most)) return std::min(groups, std::int64_t{0}) + most;
    return std::clamp(groups + static_cast<std::int64_t>(rounded), -2 * most, 2 * most);
  }

  /// Returns the row whose groups reach zero first when the groups of the column grow. Among equal
  /// rows, returns the row with the largest entry in the column, and then the lowest row.
  [[nodiscard]] std::size_t leaving_row() const {
    std::size_t best = size();
    float best_ratio = 0.0F;
    for (std::size_t row = 0; row != size(); ++row) {
      if (column_[row] < min_pivot) continue;
      float const ratio = std::max(groups_[row], 0.0F) / column_[row];
      bool const is_better = best == size() || ratio < best_ratio ||
                             (ratio == best_ratio && column_[row] > column_[best]);
      if (!is_better) continue;
      best = row;
      best_ratio = ratio;
    }
    return best;
  }

  /// Sets the column to the pattern times the inverse.
  void multiply(pattern const& of) {
    std::size_t const types = size();
    for (std::size_t row = 0; row != types; ++row) {
      double sum = 0.0;
      float const* const line = inverse_.data() + row * types;
      for (pattern_entry const entry : of) {
        sum += static_cast<double>(line[entry.type]) * static_cast<double>(entry.count);
      }
      column_[row] = static_cast<float>(sum);
    }
  }

  /// Pivots on the row `leaving` of the column: updates the inverse and the groups.
  void replace(std::size_t leaving) {
    std::size_t const types = size();
    float* const pivot = inverse_.data() + leaving * types;
    float const divisor = column_[leaving];
    for (std::size_t i = 0; i != types; ++i) pivot[i] /= divisor;
    groups_[leaving] = std::max(groups_[leaving], 0.0F) / divisor;
    for (std::size_t row = 0; row != types; ++row) {
      float const factor = column_[row];
      if (row == leaving || factor == 0.0F) continue;
      float* const line = inverse_.data() + row * types;
      for (std::size_t i = 0; i != types; ++i) {
        line[i] = static_cast<float>(static_cast<double>(line[i]) -
                                     static_cast<double>(factor) * static_cast<double>(pivot[i]));
      }
      groups_[row] =
          static_cast<float>(static_cast<double>(groups_[row]) -
                             static_cast<double>(factor) * static_cast<double>(groups_[leaving]));
    }
  }

  /// Returns the price as an integer whose absolute value is at most the price of eight groups,
  /// even if the price is not a number.
  [[nodiscard]] static std::int64_t limited(double price) {
    constexpr std::int64_t most = 8 * one;
    if (!(price > static_cast<double>(-most))) return -most;
    return price < static_cast<double>(most) ? static_cast<std::int64_t>(price) : most;
  }

  /// Refines prices iteratively until the patterns of the basis are worth `one`, in at most four
  /// rounds.
  void correct_prices() {
    constexpr std::int64_t tolerated = one >> 24;
    constexpr std::int64_t most = (std::int64_t{1} << 29) - 1;
    std::size_t const types = size();
    for (int round = 0; round != 4; ++round) {
      std::fill(corrections_.begin(), corrections_.end(), 0.0);
      bool is_exact = true;
      for (std::size_t row = 0; row != types; ++row) {
        std::int64_t const residual = std::clamp(one - worth(basis_[row]), -most, most);
        if (residual <= tolerated && residual >= -tolerated) continue;
        is_exact = false;
        float const* const line = inverse_.data() + row * types;
        auto const factor = static_cast<double>(residual);
        for (std::size_t i = 0; i != types; ++i) {
          corrections_[i] += factor * static_cast<double>(line[i]);
        }
      }
      if (is_exact) return;
      for (std::size_t i = 0; i != types; ++i) {
        prices_[i] = limited(static_cast<double>(prices_[i]) + corrections_[i]);
      }
    }
  }

  /// Recomputes the inverse. Starts from a basis of patterns that each hold a single sample, and
  /// enters the patterns of the basis one after the other.
  void invert() {
    std::size_t const types = size();
    std::vector<pattern> patterns;
    patterns.swap(basis_);
    basis_.clear();
    std::fill(inverse_.begin(), inverse_.end(), 0.0F);
    for (std::size_t i = 0; i != types; ++i) {
      inverse_[i * types + i] = 1.0F;
      basis_.push_back({{static_cast<std::uint32_t>(i), 1}});
    }
    std::vector<char> is_taken(types, 0);
    for (pattern& next : patterns) {
      multiply(next);
      std::size_t best = types;
      for (std::size_t row = 0; row != types; ++row) {
        if (is_taken[row] != 0) continue;
        if (best == types || std::abs(column_[row]) > std::abs(column_[best])) best = row;
      }
      if (std::abs(column_[best]) < min_pivot) continue;
      replace(best);
      is_taken[best] = 1;
      basis_[best] = std::move(next);
    }
    std::fill(groups_.begin(), groups_.end(), 0.0F);
    correct_groups();
    correct_groups();
    correct_prices();
  }

  /// Refines the groups as `correct_prices` refines prices, so that they hold all samples.
  void correct_groups() {
    std::size_t const types = size();
    std::fill(corrections_.begin(), corrections_.end(), 0.0);
    for (std::size_t row = 0; row != types; ++row) {
      for (pattern_entry const entry : basis_[row]) {
        corrections_[entry.type] +=
            static_cast<double>(groups_[row]) * static_cast<double>(entry.count);
      }
    }
    for (std::size_t i = 0; i != types; ++i) {
      column_[i] = static_cast<float>(static_cast<double>(needed_[i]) - corrections_[i]);
    }
    for (std::size_t row = 0; row != types; ++row) {
      auto sum = static_cast<double>(groups_[row]);
      float const* const line = inverse_.data() + row * types;
      for (std::size_t i = 0; i != types; ++i) {
        sum += static_cast<double>(line[i]) * static_cast<double>(column_[i]);
      }
      groups_[row] = static_cast<float>(sum);
    }
  }

  std::size_t types_;
  /// The number of samples of each type, perturbed.
  std::vector<float> needed_;
  std::vector<pattern> basis_;
  /// The inverse of the basis, row by row: a row for each pattern of the basis, a column for each
  /// type.
  std::vector<float> inverse_;
  /// The number of groups that each pattern of the basis fills.
  std::vector<float> groups_;
  std::vector<std::int64_t> prices_;
  std::vector<float> column_;
  std::vector<double> corrections_;
  std::size_t changes_ = 0;
  /// The number of changes of the basis after which the inverse is recomputed.
  static constexpr std::size_t changes_between_inversions = 128;
  static constexpr float min_pivot = 1e-3F;
};

}  // namespace omnibal::inline v0::detail
