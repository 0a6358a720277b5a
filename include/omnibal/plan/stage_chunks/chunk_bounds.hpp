// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the steps and of the missing memory of stages with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns a lower bound of the largest load of `stages` stages with these layers: some stage has
/// k + 1 of any stages * k + 1 layers.
[[nodiscard]] inline std::int64_t min_largest_load(std::vector<std::int64_t> times,
                                                   std::size_t stages) {
  std::sort(times.begin(), times.end(), std::greater<>());
  std::vector<int128> before{0};
  for (std::int64_t const time : times) before.push_back(before.back() + time);
  auto const count = static_cast<int128>(stages);
  int128 least = before.back() / count + (before.back() % count != 0 ? 1 : 0);
  for (std::size_t k = 1; k * stages < times.size(); ++k) {
    std::size_t const last = k * stages + 1;
    least = std::max(least, before[last] - before[last - k - 1]);
  }
  return static_cast<std::int64_t>(least);
}

/// The Lagrangian dual of the loads and the memory of stages. A convex combination of the loads is
/// at most the largest one, and bytes above the memory have a price. With given weights of the
/// stages and prices of their bytes each layer has a cost of its own on each virtual stage, so
/// that dynamic programming over the cuts finds the least cost. Constraints on the number of
/// layers are left out. The bytes are the sums over all moments of a peak, without transient bytes.
class chunk_dual {
 public:
  chunk_dual(chunk_problem const& problem, chunk_choices const& choices) : problem_(problem) {
    find_bytes(choices);
    prices_.assign(stages(), 0);
    factors_.assign(stages(), 0);
  }

  /// Returns a lower bound of `weight * largest load + sum of the loads` with `rounds` prices at
  /// most; ends at a bound of `known`. Even prices, which make the same layer as expensive on all
  /// stages on average, are found by bisection. Then the subgradient method moves the weights and
  /// prices of stages.
  [[nodiscard]] int128 min_step(int128 weight, int128 known, std::size_t rounds) {
    auto const count = static_cast<int128>(stages());
    total_ = weight * unit;
    known_ = known;
    best_bound_ = 0;
    factors_.assign(stages(), unit + total_ / count);
    factors_[0] += total_ - total_ / count * count;
    std::size_t const even = rounds - rounds / 2;
    if (find_even_prices(even) && best_bound_ < known) move_prices(rounds - even);
    return best_bound_;
  }

  /// Returns a lower bound of the largest shortfall of a stage; not positive if none is known.
  [[nodiscard]] int128 min_missing(std::size_t rounds) {
    std::fill(factors_.begin(), factors_.end(), 0);
    std::fill(prices_.begin(), prices_.end(), unit);
    int128 best = 0;
    for (std::size_t round = 0; round != rounds; ++round) {
      int128 const cost = run();
      if (cost == no_cuts) return best;
      int128 slack = 0;
      int128 divisor = 0;
      for (std::size_t s = 0; s != stages(); ++s) {
        slack += prices_[s];
        divisor += prices_[s] * moments(s);
      }
      // Bytes and memory were rounded by less than one unit for each stage.
      if (cost > slack) best = std::max(best, shifted(cost - slack, divisor));
      raise_missing_prices();
    }
    return best;
  }

