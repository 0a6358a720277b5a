#pragma once

/// \file
/// The best solution at a price of which the counts are given.

#include <omnibal/config.hpp>
#include <omnibal/recompute/detail/byte_prices.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Gives each point of a kind to the layers that lose least by it.
class counted_solution {
 public:
  void begin(layer_fronts const& fronts, byte_prices const& prices, int128 price,
             std::int64_t budget) {
    fronts_ = &fronts;
    prices_ = &prices;
    price_ = price;
    bound_ = price * budget;
    bytes_ = 0;
    points_.assign(fronts.size(), 0);
  }

  void take(std::uint32_t layer, std::uint32_t point) {
    front_point const& taken = (*fronts_)[layer][point];
    points_[layer] = point;
    bytes_ += taken.bytes;
    bound_ += prices_->surplus(taken, price_);
  }

  /// `numbers[p]` of these layers take point p. `ranked_points` are the main point, the second one
  /// and rare ones, as in `kind_counts`.
  void take_counted(std::span<std::uint32_t const> layers,
                    std::span<std::uint32_t const> ranked_points,
                    std::span<std::uint32_t const> numbers) {
    std::uint32_t const main = ranked_points[0];
    std::uint32_t const second = ranked_points[1];
    seconds_.clear();
    for (std::uint32_t const layer : layers) {
      int128 const surplus = surplus_of(layer, main);
      bound_ += surplus;
      seconds_.push_back({surplus - surplus_of(layer, second), layer});
    }
    std::sort(seconds_.begin(), seconds_.end());
    std::size_t const count = numbers[second];
    for (std::size_t i = 0; i != count; ++i) bound_ -= seconds_[i].loss;
    int128 const place = seconds_[std::min(count, layers.size() - 1)].loss;

    for (std::uint32_t const layer : layers) points_[layer] = main;
    for (std::uint32_t const rare : ranked_points.subspan(2)) {
      if (numbers[rare] != 0) take_rare(layers, ranked_points, rare, numbers[rare], place);
    }
    std::size_t left = count;
    for (layer_loss const& one : seconds_) {
      if (left == 0) break;
      if (points_[one.layer] != main) continue;
      points_[one.layer] = second;
      --left;
    }
    for (std::uint32_t const layer : layers) bytes_ += (*fronts_)[layer][points_[layer]].bytes;
  }

  /// No solution with these counts gains more.
  [[nodiscard]] int128 bound() const { return bound_; }
  [[nodiscard]] int128 bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  struct layer_loss {
    int128 loss;
    std::uint32_t layer;

    [[nodiscard]] friend bool operator<(layer_loss const& left, layer_loss const& right) {
      return left.loss != right.loss ? left.loss < right.loss : left.layer < right.layer;
    }
  };

  [[nodiscard]] int128 surplus_of(std::uint32_t layer, std::uint32_t point) const {
    return prices_->surplus((*fronts_)[layer][point], price_);
  }

  void take_rare(std::span<std::uint32_t const> layers,
                 std::span<std::uint32_t const> ranked_points, std::uint32_t rare,
                 std::uint32_t number, int128 place) {
    std::uint32_t const main = ranked_points[0];
    std::uint32_t const second = ranked_points[1];
    rare_.clear();
    for (std::uint32_t const layer : layers) {
      int128 const common = std::max(surplus_of(layer, main), surplus_of(layer, second) + place);
      rare_.push_back({common - surplus_of(layer, rare), layer});
    }
    std::sort(rare_.begin(), rare_.end());
    for (std::uint32_t i = 0; i != number; ++i) bound_ -= rare_[i].loss;
    for (layer_loss const& one : rare_) {
      if (number == 0) return;
      if (points_[one.layer] != main) continue;
      points_[one.layer] = rare;
      --number;
    }
  }

  layer_fronts const* fronts_ = nullptr;
  byte_prices const* prices_ = nullptr;
  int128 price_ = 0;
  int128 bound_ = 0;
  int128 bytes_ = 0;
  std::vector<std::uint32_t> points_;
  std::vector<layer_loss> seconds_;
  std::vector<layer_loss> rare_;
};

}  // namespace omnibal::inline v0::detail
