// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The linear relaxation of the selection of saved modules, and the bound that its prices yield.

#include <omnibal/config.hpp>
#include <omnibal/recompute/select_activations/bounded_dual_simplex.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Prices of windows as whole numbers. The price of a byte of a layer is the sum of the prices of
/// the windows that contain the layer. Gains are multiplied by 2^shift before they are compared
/// with prices.
struct window_prices {
  std::vector<window> windows;
  std::vector<std::int64_t> prices;
  int shift = 0;
  /// The price of a byte of each layer.
  std::vector<std::int64_t> of_layer;
  /// The upper bound of the gain, times 2^shift.
  int128 bound = 0;

  [[nodiscard]] int128 reduced_gain(saved_item const& item) const {
    return (static_cast<int128>(item.gain) << shift) -
           static_cast<int128>(of_layer[item.layer]) * item.bytes;
  }
  /// Returns the upper bound of the gain.
  [[nodiscard]] std::int64_t max_gain() const { return static_cast<std::int64_t>(bound >> shift); }
};

/// The linear relaxation by cutting planes. A row of the linear program is a window whose limit the
/// relaxed solution exceeds. The linear program uses floating-point numbers. The bound is computed
/// from the prices in integers, so it is valid for any prices.
class window_relaxation {
 public:
  /// Solves the relaxation and returns its prices.
  [[nodiscard]] window_prices solve(queue_limits const& limits) {
    start(limits);
    for (std::size_t round = 0; round != max_rounds; ++round) {
      auto const layer_bytes = simplex_.layer_bytes();
      bool const is_sending_added = add_window(limits, layer_bytes, offload_queue::sending);
      bool const is_fetching_added = add_window(limits, layer_bytes, offload_queue::fetching);
      if (!is_sending_added && !is_fetching_added) break;
      if (!simplex_.solve()) break;
    }
    return whole_prices(limits);
  }

  /// Returns the share of each item that the relaxed solution saves.
  [[nodiscard]] std::vector<double> parts() const { return simplex_.parts(); }

 private:
  static constexpr std::size_t max_rounds = 64;

  void start(queue_limits const& limits) {
    byte_unit_ = std::max(1.0, static_cast<double>(limits.total_bytes));
    gain_unit_ = std::max(1.0, static_cast<double>(limits.total_gain));
    windows_.clear();
    simplex_.reset(limits.size());
    for (saved_item const& item : limits.items) {
      simplex_.push_item(item.layer, static_cast<double>(item.bytes) / byte_unit_,
                         static_cast<double>(item.gain) / gain_unit_);
    }
  }

  /// Adds the window whose limit is exceeded most as a row. Returns false if no limit is exceeded.
  [[nodiscard]] bool add_window(queue_limits const& limits, std::span<double const> layer_bytes,
                                offload_queue queue) {
    bool const is_sending = queue == offload_queue::sending;
    double queued = 0.0;
    double most = bounded_dual_simplex::tolerance;
    std::uint32_t first = 0;
    window found{0, 0, queue, 0};
    auto const limit = limits.max_bytes(queue);
    auto const leaving_bytes = limits.leaving(queue);
    for (std::uint32_t i = 0; i != limits.size(); ++i) {
      double const leaving = static_cast<double>(leaving_bytes[i]) / byte_unit_;
      if (!is_sending) queued -= leaving;
      if (queued <= 0.0) {
        queued = 0.0;
        first = i;
      }
      queued += layer_bytes[i];
      if (is_sending) queued -= leaving;
      double const excess = queued - static_cast<double>(limit[i]) / byte_unit_;
      if (excess <= most) continue;
      most = excess;
      found.first = first;
      found.last = i + 1;
    }
    if (found.last == 0 || simplex_.is_full()) return false;
    int128 sum = limit[found.last - 1];
    for (std::uint32_t i = found.first; i != found.last; ++i) {
      if (is_sending || i != found.first) sum += leaving_bytes[i];
    }
    if (sum >= limits.total_bytes) return false;
    found.bytes = static_cast<std::int64_t>(sum);
    windows_.push_back(found);
    simplex_.push_row({found.first, found.last, static_cast<double>(found.bytes) / byte_unit_});
    return true;
  }

  /// Rounds the dual values to whole prices, and computes the bound that they yield.
  [[nodiscard]] window_prices whole_prices(queue_limits const& limits) const {
    constexpr int price_bits = 50;
    constexpr int bound_bits = 118;
    window_prices result;
    auto const duals = simplex_.duals();
    double largest = 0.0;
    for (double const dual : duals) largest = std::max(largest, dual * gain_unit_ / byte_unit_);
    int const gain_bits = limits.total_gain > 0
                              ? 64 - std::countl_zero(static_cast<std::uint64_t>(limits.total_gain))
                              : 0;
    result.shift = std::clamp(largest > 0.0 ? price_bits - std::ilogb(largest) : 0, 0,
                              std::min(bound_bits - gain_bits, 60));
    for (std::size_t r = 0; r != duals.size(); ++r) {
      double const price = std::ldexp(duals[r] * gain_unit_ / byte_unit_, result.shift);
      if (!(price >= 1.0) || price >= 0x1p57) continue;
      result.windows.push_back(windows_[r]);
      result.prices.push_back(static_cast<std::int64_t>(price));
      result.bound += static_cast<int128>(result.prices.back()) * windows_[r].bytes;
    }
    result.of_layer.assign(limits.size(), 0);
    for (std::size_t c = 0; c != result.windows.size(); ++c) {
      for (std::uint32_t i = result.windows[c].first; i != result.windows[c].last; ++i) {
        result.of_layer[i] += result.prices[c];
      }
    }
    for (saved_item const& item : limits.items) {
      result.bound += std::max<int128>(0, result.reduced_gain(item));
    }
    return result;
  }

  double byte_unit_ = 1.0;
  double gain_unit_ = 1.0;
  /// The windows of the rows of the linear program.
  std::vector<window> windows_;
  bounded_dual_simplex simplex_;
};

}  // namespace omnibal::inline v0::detail
