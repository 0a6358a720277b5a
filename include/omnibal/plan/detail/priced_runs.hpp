#pragma once

/// \file
/// The least time of a run of layers for any memory, from below, by prices of a byte.

#include <omnibal/config.hpp>
#include <omnibal/plan/detail/transient_levels.hpp>
#include <omnibal/plan/detail/whole_layers.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// At a price of a byte each layer costs its least sum of time and priced bytes, and a run of layers
/// takes no less time than its layers cost less the price of what it may keep. With sums over the
/// layers known for a few prices and each level of transient bytes, that takes no more time for a
/// long run than for a short one.
class priced_runs {
 public:
  explicit priced_runs(whole_layers const& layers) : size_(layers.size()), levels_(layers) {
    choose_prices(layers);
    for (std::size_t k = 0; k != levels_.size(); ++k) add_level(layers, k);
  }

  /// True only if some choices of the layers [first, last) need no more than `room` for the kept bytes
  /// of `in_flight` micro-batches and the transient bytes.
  [[nodiscard]] bool fits(std::size_t first, std::size_t last, std::int64_t room,
                          std::int64_t in_flight) const {
    for (std::size_t k = 0; k != levels_.size() && levels_.most(k) <= room; ++k) {
      if (missing_[at(k, last)] != missing_[at(k, first)]) continue;
      std::int64_t const kept = (room - levels_.most(k)) / in_flight;
      if (fewest_bytes_[at(k, last)] - fewest_bytes_[at(k, first)] <= kept) return true;
    }
    return false;
  }

  /// No choices of the layers [first, last) take less time where `room` holds the kept bytes of
  /// `in_flight` micro-batches and the transient bytes.
  [[nodiscard]] std::int64_t least_time(std::size_t first, std::size_t last, std::int64_t room,
                                        std::int64_t in_flight) const {
    std::int64_t result = no_time;
    for (std::size_t k = 0; k != levels_.size() && levels_[k] <= room; ++k) {
      if (missing_[at(k, last)] != missing_[at(k, first)]) continue;
      std::int64_t const kept = (room - levels_[k]) / in_flight;
      if (fewest_bytes_[at(k, last)] - fewest_bytes_[at(k, first)] > kept) continue;
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
  static constexpr std::size_t most_prices = 16;

  /// Those of which a linear relaxation may be: what the steps of the layers gain for a byte.
  void choose_prices(whole_layers const& layers) {
    prices_.assign(1, 0);
    layer_fronts fronts;
    for (std::size_t l = 0; l != layers.size(); ++l) push_front(layers, l, fronts);
    std::vector<hull_step> steps;
    find_hull_steps(fronts, steps);
    std::vector<hull_step> chosen;
    std::size_t const count = std::min(most_prices, steps.size());
    for (std::size_t i = 0; i != count; ++i) chosen.push_back(steps[i * steps.size() / count]);
    for (hull_step const& step : chosen) {
      shift_ = std::max(shift_, resolution + bits(step.bytes) - bits(step.gain));
    }
    std::int64_t const most_time = layers.most_time();
    if (bits(most_time) + shift_ > most_bits) {
      shift_ = 0;
      return;
    }
    for (hull_step const& step : chosen) {
      int128 const price = (static_cast<int128>(step.gain) << shift_) / step.bytes;
      if (bits(price) + 64 + bits(static_cast<std::int64_t>(size_)) <= most_bits) {
        prices_.push_back(price);
      }
    }
  }

  static void push_front(whole_layers const& layers, std::size_t layer, layer_fronts& fronts) {
    auto const& first = layers[layer].front();
    std::int64_t least = first.time + 1;
    for (auto const& way : layers[layer]) {
      if (way.time >= least) continue;
      least = way.time;
      fronts.push({way.bytes - first.bytes, first.time - way.time, way.index});
    }
    fronts.close();
  }

  void add_level(whole_layers const& layers, std::size_t level) {
    missing_.push_back(0);
    fewest_bytes_.push_back(0);
    for (std::size_t l = 0; l != size_; ++l) {
      auto const admitted = [&](whole_choice const& way) {
        return levels_.level_of(way.transient_bytes) <= level;
      };
      // Choices come by ascending bytes.
      auto const fewest = std::ranges::find_if(layers[l], admitted);
      bool const is_missing = fewest == layers[l].end();
      missing_.push_back(missing_.back() + (is_missing ? 1 : 0));
      fewest_bytes_.push_back(fewest_bytes_.back() + (is_missing ? 0 : fewest->bytes));
    }
    for (int128 const price : prices_) {
      costs_.push_back(0);
      for (std::size_t l = 0; l != size_; ++l) {
        int128 least = -1;
        for (auto const& way : layers[l]) {
          if (levels_.level_of(way.transient_bytes) > level) continue;
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
  static constexpr int most_bits = 124;

  std::size_t size_;
  transient_levels levels_;
  int shift_ = 0;
  std::vector<int128> prices_;
  std::vector<std::uint32_t> missing_;
  std::vector<int128> fewest_bytes_;
  std::vector<int128> costs_;
};

}  // namespace omnibal::inline v0::detail
