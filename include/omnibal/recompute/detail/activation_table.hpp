// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers and their modules as arrays.

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
      : function_(function), in_flight_(in_flight), link_(link) {
    if (in_flight < 1) {
      throw_invalid(function, "options.in_flight is ", in_flight, ", must be at least 1");
    }
    check_weight(function, "link.bytes_per_time", link.bytes_per_time);
    check_weight(function, "link.forward_traffic_bytes", link.forward_traffic_bytes);
    check_weight(function, "link.backward_traffic_bytes", link.backward_traffic_bytes);
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
  /// Returns an upper bound of the bytes on the device, which holds if everything is kept.
  [[nodiscard]] std::int64_t most_bytes() const { return most_bytes_; }

  /// Converts a time to an integer. All recomputation times add up to less than 2^62; integer times
  /// are not changed and may add up to 2^63 - 1.
  [[nodiscard]] std::int64_t to_whole(Time time) const { return to_whole_time(time, total_time_); }
  [[nodiscard]] Time from_whole(std::int64_t time) const {
    return from_whole_time(time, total_time_);
  }

  /// The bytes and the recomputation times of all modules, layer after layer.
  std::vector<std::int64_t> bytes;
  std::vector<Time> times;
  std::vector<module_need> needs;
  /// The index of the first module of each layer; the last entry is the number of modules.
  std::vector<std::size_t> offsets{0};
  /// For each layer: the sum of the bytes of its modules and of its required modules, its transient
  /// bytes, and the bytes of activations that the link transfers during its passes. Transferred
  /// bytes are cut off at the bytes of all layers.
  std::vector<std::int64_t> layer_bytes;
  std::vector<std::int64_t> required_bytes;
  std::vector<std::int64_t> forward_transient;
  std::vector<std::int64_t> backward_transient;
  std::vector<std::int64_t> forward_link;
  std::vector<std::int64_t> backward_link;
  /// The bytes that the link transfers in the remaining forward passes, and in the backward passes
  /// of the same layers, after each number of layers. They are cut off at the bytes of all layers.
  std::vector<std::int64_t> forward_rest;
  std::vector<std::int64_t> backward_rest;

 private:
  template <class Layer>
  void push_layer(Layer const& layer) {
    std::int64_t sum = 0;
    std::int64_t required = 0;
    std::size_t index = 0;
    for (auto const& part : layer.modules) {
      module_need const need = need_of(part, index);
      bytes.push_back(checked<std::int64_t>("bytes of module ", index, part.bytes));
      Time const time = checked<Time>("recompute_time of module ", index, part.recompute_time);
      times.push_back(need == module_need::required ? Time{} : time);
      needs.push_back(need);
      checked_add(function_, "the sum of the bytes", sum, bytes.back());
      checked_add(function_, "the sum of the recomputation times", total_time_, times.back());
      if (need == module_need::required) required += bytes.back();
      ++index;
    }
    checked_add(function_, "the sum of the bytes", total_bytes_, sum);
    layer_bytes.push_back(sum);
    required_bytes.push_back(required);
    forward_transient.push_back(
        checked<std::int64_t>("forward_transient_bytes", none, layer.forward_transient_bytes));
    backward_transient.push_back(
        checked<std::int64_t>("backward_transient_bytes", none, layer.backward_transient_bytes));
    add_pass(checked<Time>("forward_time", none, layer.forward_time), forward_times_,
             forward_time_);
    add_pass(checked<Time>("backward_time", none, layer.backward_time), backward_times_,
             backward_time_);
    if constexpr (has_layer_traffic<Layer>) {
      forward_traffic_.push_back(
          checked<std::int64_t>("forward_traffic_bytes", none, layer.forward_traffic_bytes));
      backward_traffic_.push_back(
          checked<std::int64_t>("backward_traffic_bytes", none, layer.backward_traffic_bytes));
    } else {
      forward_traffic_.push_back(0);
      backward_traffic_.push_back(0);
    }
    offsets.push_back(bytes.size());
  }

  template <class Module>
  [[nodiscard]] module_need need_of(Module const& part, std::size_t index) const {
    if constexpr (has_module_need<Module>) {
      if (part.need <= module_need::required) return part.need;
      throw_invalid(function_, "need of module ", index, " of layer ", layers_size(), " is ",
                    static_cast<int>(part.need), ", must be optional or required");
    } else {
      return module_need::optional;
    }
  }

  static void add_pass(Time time, std::vector<double>& times, double& sum) {
    times.push_back(static_cast<double>(time));
    sum += times.back();
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

  /// Returns the whole bytes that a link with rate `rate` transfers in time `time`, at most 2^62.
  [[nodiscard]] static std::int64_t transferred(double rate, double time) {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    double const transfer = rate * time;
    return transfer < static_cast<double>(most) ? static_cast<std::int64_t>(transfer) : most;
  }

  /// Returns the rate of the link that remains besides evenly spread traffic.
  [[nodiscard]] double rate_left(std::int64_t traffic, double time) const {
    if (traffic == 0 || time == 0) return link_.bytes_per_time;
    return std::max(0.0, link_.bytes_per_time - static_cast<double>(traffic) / time);
  }

  /// Sets `link` to the bytes of activations that the link transfers in a pass. Other traffic comes
  /// first; `waiting` counts its bytes that are not transferred yet.
  void set_transfer(double rate, double time, std::int64_t traffic, int128& waiting,
                    std::int64_t& link) const {
    std::int64_t const all = transferred(rate, time);
    waiting += traffic;
    auto const others = static_cast<std::int64_t>(std::min<int128>(waiting, all));
    waiting -= others;
    link = std::min(all - others, total_bytes_);
  }

  void set_transfers() {
    std::size_t const count = layers_size();
    forward_link.resize(count);
    backward_link.resize(count);
    double const forward_rate = rate_left(link_.forward_traffic_bytes, forward_time_);
    double const backward_rate = rate_left(link_.backward_traffic_bytes, backward_time_);
    int128 sending = 0;
    int128 fetching = 0;
    for (std::size_t i = 0; i != count; ++i) {
      set_transfer(forward_rate, forward_times_[i], forward_traffic_[i], sending, forward_link[i]);
    }
    for (std::size_t i = count; i-- != 0;) {
      set_transfer(backward_rate, backward_times_[i], backward_traffic_[i], fetching,
                   backward_link[i]);
    }
  }

  void finish() {
    set_transfers();
    std::int64_t transient = 0;
    for (std::size_t i = 0; i != layers_size(); ++i) {
      transient = std::max({transient, forward_transient[i], backward_transient[i]});
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
  offload_link link_;
  /// The times of the passes and the other traffic of each layer, and the sums of the times over
  /// all layers.
  std::vector<double> forward_times_;
  std::vector<double> backward_times_;
  std::vector<std::int64_t> forward_traffic_;
  std::vector<std::int64_t> backward_traffic_;
  double forward_time_ = 0;
  double backward_time_ = 0;
  std::int64_t total_bytes_ = 0;
  std::int64_t most_bytes_ = 0;
  Time total_time_{};
};

}  // namespace omnibal::inline v0::detail
