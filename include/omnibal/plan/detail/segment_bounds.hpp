// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the times of consecutive layers.

#include <omnibal/config.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/min_memory.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/detail/transient_levels.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Lower bounds of the times of consecutive layers, called a run. For a given price of a byte, the
/// cost of a layer is its smallest sum of time and priced bytes. The time of a run is at least the
/// cost of its layers minus the price of the bytes that the run may keep. The bound uses sums over
/// the layers for a few prices and for each level of transient bytes. Therefore the bound of a long
/// run needs no more operations than the bound of a short run.
class segment_bounds {
 public:
  explicit segment_bounds(integer_layers const& layers)
      : size_(layers.size()), levels_(layers.transient_bytes()), fewest_(layers, levels_.most) {
    choose_prices(layers);
    for (std::size_t k = 0; k != levels_.size(); ++k) add_level(layers, k);
  }

  /// True only if some choices of the layers require at most `room` bytes, kept and transient bytes
  /// together.
  [[nodiscard]] bool fits(std::size_t first, std::size_t last, std::int64_t room,
                          std::int64_t in_flight) const {
    for (std::size_t k = 0; k != levels_.size() && levels_.most[k] <= room; ++k) {
      if (!fewest_.exist(k, first, last)) continue;
      if (fewest_(k, first, last) <= (room - levels_.most[k]) / in_flight) return true;
    }
    return false;
  }

  /// A lower bound of the time of the layers if their kept and transient bytes are at most `room`.
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last, std::int64_t room,
                                      std::int64_t in_flight) const {
    std::int64_t result = no_time;
    for (std::size_t k = 0; k != levels_.size() && levels_.least[k] <= room; ++k) {
      if (!fewest_.exist(k, first, last)) continue;
      std::int64_t const kept = (room - levels_.least[k]) / in_flight;
      if (fewest_(k, first, last) > kept) continue;
      int128 time = 0;
      for (std::size_t m = 0; m != prices_.size(); ++m) {
        std::size_t const row = k * prices_.size() + m;
        time = std::max(time, costs_[at(row, last)] - costs_[at(row, first)] - prices_[m] * kept);
      }
      result = std::min(result, static_cast<std::int64_t>(-(-time >> shift_)));
    }
    return result;
  }

 private:
  static constexpr std::size_t max_prices = 16;

  /// Chooses prices near the optimal prices of the linear relaxations: the time that a step between
  /// two choices saves for each additional byte.
  void choose_prices(integer_layers const& layers) {
    prices_.assign(1, 0);
    pareto_fronts fronts;
    for (std::size_t l = 0; l != layers.size(); ++l) push_front(layers, l, fronts);
    std::vector<hull_step> steps;
    find_hull_steps(fronts, steps);
    std::vector<hull_step> chosen;
    std::size_t const count = std::min(max_prices, steps.size());
    for (std::size_t i = 0; i != count; ++i) chosen.push_back(steps[i * steps.size() / count]);
    for (hull_step const& step : chosen) {
      shift_ = std::max(shift_, resolution + bits(step.bytes) - bits(step.gain));
    }
    std::int64_t const max_time = layers.max_time();
    if (bits(max_time) + shift_ > max_bits) {
      shift_ = 0;
      return;
    }
    for (hull_step const& step : chosen) {
      int128 const price = (static_cast<int128>(step.gain) << shift_) / step.bytes;
      if (bits(price) + 64 + bits(static_cast<std::int64_t>(size_)) <= max_bits) {
        prices_.push_back(price);
      }
    }
  }

  static void push_front(integer_layers const& layers, std::size_t layer, pareto_fronts& fronts) {
    auto const& first = layers[layer].front();
    std::int64_t least = first.time + 1;
    for (auto const& way : layers[layer]) {
      if (way.time >= least) continue;
      least = way.time;
      fronts.push({way.bytes - first.bytes, first.time - way.time, way.index});
    }
    fronts.close();
  }

  void add_level(integer_layers const& layers, std::size_t level) {
    for (int128 const price : prices_) {
      costs_.push_back(0);
      for (std::size_t l = 0; l != size_; ++l) {
        int128 least = -1;
        for (auto const& way : layers[l]) {
          if (way.transient_bytes > levels_.most[level]) continue;
          int128 const cost = (static_cast<int128>(way.time) << shift_) + price * way.bytes;
          if (least < 0 || cost < least) least = cost;
        }
        costs_.push_back(costs_.back() + std::max<int128>(least, 0));
      }
    }
  }

  [[nodiscard]] std::size_t at(std::size_t row, std::size_t layer) const {
    return row * (size_ + 1) + layer;
  }
  [[nodiscard]] static int bits(int128 value) {
    auto const high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                     : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  }

  static constexpr int resolution = 24;
  static constexpr int max_bits = 124;

  std::size_t size_;
  transient_levels levels_;
  min_bytes fewest_;
  int shift_ = 0;
  std::vector<int128> prices_;
  std::vector<int128> costs_;
};

}  // namespace omnibal::inline v0::detail
