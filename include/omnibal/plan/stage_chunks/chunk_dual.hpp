// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the steps and of the missing memory of stages with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/priced_cuts.hpp>
#include <omnibal/plan/stage_chunks/scaled_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The Lagrangian dual of the loads and the memory of stages. A convex combination of the loads is
/// at most the largest load, and each byte above the memory costs a price. With given weights of
/// the stages and prices of their bytes, the costs of layers on virtual stages are independent.
/// Therefore `priced_cuts` finds the cuts with the least cost.
class chunk_dual {
 public:
  chunk_dual(chunk_problem const& problem, chunk_choices const& choices)
      : problem_(problem), memory_(problem, choices), cuts_(problem, memory_) {
    now_ = {.weights = std::vector<int128>(stages(), 0),
            .prices = std::vector<int128>(stages(), 0)};
  }
  /// Not copyable, because `cuts_` refers to `memory_`.
  chunk_dual(chunk_dual const&) = delete;
  chunk_dual& operator=(chunk_dual const&) = delete;

  /// Returns a lower bound of `weight * largest load + sum of the loads`. Evaluates at most
  /// `rounds` price vectors, and stops when the bound reaches `known`. A bisection first finds even
  /// prices, with which a layer costs the same on all stages on average. Then the subgradient
  /// method moves the weights and prices of single stages.
  [[nodiscard]] int128 min_step(int128 weight, int128 known, std::size_t rounds) {
    auto const count = static_cast<int128>(stages());
    total_ = weight * unit;
    known_ = known;
    best_bound_ = 0;
    now_.weights.assign(stages(), unit + total_ / count);
    now_.weights[0] += total_ - total_ / count * count;
    std::size_t const even = rounds - rounds / 2;
    if (find_even_prices(even) && best_bound_ < known) move_prices(rounds - even);
    return best_bound_;
  }

  /// Returns a lower bound of the largest shortfall of a stage in bytes; zero if no positive bound
  /// was found.
  [[nodiscard]] int128 min_missing(std::size_t rounds) {
    std::ranges::fill(now_.weights, 0);
    std::ranges::fill(now_.prices, unit);
    int128 best = 0;
    for (std::size_t round = 0; round != rounds; ++round) {
      int128 const cost = cuts_.run(now_);
      if (cost == priced_cuts::no_cuts) return best;
      int128 slack = 0;
      int128 divisor = 0;
      for (std::size_t s = 0; s != stages(); ++s) {
        slack += now_.prices[s];
        divisor += now_.prices[s] * memory_.moments(s);
      }
      // The bytes and the memory of each stage were rounded by less than one unit.
      if (cost > slack) best = std::max(best, unscaled_quotient(cost - slack, divisor));
      raise_missing_prices();
    }
    return best;
  }

