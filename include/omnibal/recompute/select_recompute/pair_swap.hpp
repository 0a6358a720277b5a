#pragma once

/// \file
/// Betters a solution by other points for one layer or for two at once.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Two layers that are nearly equal differ by little, and with many of them some pair of exchanges
/// fills nearly all of the budget.
class pair_swap {
 public:
  /// Exchanges points, each time with the largest gain, while the solution gains by it. `room` is
  /// what it leaves of the budget; the result is the gain.
  [[nodiscard]] std::int64_t run(pareto_fronts const& fronts, std::int64_t room,
                                 std::span<std::uint32_t> points) {
    std::int64_t gain = 0;
    while (find_pair(fronts, room, points)) {
      for (exchange const& one : pair_) {
        gain += one.gain;
        room -= one.bytes;
        if (one.layer != nowhere) points[one.layer] = one.point;
      }
    }
    return gain;
  }

 private:
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

  /// What a layer takes and gains more with another point.
  struct exchange {
    std::int64_t bytes;
    std::int64_t gain;
    std::uint32_t layer;
    std::uint32_t point;
  };

  /// The exchanges with the largest gains up to a number of bytes, of two layers.
  struct best_two {
    std::uint32_t first;
    std::uint32_t second;
  };

  bool find_pair(pareto_fronts const& fronts, std::int64_t room,
                 std::span<std::uint32_t const> points) {
    list_exchanges(fronts, points);
    std::int64_t most = 0;
    std::size_t fitting = exchanges_.size();
    for (exchange const& one : exchanges_) {
      while (fitting != 0 &&
             static_cast<int128>(one.bytes) + exchanges_[fitting - 1].bytes > room) {
        --fitting;
      }
      if (fitting == 0) break;
      best_two const& best = best_[fitting - 1];
      exchange const& first = exchanges_[best.first];
      exchange const& other = first.layer != one.layer ? first : exchanges_[best.second];
      if (other.layer == one.layer || one.gain + other.gain <= most) continue;
      most = one.gain + other.gain;
      pair_[0] = one;
      pair_[1] = other;
    }
    return most > 0;
  }

  /// All exchanges by their bytes, among them two that change nothing.
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
    std::sort(
        exchanges_.begin(), exchanges_.end(), [](exchange const& left, exchange const& right) {
          if (left.bytes != right.bytes) return left.bytes < right.bytes;
          return left.layer != right.layer ? left.layer < right.layer : left.point < right.point;
        });
    best_.clear();
    best_two best{0, 0};
    for (std::uint32_t i = 0; i != exchanges_.size(); ++i) {
      exchange const& one = exchanges_[i];
      exchange const& first = exchanges_[best.first];
      bool const has_second = exchanges_[best.second].layer != first.layer;
      if (one.layer == first.layer) {
        if (one.gain > first.gain) best.first = i;
      } else if (one.gain > first.gain) {
        best = {i, best.first};
      } else if (!has_second || one.gain > exchanges_[best.second].gain) {
        best.second = i;
      }
      best_.push_back(best);
    }
  }

  std::vector<exchange> exchanges_;
  std::vector<best_two> best_;
  exchange pair_[2]{};
};

}  // namespace omnibal::inline v0::detail
