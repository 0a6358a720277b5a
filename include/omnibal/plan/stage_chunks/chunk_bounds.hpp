// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the steps and of the missing memory of devices with several chunks.

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

/// Returns a lower bound of the largest load of `devices` devices with these layers: devices * k +
/// 1 layers are never on different devices k at a time.
[[nodiscard]] inline std::int64_t min_largest_load(std::vector<std::int64_t> times,
                                                   std::size_t devices) {
  std::sort(times.begin(), times.end(), std::greater<>());
  std::vector<int128> before{0};
  for (std::int64_t const time : times) before.push_back(before.back() + time);
  auto const count = static_cast<int128>(devices);
  int128 least = before.back() / count + (before.back() % count != 0 ? 1 : 0);
  for (std::size_t k = 1; k * devices < times.size(); ++k) {
    std::size_t const last = k * devices + 1;
    least = std::max(least, before[last] - before[last - k - 1]);
  }
  return static_cast<std::int64_t>(least);
}

/// The Lagrangian dual of the loads and the memory of devices. A convex combination of the loads is
/// at most the largest one, and bytes above the memory have a price. With given weights of the
/// devices and prices of their bytes each layer has a cost of its own on each virtual stage, so
/// that dynamic programming over the cuts finds the least cost. Constraints on the number of
/// layers are left out. The bytes are the sums over all moments of a peak, without transient bytes.
class chunk_dual {
 public:
  chunk_dual(integer_layers const& layers, stage_budgets const& rooms, chunk_places const& places,
             chain_rules const& rules, chunk_choices const& choices)
      : layers_(layers), rooms_(rooms), places_(places), rules_(rules) {
    find_bytes(choices);
    prices_.assign(devices(), 0);
    factors_.assign(devices(), 0);
  }

  /// Returns a lower bound of `weight * largest load + sum of the loads` with `rounds` prices at
  /// most; ends at a bound of `known`. Even prices, which make the same layer as expensive on all
  /// devices on average, are found by bisection. Then the subgradient method moves the weights and
  /// prices of devices.
  [[nodiscard]] int128 min_step(int128 weight, int128 known, std::size_t rounds) {
    auto const count = static_cast<int128>(devices());
    total_ = weight * unit;
    known_ = known;
    best_bound_ = 0;
    factors_.assign(devices(), unit + total_ / count);
    factors_[0] += total_ - total_ / count * count;
    std::size_t const even = rounds - rounds / 2;
    if (find_even_prices(even) && best_bound_ < known) move_prices(rounds - even);
    return best_bound_;
  }

  /// Returns a lower bound of the largest shortfall of a device; not positive if none is known.
  [[nodiscard]] int128 min_missing(std::size_t rounds) {
    std::fill(factors_.begin(), factors_.end(), 0);
    std::fill(prices_.begin(), prices_.end(), unit);
    int128 best = 0;
    for (std::size_t round = 0; round != rounds; ++round) {
      int128 const cost = run();
      if (cost == no_cuts) return best;
      int128 slack = 0;
      int128 divisor = 0;
      for (std::size_t d = 0; d != devices(); ++d) {
        slack += prices_[d];
        divisor += prices_[d] * moments(d);
      }
      // Bytes and memory were rounded by less than one unit for each device.
      if (cost > slack) best = std::max(best, shifted(cost - slack, divisor));
      raise_missing_prices();
    }
    return best;
  }

