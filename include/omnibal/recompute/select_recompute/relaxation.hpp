#pragma once

/// \file
/// What a byte of the budget is worth.

#include <omnibal/config.hpp>
#include <omnibal/detail/checked_cast.hpp>
#include <omnibal/detail/choice_table.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Takes the steps of all hulls while they fit, then a part of the one that does not.
class hull_relaxation {
 public:
  /// Precondition: each point alone fits the budget.
  void solve(layer_fronts const& fronts, std::int64_t budget) {
    find_hull_steps(fronts, steps_);
    whole_ = 0;
    gain_ = 0;
    std::int64_t room = budget;
    for (; whole_ != steps_.size() && steps_[whole_].bytes <= room; ++whole_) {
      room -= steps_[whole_].bytes;
      gain_ += steps_[whole_].gain;
    }
    bound_ = gain_;
    if (whole_ == steps_.size()) return;
    bound_ += static_cast<std::int64_t>(static_cast<int128>(broken().gain) * room / broken().bytes);
  }

  /// The steepest first.
  [[nodiscard]] std::span<hull_step const> steps() const { return steps_; }
  /// Of the steps that fit.
  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// No solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }
  [[nodiscard]] bool takes_all_steps() const { return whole_ == steps_.size(); }
  /// The step of which a part is taken. Precondition: `!takes_all_steps()`.
  [[nodiscard]] hull_step const& broken() const { return steps_[whole_]; }

  /// The solution of the steps that fit: the point of each layer.
  void write_points(std::size_t layers, std::vector<std::uint32_t>& points) const {
    points.assign(layers, 0);
    for (std::size_t s = 0; s != whole_; ++s) points[steps_[s].layer] = steps_[s].point;
  }

 private:
  std::vector<hull_step> steps_;
  std::size_t whole_ = 0;
  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
};

/// Prices of a byte around that of the linear relaxation. Gains and prices are whole multiples of
/// the same small unit, so that no bound is rounded in the wrong direction.
class byte_prices {
 public:
  static constexpr std::size_t count = 8;
  /// The price of the relaxation.
  static constexpr std::size_t middle = 4;

  /// `broken` is the step of which the relaxation takes a part; `budget` is the largest one that is
  /// priced, and all layers together gain `most_gain` at most. False where the numbers are so large that their products may leave 128 bits.
  [[nodiscard]] bool set(hull_step const& broken, std::size_t layers, std::int64_t budget,
                         std::int64_t most_gain) {
    shift_ = std::max(0, resolution + bits(broken.bytes) - bits(broken.gain));
    price_ = scaled(broken.gain) / broken.bytes;
    int const price_bits = bits(static_cast<std::int64_t>(price_ >> 32)) + 32;
    int const size_bits = bits(static_cast<std::int64_t>(layers));
    return bits(most_gain) + shift_ <= most_bits &&
           price_bits + extreme_bits + bits(budget) + size_bits <= most_bits;
  }

  /// From zero to several times the price of the relaxation.
  [[nodiscard]] int128 operator[](std::size_t index) const { return price_ * eighths[index] / 8; }
  /// A price so high that only exact fits stand it; higher ones may leave 128 bits.
  [[nodiscard]] int128 extreme() const { return price_ << extreme_bits; }

  [[nodiscard]] int128 scaled(std::int64_t gain) const {
    return static_cast<int128>(gain) << shift_;
  }
  /// The largest gain that is no more than this. At a price far from the best one a bound leaves 64
  /// bits by far; the nearest number says as little.
  [[nodiscard]] std::int64_t whole_gain(int128 scaled_gain) const {
    return saturate_cast<std::int64_t>(scaled_gain >> shift_);
  }
  /// The least time that is no less than this.
  [[nodiscard]] std::int64_t whole_time(int128 scaled_time) const {
    return saturate_cast<std::int64_t>(-(-scaled_time >> shift_));
  }
  /// What a point gains beyond the price of its bytes.
  [[nodiscard]] int128 surplus(front_point const& point, int128 price) const {
    return scaled(point.gain) - price * point.bytes;
  }

 private:
  static constexpr int resolution = 24;
  static constexpr int extreme_bits = 20;
  static constexpr int most_bits = 120;
  static constexpr std::array<int, count> eighths{0, 4, 6, 7, 8, 10, 16, 64};

  [[nodiscard]] static int bits(std::int64_t value) {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  }

  int shift_ = 0;
  int128 price_ = 0;
};

}  // namespace omnibal::inline v0::detail