  /// Returns the cuts of the best bound.
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return best_boundaries_; }

 private:
  /// The fixed-point unit of the weights of stages.
  static constexpr int128 unit = 1 << 10;
  static constexpr int128 max_price = static_cast<int128>(1) << 68;

  [[nodiscard]] std::size_t stages() const { return problem_.stages(); }

  /// Returns scaled bytes / divisor, converted to bytes and rounded down a little.
  [[nodiscard]] int128 unscaled_quotient(int128 bytes, int128 divisor) const {
    int const bits = std::min(memory_.shift(), 60);
    return (bytes << bits) / divisor << (memory_.shift() - bits);
  }

  /// Raises the best bound to the bound of the current weights and prices. Returns false if there
  /// are no cuts.
  [[nodiscard]] bool raise_bound() {
    int128 const cost = cuts_.run(now_);
    if (cost == priced_cuts::no_cuts) return false;
    cost_ = cost;
    int128 const bound = ceiled_quotient(cost, unit);
    if (bound > best_bound_) {
      best_bound_ = bound;
      best_boundaries_ = cuts_.boundaries();
      best_prices_ = now_.prices;
    }
    return true;
  }

  /// Finds the even prices with the best bound. Returns false if there are no cuts.
  [[nodiscard]] bool find_even_prices(std::size_t rounds) {
    std::vector<int128> units(stages(), 1);
    for (std::size_t v = 0; v != problem_.virtual_stages(); ++v) {
      units[problem_.places.stage[v]] += memory_.units(v);
    }
    int128 const most = *std::ranges::max_element(units);
    now_.prices.assign(stages(), 0);
    if (!raise_bound()) return false;
    best_prices_ = now_.prices;
    int128 low = 0;
    int128 high = 0;
    int128 price = std::max<int128>(known_ * unit >> scaled_memory::byte_bits, 1);
    for (std::size_t round = 1; round < rounds && best_bound_ < known_; ++round) {
      for (std::size_t s = 0; s != stages(); ++s) {
        now_.prices[s] = std::min(price * most / units[s], max_price);
      }
      static_cast<void>(raise_bound());
      int128 over = 0;
      for (std::size_t s = 0; s != stages(); ++s) over += cuts_.excess(s) * most / units[s];
      (over > 0 ? low : high) = price;
      price = high == 0 ? std::min(4 * price, max_price) : low + (high - low) / 2;
      if (price == low || price == high) break;
    }
    now_.prices = best_prices_;
    static_cast<void>(raise_bound());
    return true;
  }

  /// Moves weights and prices by the subgradient method. The direction is an average over the last
  /// solutions, because a single solution puts most layers on a few stages.
  void move_prices(std::size_t rounds) {
    std::vector<int128> mean_loads = cuts_.loads();
    std::vector<int128> mean_used = cuts_.used();
    int128 slowness = 2;
    for (std::size_t round = 0; round < rounds && best_bound_ < known_; ++round) {
      move_byte_prices(mean_used, std::max<int128>(known_ * unit - cost_, unit) / slowness);
      move_weights(mean_loads, 2 * slowness);
      int128 const before = best_bound_;
      static_cast<void>(raise_bound());
      if (best_bound_ == before && round % 4 == 3) slowness *= 2;
      for (std::size_t s = 0; s != stages(); ++s) {
        mean_loads[s] += (cuts_.loads()[s] - mean_loads[s]) / 4;
        mean_used[s] += (cuts_.used()[s] - mean_used[s]) / 4;
      }
    }
  }

  /// Moves the prices of bytes along the subgradient. The step length would close a part of `gap`.
  void move_byte_prices(std::vector<int128> const& used, int128 gap) {
    int128 squares = 0;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = used[s] - memory_.room(s);
      if (over > 0 || now_.prices[s] != 0) squares += over * over;
    }
    for (std::size_t s = 0; s != stages() && squares != 0; ++s) {
      int128 const over = used[s] - memory_.room(s);
      int128& price = now_.prices[s];
      if (over == 0 || (over < 0 && price == 0)) continue;
      int128 const ratio = std::max<int128>(squares / (over < 0 ? -over : over), 1);
      int128 const step = std::min(gap / ratio, max_price);
      price = std::clamp<int128>(price + (over < 0 ? -step : step), 0, max_price);
    }
  }

  /// Moves weight toward the stages with the largest loads; the sum of the weights does not change.
  void move_weights(std::vector<int128> const& loads, int128 slowness) {
    int128 sum = 0;
    for (int128 const load : loads) sum += load;
    int128 const part = std::max<int128>(sum / static_cast<int128>(stages()) / 256, 1);
    std::vector<int128> shares(stages());
    int128 all = 0;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = std::clamp<int128>(loads[s] / part - 256, -256, 256);
      int128 const share = now_.weights[s] - unit;
      shares[s] = share + share / 256 * over / slowness;
      all += shares[s];
    }
    if (all == 0) return;
    int128 rest = total_;
    for (std::size_t s = 0; s != stages(); ++s) {
      shares[s] = shares[s] * total_ / all;
      rest -= shares[s];
    }
    shares[0] += rest;
    for (std::size_t s = 0; s != stages(); ++s) now_.weights[s] = unit + shares[s];
  }

  /// Moves prices toward the stages that exceed their memory most.
  void raise_missing_prices() {
    int128 largest = 1;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = cuts_.excess(s);
      largest = std::max(largest, over < 0 ? -over : over);
    }
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const change = now_.prices[s] * cuts_.excess(s) / (3 * largest);
      now_.prices[s] = std::clamp<int128>(now_.prices[s] + change, 1, unit * unit);
    }
  }

  chunk_problem const& problem_;
  scaled_memory memory_;
  priced_cuts cuts_;
  /// The current weights and prices, and the cost of the last cuts.
  stage_prices now_;
  int128 cost_ = 0;
  /// The sum over the stages of the weight above `unit`, and the bound at which the search stops.
  int128 total_ = 0;
  int128 known_ = 0;
  int128 best_bound_ = 0;
  std::vector<std::uint32_t> best_boundaries_;
  std::vector<int128> best_prices_;
};

}  // namespace omnibal::inline v0::detail