  /// The cuts of the best bound.
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return best_boundaries_; }

 private:
  /// The unit of the weights of devices.
  static constexpr int128 unit = 1 << 10;
  static constexpr int byte_bits = 36;
  static constexpr int128 max_price = static_cast<int128>(1) << 68;
  static constexpr int128 no_cuts = static_cast<int128>(1) << 126;

  [[nodiscard]] std::size_t devices() const { return rooms_.memory.size(); }
  [[nodiscard]] std::size_t stages() const { return places_.device.size(); }
  [[nodiscard]] int128 moments(std::size_t device) const {
    return static_cast<int128>(rooms_.chunks[device].size());
  }

  /// Returns value * 2^shift_ / divisor or a little less.
  [[nodiscard]] int128 shifted(int128 value, int128 divisor) const {
    int const bits = std::min(shift_, 60);
    return (value << bits) / divisor << (shift_ - bits);
  }

  /// Scales the bytes of all moments so that they fit a few bits.
  void find_bytes(chunk_choices const& choices) {
    for (std::size_t s = 0; s != stages(); ++s) {
      units_.push_back(choices.unit_sums(places_.device[s])[places_.chunk[s]]);
    }
    int128 most_units = 1;
    for (int128 const sum : units_) most_units = std::max(most_units, sum);
    int128 most = 0;
    std::int64_t transient = std::numeric_limits<std::int64_t>::max();
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      std::int64_t largest = 0;
      for (auto const& way : layers_[l]) {
        largest = std::max(largest, way.bytes);
        transient = std::min(transient, way.transient_bytes);
      }
      most += most_units * largest + layers_.state_bytes(l, l + 1) * most_moments();
    }
    while (most >> shift_ >= static_cast<int128>(1) << byte_bits) ++shift_;
    if (layers_.size() == 0 || rules_.may_be_empty) transient = 0;
    for (std::size_t d = 0; d != devices(); ++d) {
      int128 const room = static_cast<int128>(rooms_.memory[d]) - rooms_.reserve[d] - transient;
      // No more than `byte_bits` are used.
      constexpr int128 most_room = static_cast<int128>(1) << (byte_bits + 4);
      rooms_of_devices_.push_back(
          std::clamp<int128>((room * moments(d)) >> shift_, -most_room, most_room));
    }
  }

  [[nodiscard]] int128 most_moments() const {
    int128 most = 1;
    for (std::size_t d = 0; d != devices(); ++d) most = std::max(most, moments(d));
    return most;
  }

  [[nodiscard]] int128 bytes_of(std::size_t stage, std::size_t layer,
                                whole_choice const& way) const {
    int128 const states = layers_.state_bytes(layer, layer + 1) * moments(places_.device[stage]);
    return (units_[stage] * way.bytes + states) >> shift_;
  }

  /// Returns the least cost of a layer on a virtual stage, and its choice.
  [[nodiscard]] int128 cost_of(std::size_t stage, std::size_t layer,
                               whole_choice const*& choice) const {
    std::size_t const device = places_.device[stage];
    int128 least = no_cuts;
    for (auto const& way : layers_[layer]) {
      int128 cost = factors_[device] * way.time;
      if (prices_[device] != 0) cost += prices_[device] * bytes_of(stage, layer, way);
      if (cost >= least) continue;
      least = cost;
      choice = &way;
    }
    return least;
  }

  /// Finds the cuts with the least cost and their loads and bytes. Returns the cost minus the price
  /// of the memory.
  [[nodiscard]] int128 run() {
    std::size_t const width = layers_.size() + 1;
    costs_.assign((stages() + 1) * width, no_cuts);
    costs_[0] = 0;
    whole_choice const* choice = nullptr;
    for (std::size_t s = 0; s != stages(); ++s) {
      int128 const* const before = costs_.data() + s * width;
      int128* const after = costs_.data() + (s + 1) * width;
      int128 open = no_cuts;
      std::size_t const begin = rules_.first_cut[s];
      for (std::size_t end = begin; end <= rules_.last_cut[s + 1]; ++end) {
        // `open` is the least cost if stage s has the layer before `end`.
        if (end != begin) {
          int128 const begun = std::min(open, before[end - 1]);
          open = begun == no_cuts ? no_cuts : begun + cost_of(s, end - 1, choice);
        }
        if (rules_.may_cut[end] == 0 || end < rules_.first_cut[s + 1]) continue;
        after[end] = rules_.may_be_empty ? std::min(open, before[end]) : open;
      }
    }
    if (costs_.back() == no_cuts) return no_cuts;
    trace_back();
    int128 cost = costs_.back();
    for (std::size_t d = 0; d != devices(); ++d) cost -= prices_[d] * rooms_of_devices_[d];
    return cost;
  }

  void trace_back() {
    std::size_t const width = layers_.size() + 1;
    boundaries_.assign(stages() + 1, 0);
    loads_.assign(devices(), 0);
    used_.assign(devices(), 0);
    std::size_t end = layers_.size();
    for (std::size_t s = stages(); s-- != 0;) {
      boundaries_[s + 1] = static_cast<std::uint32_t>(end);
      int128 cost = costs_[(s + 1) * width + end];
      if (rules_.may_be_empty && costs_[s * width + end] == cost) continue;
      do {
        whole_choice const* choice = nullptr;
        cost -= cost_of(s, --end, choice);
        loads_[places_.device[s]] += choice->time;
        used_[places_.device[s]] += bytes_of(s, end, *choice);
      } while (costs_[s * width + end] != cost);
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
    std::vector<int128> units(devices(), 1);
    for (std::size_t s = 0; s != stages(); ++s) units[places_.device[s]] += units_[s];
    int128 const most = *std::max_element(units.begin(), units.end());
    prices_.assign(devices(), 0);
    if (!raise_bound()) return false;
    best_prices_ = prices_;
    int128 low = 0;
    int128 high = 0;
    int128 price = std::max<int128>(known_ * unit >> byte_bits, 1);
    for (std::size_t round = 1; round < rounds && best_bound_ < known_; ++round) {
      for (std::size_t d = 0; d != devices(); ++d) {
        prices_[d] = std::min(price * most / units[d], max_price);
      }
      static_cast<void>(raise_bound());
      int128 over = 0;
      for (std::size_t d = 0; d != devices(); ++d) {
        over += (used_[d] - rooms_of_devices_[d]) * most / units[d];
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
  /// solutions, because the solutions themselves have most layers on few devices.
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
      for (std::size_t d = 0; d != devices(); ++d) {
        mean_loads[d] += (loads_[d] - mean_loads[d]) / 4;
        mean_used[d] += (used_[d] - mean_used[d]) / 4;
      }
    }
  }

  /// Moves the prices of bytes by a step that would close a part of a gap.
  void move_bytes(std::vector<int128> const& used, int128 gap) {
    int128 squares = 0;
    for (std::size_t d = 0; d != devices(); ++d) {
      int128 const over = used[d] - rooms_of_devices_[d];
      if (over > 0 || prices_[d] != 0) squares += over * over;
    }
    for (std::size_t d = 0; d != devices() && squares != 0; ++d) {
      int128 const over = used[d] - rooms_of_devices_[d];
      if (over == 0 || (over < 0 && prices_[d] == 0)) continue;
      int128 const ratio = std::max<int128>(squares / (over < 0 ? -over : over), 1);
      int128 const step = std::min(gap / ratio, max_price);
      prices_[d] = std::clamp<int128>(prices_[d] + (over < 0 ? -step : step), 0, max_price);
    }
  }

  /// Moves the weights of devices toward the largest loads; their sum remains.
  void move_weights(std::vector<int128> const& loads, int128 slowness) {
    int128 sum = 0;
    for (int128 const load : loads) sum += load;
    int128 const part = std::max<int128>(sum / static_cast<int128>(devices()) / 256, 1);
    std::vector<int128> shares(devices());
    int128 all = 0;
    for (std::size_t d = 0; d != devices(); ++d) {
      int128 const over = std::clamp<int128>(loads[d] / part - 256, -256, 256);
      int128 const share = factors_[d] - unit;
      shares[d] = share + share / 256 * over / slowness;
      all += shares[d];
    }
    if (all == 0) return;
    int128 rest = total_;
    for (std::size_t d = 0; d != devices(); ++d) {
      shares[d] = shares[d] * total_ / all;
      rest -= shares[d];
    }
    shares[0] += rest;
    for (std::size_t d = 0; d != devices(); ++d) factors_[d] = unit + shares[d];
  }

  /// Moves prices toward the devices that lack the most memory.
  void raise_missing_prices() {
    int128 largest = 1;
    for (std::size_t d = 0; d != devices(); ++d) {
      int128 const over = used_[d] - rooms_of_devices_[d];
      largest = std::max(largest, over < 0 ? -over : over);
    }
    for (std::size_t d = 0; d != devices(); ++d) {
      int128 const over = used_[d] - rooms_of_devices_[d];
      int128 const change = prices_[d] * over / (3 * largest);
      prices_[d] = std::clamp<int128>(prices_[d] + change, 1, unit * unit);
    }
  }

  integer_layers const& layers_;
  stage_budgets const& rooms_;
  chunk_places const& places_;
  chain_rules const& rules_;
  int shift_ = 0;
  /// The sum over the moments of the units of each virtual stage.
  std::vector<int128> units_;
  std::vector<int128> rooms_of_devices_;
  std::vector<int128> factors_;
  std::vector<int128> prices_;
  std::vector<int128> costs_;
  std::vector<std::uint32_t> boundaries_;
  std::vector<std::uint32_t> best_boundaries_;
  std::vector<int128> loads_;
  std::vector<int128> used_;
  int128 cost_ = 0;
  /// The sum of the weights of the devices, and the largest bound that is of use.
  int128 total_ = 0;
  int128 known_ = 0;
  int128 best_bound_ = 0;
  std::vector<int128> best_prices_;
};

}  // namespace omnibal::inline v0::detail