  /// The cuts of the best bound.
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return best_boundaries_; }

 private:
  /// The unit of the weights of stages.
  static constexpr int128 unit = 1 << 10;
  static constexpr int byte_bits = 36;
  static constexpr int128 max_price = static_cast<int128>(1) << 68;
  static constexpr int128 no_cuts = static_cast<int128>(1) << 126;

  [[nodiscard]] std::size_t stages() const { return problem_.stages(); }
  [[nodiscard]] std::size_t virtual_stages() const { return problem_.virtual_stages(); }
  [[nodiscard]] int128 moments(std::size_t stage) const {
    return static_cast<int128>(problem_.budgets.chunks[stage].size());
  }

  /// Returns value * 2^shift_ / divisor or a little less.
  [[nodiscard]] int128 shifted(int128 value, int128 divisor) const {
    int const bits = std::min(shift_, 60);
    return (value << bits) / divisor << (shift_ - bits);
  }

  /// Scales the bytes of all moments so that they fit a few bits.
  void find_bytes(chunk_choices const& choices) {
    for (std::size_t v = 0; v != virtual_stages(); ++v) {
      units_.push_back(choices.unit_sums(problem_.places.stage[v])[problem_.places.chunk[v]]);
    }
    int128 most_units = 1;
    for (int128 const sum : units_) most_units = std::max(most_units, sum);
    int128 most = 0;
    std::int64_t transient = std::numeric_limits<std::int64_t>::max();
    for (std::size_t l = 0; l != problem_.layers.size(); ++l) {
      std::int64_t largest = 0;
      for (auto const& way : problem_.layers[l]) {
        largest = std::max(largest, way.bytes);
        transient = std::min(transient, way.transient_bytes);
      }
      most += most_units * largest + problem_.layers.state_bytes(l, l + 1) * most_moments();
    }
    while (most >> shift_ >= static_cast<int128>(1) << byte_bits) ++shift_;
    if (problem_.layers.size() == 0 || problem_.rules.may_be_empty) transient = 0;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const room =
          static_cast<int128>(problem_.budgets.memory[s]) - problem_.budgets.reserve[s] - transient;
      // No more than `byte_bits` are used.
      constexpr int128 most_room = static_cast<int128>(1) << (byte_bits + 4);
      rooms_.push_back(std::clamp<int128>((room * moments(s)) >> shift_, -most_room, most_room));
    }
  }

  [[nodiscard]] int128 most_moments() const {
    int128 most = 1;
    for (std::size_t s = 0; s != stages(); ++s) most = std::max(most, moments(s));
    return most;
  }

  [[nodiscard]] int128 bytes_of(std::size_t v, std::size_t layer, whole_choice const& way) const {
    int128 const states =
        problem_.layers.state_bytes(layer, layer + 1) * moments(problem_.places.stage[v]);
    return (units_[v] * way.bytes + states) >> shift_;
  }

  /// Returns the least cost of a layer on a virtual stage, and its choice.
  [[nodiscard]] int128 cost_of(std::size_t v, std::size_t layer,
                               whole_choice const*& choice) const {
    std::size_t const stage = problem_.places.stage[v];
    int128 least = no_cuts;
    for (auto const& way : problem_.layers[layer]) {
      int128 cost = factors_[stage] * way.time;
      if (prices_[stage] != 0) cost += prices_[stage] * bytes_of(v, layer, way);
      if (cost >= least) continue;
      least = cost;
      choice = &way;
    }
    return least;
  }

  /// Finds the cuts with the least cost and their loads and bytes. Returns the cost minus the price
  /// of the memory.
  [[nodiscard]] int128 run() {
    std::size_t const width = problem_.layers.size() + 1;
    costs_.assign((virtual_stages() + 1) * width, no_cuts);
    costs_[0] = 0;
    whole_choice const* choice = nullptr;
    for (std::size_t v = 0; v != virtual_stages(); ++v) {
      int128 const* const before = costs_.data() + v * width;
      int128* const after = costs_.data() + (v + 1) * width;
      int128 open = no_cuts;
      std::size_t const begin = problem_.rules.first_cut[v];
      for (std::size_t end = begin; end <= problem_.rules.last_cut[v + 1]; ++end) {
        // `open` is the least cost if virtual stage v has the layer before `end`.
        if (end != begin) {
          int128 const begun = std::min(open, before[end - 1]);
          open = begun == no_cuts ? no_cuts : begun + cost_of(v, end - 1, choice);
        }
        if (problem_.rules.may_cut[end] == 0 || end < problem_.rules.first_cut[v + 1]) continue;
        after[end] = problem_.rules.may_be_empty ? std::min(open, before[end]) : open;
      }
    }
    if (costs_.back() == no_cuts) return no_cuts;
    trace_back();
    int128 cost = costs_.back();
    for (std::size_t s = 0; s != stages(); ++s) cost -= prices_[s] * rooms_[s];
    return cost;
  }

  void trace_back() {
    std::size_t const width = problem_.layers.size() + 1;
    boundaries_.assign(virtual_stages() + 1, 0);
    loads_.assign(stages(), 0);
    used_.assign(stages(), 0);
    std::size_t end = problem_.layers.size();
    for (std::size_t v = virtual_stages(); v-- != 0;) {
      boundaries_[v + 1] = static_cast<std::uint32_t>(end);
      int128 cost = costs_[(v + 1) * width + end];
      if (problem_.rules.may_be_empty && costs_[v * width + end] == cost) continue;
      do {
        whole_choice const* choice = nullptr;
        cost -= cost_of(v, --end, choice);
        loads_[problem_.places.stage[v]] += choice->time;
        used_[problem_.places.stage[v]] += bytes_of(v, end, *choice);
      } while (costs_[v * width + end] != cost);
    }
  }

  /// Raises the best bound by the present weights and prices. Returns false if there are no cuts.
  [[nodiscard]] bool raise_bound() {
    int128 const cost = run();
    if (cost == no_cuts) return false;
    cost_ = cost;
    int128 const bound = cost / unit + (cost % unit > 0 ? 1 : 0);
    if (bound > best_bound_) {
      best_bound_ = bound;
      best_boundaries_ = boundaries_;
      best_prices_ = prices_;
    }
    return true;
  }

  /// Finds the best even prices; returns false if there are no cuts.
  [[nodiscard]] bool find_even_prices(std::size_t rounds) {
    std::vector<int128> units(stages(), 1);
    for (std::size_t v = 0; v != virtual_stages(); ++v)
      units[problem_.places.stage[v]] += units_[v];
    int128 const most = *std::max_element(units.begin(), units.end());
    prices_.assign(stages(), 0);
    if (!raise_bound()) return false;
    best_prices_ = prices_;
    int128 low = 0;
    int128 high = 0;
    int128 price = std::max<int128>(known_ * unit >> byte_bits, 1);
    for (std::size_t round = 1; round < rounds && best_bound_ < known_; ++round) {
      for (std::size_t s = 0; s != stages(); ++s) {
        prices_[s] = std::min(price * most / units[s], max_price);
      }
      static_cast<void>(raise_bound());
      int128 over = 0;
      for (std::size_t s = 0; s != stages(); ++s) {
        over += (used_[s] - rooms_[s]) * most / units[s];
      }
      (over > 0 ? low : high) = price;
      price = high == 0 ? std::min(4 * price, max_price) : low + (high - low) / 2;
      if (price == low || price == high) break;
    }
    prices_ = best_prices_;
    static_cast<void>(raise_bound());
    return true;
  }

  /// Moves weights and prices by the subgradient method. The direction is an average over the last
  /// solutions, because the solutions themselves have most layers on few stages.
  void move_prices(std::size_t rounds) {
    std::vector<int128> mean_loads = loads_;
    std::vector<int128> mean_used = used_;
    int128 slowness = 2;
    for (std::size_t round = 0; round < rounds && best_bound_ < known_; ++round) {
      move_bytes(mean_used, std::max<int128>(known_ * unit - cost_, unit) / slowness);
      move_weights(mean_loads, 2 * slowness);
      int128 const before = best_bound_;
      static_cast<void>(raise_bound());
      if (best_bound_ == before && round % 4 == 3) slowness *= 2;
      for (std::size_t s = 0; s != stages(); ++s) {
        mean_loads[s] += (loads_[s] - mean_loads[s]) / 4;
        mean_used[s] += (used_[s] - mean_used[s]) / 4;
      }
    }
  }

  /// Moves the prices of bytes by a step that would close a part of a gap.
  void move_bytes(std::vector<int128> const& used, int128 gap) {
    int128 squares = 0;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = used[s] - rooms_[s];
      if (over > 0 || prices_[s] != 0) squares += over * over;
    }
    for (std::size_t s = 0; s != stages() && squares != 0; ++s) {
      int128 const over = used[s] - rooms_[s];
      if (over == 0 || (over < 0 && prices_[s] == 0)) continue;
      int128 const ratio = std::max<int128>(squares / (over < 0 ? -over : over), 1);
      int128 const step = std::min(gap / ratio, max_price);
      prices_[s] = std::clamp<int128>(prices_[s] + (over < 0 ? -step : step), 0, max_price);
    }
  }

  /// Moves the weights of stages toward the largest loads; their sum remains.
  void move_weights(std::vector<int128> const& loads, int128 slowness) {
    int128 sum = 0;
    for (int128 const load : loads) sum += load;
    int128 const part = std::max<int128>(sum / static_cast<int128>(stages()) / 256, 1);
    std::vector<int128> shares(stages());
    int128 all = 0;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = std::clamp<int128>(loads[s] / part - 256, -256, 256);
      int128 const share = factors_[s] - unit;
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
    for (std::size_t s = 0; s != stages(); ++s) factors_[s] = unit + shares[s];
  }

  /// Moves prices toward the stages that lack the most memory.
  void raise_missing_prices() {
    int128 largest = 1;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = used_[s] - rooms_[s];
      largest = std::max(largest, over < 0 ? -over : over);
    }
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const over = used_[s] - rooms_[s];
      int128 const change = prices_[s] * over / (3 * largest);
      prices_[s] = std::clamp<int128>(prices_[s] + change, 1, unit * unit);
    }
  }

  chunk_problem const& problem_;
  int shift_ = 0;
  /// The sum over the moments of the units of each virtual stage.
  std::vector<int128> units_;
  std::vector<int128> rooms_;
  std::vector<int128> factors_;
  std::vector<int128> prices_;
  std::vector<int128> costs_;
  std::vector<std::uint32_t> boundaries_;
  std::vector<std::uint32_t> best_boundaries_;
  std::vector<int128> loads_;
  std::vector<int128> used_;
  int128 cost_ = 0;
  /// The sum of the weights of the stages, and the largest bound that is of use.
  int128 total_ = 0;
  int128 known_ = 0;
  int128 best_bound_ = 0;
  std::vector<int128> best_prices_;
};

}  // namespace omnibal::inline v0::detail
