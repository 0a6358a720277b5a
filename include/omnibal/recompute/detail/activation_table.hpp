// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers and their modules as arrays, and the bytes on the device during both passes.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The modules of all layers, and for each layer its transient bytes and the bytes that the link
/// transfers during its passes.
template <class Time>
class activation_table {
 public:
  activation_table(std::string_view function, offload_link const& link, std::int64_t in_flight)
      : function_(function), in_flight_(in_flight), rate_(link.bytes_per_time) {
    if (in_flight < 1) {
      throw_invalid(function, "options.in_flight is ", in_flight, ", must be at least 1");
    }
    check_weight(function, "link.bytes_per_time", rate_);
  }

  template <class Layers>
  void assign(Layers const& layers) {
    for (auto const& layer : layers) push_layer(layer);
    check_index_count(function_, "layers", layers_size());
    check_index_count(function_, "modules", bytes.size());
    finish();
  }

  [[nodiscard]] std::size_t layers_size() const { return offsets.size() - 1; }
  [[nodiscard]] std::int64_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::int64_t total_bytes() const { return total_bytes_; }
  /// Returns at least the bytes on the device if everything is kept.
  [[nodiscard]] std::int64_t most_bytes() const { return most_bytes_; }

  /// Returns the largest bytes on the device of any layer if everything is recomputed.
  [[nodiscard]] std::int64_t least_bytes() const {
    std::int64_t result = 0;
    for (std::size_t i = 0; i != layers_size(); ++i) {
      result = std::max({result, forward_transient[i], backward_transient[i] + layer_bytes[i]});
    }
    return result;
  }

  /// Returns a time as an integer; all recomputation times add up to less than 2^62, or to at most
  /// 2^63 - 1 if they are integers.
  [[nodiscard]] std::int64_t to_whole(Time time) const { return to_whole_time(time, total_time_); }
  [[nodiscard]] Time from_whole(std::int64_t time) const {
    return from_whole_time(time, total_time_);
  }

  /// The bytes and the recomputation times of all modules, layer after layer.
  std::vector<std::int64_t> bytes;
  std::vector<Time> times;
  /// The first module of each layer, and the end.
  std::vector<std::size_t> offsets{0};
  /// For each layer: the sum of its bytes, its transient bytes, and the bytes that the link
  /// transfers during its passes, at most all bytes.
  std::vector<std::int64_t> layer_bytes;
  std::vector<std::int64_t> forward_transient;
  std::vector<std::int64_t> backward_transient;
  std::vector<std::int64_t> forward_link;
  std::vector<std::int64_t> backward_link;
  /// The bytes that the link transfers in the forward passes and in the backward passes of all
  /// layers after each number of layers, at most all bytes.
  std::vector<std::int64_t> forward_rest;
  std::vector<std::int64_t> backward_rest;

 private:
  template <class Layer>
  void push_layer(Layer const& layer) {
    std::int64_t sum = 0;
    std::size_t index = 0;
    for (auto const& part : layer.modules) {
      bytes.push_back(checked<std::int64_t>("bytes of module ", index, part.bytes));
      times.push_back(checked<Time>("recompute_time of module ", index, part.recompute_time));
      checked_add(function_, "the sum of the bytes", sum, bytes.back());
      checked_add(function_, "the sum of the recomputation times", total_time_, times.back());
      ++index;
    }
    checked_add(function_, "the sum of the bytes", total_bytes_, sum);
    layer_bytes.push_back(sum);
    forward_transient.push_back(
        checked<std::int64_t>("forward_transient_bytes", none, layer.forward_transient_bytes));
    backward_transient.push_back(
        checked<std::int64_t>("backward_transient_bytes", none, layer.backward_transient_bytes));
    forward_link.push_back(transferred(checked<Time>("forward_time", none, layer.forward_time)));
    backward_link.push_back(transferred(checked<Time>("backward_time", none, layer.backward_time)));
    offsets.push_back(bytes.size());
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  template <class Working, scalar_measure T>
  [[nodiscard]] Working checked(std::string_view member, std::size_t index, T value) const {
    auto const result = static_cast<Working>(value);
    if (is_valid_weight(value) && is_valid_weight(result)) return result;
    std::string const which = index == none ? "" : to_text(index);
    throw_invalid(function_, std::string(member) + which, " of layer ", layers_size(), " is ",
                  value, ", must be finite, not negative and below 2^63");
  }

  /// Returns the whole bytes that the link transfers in this time, at most 2^62.
  [[nodiscard]] std::int64_t transferred(Time time) const {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    double const transfer = rate_ * static_cast<double>(time);
    return transfer < static_cast<double>(most) ? static_cast<std::int64_t>(transfer) : most;
  }

  void finish() {
    std::int64_t transient = 0;
    for (std::size_t i = 0; i != layers_size(); ++i) {
      transient = std::max({transient, forward_transient[i], backward_transient[i]});
      forward_link[i] = std::min(forward_link[i], total_bytes_);
      backward_link[i] = std::min(backward_link[i], total_bytes_);
    }
    int128 const most = static_cast<int128>(in_flight_) * total_bytes_ + transient;
    most_bytes_ = checked_cast<std::int64_t>(function_, "the sum of the bytes", most);
    forward_rest.assign(layers_size() + 1, 0);
    backward_rest.assign(layers_size() + 1, 0);
    for (std::size_t i = layers_size(); i != 0; --i) {
      forward_rest[i - 1] = sum_up_to(forward_rest[i], forward_link[i - 1]);
      backward_rest[i - 1] = sum_up_to(backward_rest[i], backward_link[i - 1]);
    }
  }

  [[nodiscard]] std::int64_t sum_up_to(std::int64_t left, std::int64_t right) const {
    return left > total_bytes_ - right ? total_bytes_ : left + right;
  }

  std::string_view function_;
  std::int64_t in_flight_;
  double rate_;
  std::int64_t total_bytes_ = 0;
  std::int64_t most_bytes_ = 0;
  Time total_time_{};
};

}  // namespace omnibal::inline v0::detail
