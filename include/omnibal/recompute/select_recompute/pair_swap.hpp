// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Swaps of the choices of two layers.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/pareto_fronts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A local search that exchanges the points of one layer or of two layers. Nearly equal layers have
/// slightly different points. If there are many of them, some pair of exchanges fills nearly the
/// whole budget.
class pair_swap {
 public:
  /// Applies the best pair of exchanges repeatedly, until no pair gains. `room` is the unused part
  /// of the budget. Returns the total gain.
  [[nodiscard]] std::int64_t run(pareto_fronts const& fronts, std::int64_t room,
                                 std::span<std::uint32_t> points) {
    std::int64_t gain = 0;
    for (;;) {
      auto const pair = best_pair(fronts, room, points);
      if (pair[0].gain + pair[1].gain <= 0) return gain;
      for (exchange const& one : pair) {
        gain += one.gain;
        room -= one.bytes;
        if (one.layer != nowhere) points[one.layer] = one.point;
      }
    }
  }

 private:
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

  /// The exchange of the point of a layer, with the additional bytes and gain.
  struct exchange {
    std::int64_t bytes;
    std::int64_t gain;
    std::uint32_t layer;
    std::uint32_t point;
  };

  /// Returns the two exchanges that fit and gain most together. If no exchange gains, both change
  /// nothing.
  [[nodiscard]] std::array<exchange, 2> best_pair(pareto_fronts const& fronts, std::int64_t room,
                                                  std::span<std::uint32_t const> points) {
    list_exchanges(fronts, points);
    std::array<exchange, 2> result{};
    std::int64_t most = 0;
    std::size_t fitting = by_bytes_.size();
    for (sort_key const& key : by_bytes_) {
      while (fitting != 0 &&
             static_cast<int128>(key.number) + by_bytes_[fitting - 1].number > room) {
        --fitting;
      }
      if (fitting == 0) break;
      exchange const& one = exchanges_[key.place];
      exchange const& other = exchanges_[best_[fitting - 1]];
      if (other.layer == one.layer || one.gain + other.gain <= most) continue;
      most = one.gain + other.gain;
      result = {one, other};
    }
    return result;
  }

  /// Lists all exchanges and sorts them by bytes. The list includes an exchange that changes
  /// nothing.
  void list_exchanges(pareto_fronts const& fronts, std::span<std::uint32_t const> points) {
    exchanges_.clear();
    exchanges_.push_back({0, 0, nowhere, 0});
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      auto const front = fronts[layer];
      front_point const& taken = front[points[layer]];
      for (std::uint32_t p = 0; p != front.size(); ++p) {
        if (p == points[layer]) continue;
        exchanges_.push_back({front[p].bytes - taken.bytes, front[p].gain - taken.gain, layer, p});
      }
    }
    by_bytes_.clear();
    for (exchange const& one : exchanges_) by_bytes_.push_back({one.bytes, by_bytes_.size()});
    sort_keys(by_bytes_);
    best_.clear();
    for (sort_key const& key : by_bytes_) {
      bool const is_best =
          best_.empty() || exchanges_[key.place].gain > exchanges_[best_.back()].gain;
      best_.push_back(is_best ? key.place : best_.back());
    }
  }

  std::vector<exchange> exchanges_;
  std::vector<sort_key> by_bytes_;
  /// For each place in the order by bytes, the exchange with the largest gain up to this place.
  std::vector<std::size_t> best_;
};

}  // namespace omnibal::inline v0::detail
