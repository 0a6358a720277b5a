#pragma once

/// \file
/// What each choice of a layer loses at several prices of a byte.

#include <omnibal/config.hpp>
#include <omnibal/recompute/detail/byte_prices.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// One number for each price.
using price_losses = std::array<std::int64_t, byte_prices::count>;

/// True where a loss is above the slack at some price.
[[nodiscard]] inline bool exceeds(price_losses const& losses, price_losses const& slack) {
  bool result = false;
  for (std::size_t m = 0; m != losses.size(); ++m) result |= losses[m] > slack[m];
  return result;
}

inline void add_losses(price_losses& sum, price_losses const& losses) {
  for (std::size_t m = 0; m != sum.size(); ++m) sum[m] += losses[m];
}

/// At any price, a solution gains the surplus of the best points plus the price of the budget at
/// most, less what its points lose against the best ones. So one that gains more than a known
/// solution loses no more than a slack, whatever the price; points that lose more alone are out.
/// Losses are rounded down and slacks up, in a unit that lets any sum of losses fit 64 bits.
class loss_table {
 public:
  struct fixed_layer {
    std::uint32_t layer;
    std::uint32_t point;
  };

  /// False where no solution gains more than `known`.
  [[nodiscard]] bool fill(layer_fronts const& fronts, std::int64_t budget,
                          byte_prices const& prices, std::int64_t known) {
    find_best(fronts, budget, prices, known);
    if (*std::min_element(wide_slack_.begin(), wide_slack_.end()) < 0) return false;
    set_unit(fronts.size());
    starts_.clear();
    losses_.clear();
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      starts_.push_back(losses_.size());
      for (std::size_t p = 0; p != fronts[layer].size(); ++p) {
        losses_.push_back(losses_of(best_[layer], surpluses_[losses_.size()]));
      }
    }
    starts_.push_back(losses_.size());
    return fix_layers();
  }

  /// Layers with several points that are not out yet.
  [[nodiscard]] std::span<std::uint32_t const> free_layers() const { return free_; }
  /// The other layers. What they lose is already taken from the slack.
  [[nodiscard]] std::span<fixed_layer const> fixed_layers() const { return fixed_; }
  [[nodiscard]] price_losses const& slack() const { return slack_; }
  /// Of the points of a layer.
  [[nodiscard]] std::span<price_losses const> operator[](std::uint32_t layer) const {
    return std::span(losses_).subspan(starts_[layer], starts_[layer + 1] - starts_[layer]);
  }
  /// No solution of which the points lose this much less than the slack gains more than the result
  /// beyond the known one.
  [[nodiscard]] int128 gain_of(std::int64_t unused_slack) const {
    return (static_cast<int128>(unused_slack) + 1) << unit_;
  }

 private:
  using wide_losses = std::array<int128, byte_prices::count>;

  void find_best(layer_fronts const& fronts, std::int64_t budget, byte_prices const& prices,
                 std::int64_t known) {
    best_.clear();
    wide_losses known_prices;
    for (std::size_t m = 0; m != byte_prices::count; ++m) {
      known_prices[m] = prices[m];
      wide_slack_[m] = known_prices[m] * budget - prices.scaled(known) - prices.scaled(1);
    }
    surpluses_.clear();
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      wide_losses best{};
      for (front_point const& point : fronts[layer]) {
        int128 const gain = prices.scaled(point.gain);
        auto& surplus = surpluses_.emplace_back();
        for (std::size_t m = 0; m != byte_prices::count; ++m) {
          surplus[m] = gain - known_prices[m] * point.bytes;
          best[m] = std::max(best[m], surplus[m]);
        }
      }
      best_.push_back(best);
      for (std::size_t m = 0; m != byte_prices::count; ++m) wide_slack_[m] += best[m];
    }
  }

  void set_unit(std::size_t layers) {
    int128 const most = *std::max_element(wide_slack_.begin(), wide_slack_.end());
    int const room = 61 - static_cast<int>(std::bit_width(layers));
    unit_ = 0;
    while (most >> unit_ >> room != 0) ++unit_;
    above_ = static_cast<std::int64_t>(most >> unit_) + 1;
    for (std::size_t m = 0; m != slack_.size(); ++m) {
      slack_[m] = static_cast<std::int64_t>(wide_slack_[m] >> unit_);
    }
  }

  [[nodiscard]] price_losses losses_of(wide_losses const& best, wide_losses const& surplus) const {
    price_losses result;
    for (std::size_t m = 0; m != result.size(); ++m) {
      int128 const loss = (best[m] - surplus[m]) >> unit_;
      result[m] = loss < above_ ? static_cast<std::int64_t>(loss) : above_;
    }
    return result;
  }

  [[nodiscard]] bool fix_layers() {
    free_.clear();
    fixed_.clear();
    price_losses const slack = slack_;
    for (std::uint32_t layer = 0; layer + 1 != starts_.size(); ++layer) {
      std::size_t left = 0;
      std::uint32_t last = 0;
      for (std::uint32_t point = 0; point != (*this)[layer].size(); ++point) {
        if (exceeds((*this)[layer][point], slack)) continue;
        ++left;
        last = point;
      }
      if (left == 0) return false;
      if (left > 1) {
        free_.push_back(layer);
        continue;
      }
      fixed_.push_back({layer, last});
      for (std::size_t m = 0; m != slack_.size(); ++m) slack_[m] -= (*this)[layer][last][m];
    }
    return *std::min_element(slack_.begin(), slack_.end()) >= 0;
  }

  int unit_ = 0;
  std::int64_t above_ = 0;
  wide_losses wide_slack_{};
  price_losses slack_{};
  /// Of layers and of points.
  std::vector<wide_losses> best_;
  std::vector<wide_losses> surpluses_;
  std::vector<std::size_t> starts_;
  std::vector<price_losses> losses_;
  std::vector<std::uint32_t> free_;
  std::vector<fixed_layer> fixed_;
};

}  // namespace omnibal::inline v0::detail
