// SPDX-License-Identifier: Apache-2.0
#pragma once

// Peak and time of choices for activations, from the largest of all sums instead of recurrences,
// and the best choices by trying all of them.

#include <omnibal/config.hpp>
#include <omnibal/recompute/activation_layer.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace test {

using omnibal::activation_choice;
using omnibal::detail::int128;

using activation_choices = std::vector<std::vector<activation_choice>>;

/// Sums of times without a rounding that matters.
template <class Time>
using wide_time = std::conditional_t<std::floating_point<Time>, long double, int128>;

template <class Time>
struct activation_case {
  std::vector<omnibal::activation_layer<Time>> layers;
  std::int64_t budget = 0;
  omnibal::offload_link link{};
  std::int64_t in_flight = 1;
};

/// The bytes that a link with this rate transfers in a time.
inline int128 transferred(double rate, double time) {
  double const bytes = rate * time;
  return bytes < 0x1p62 ? static_cast<int128>(bytes) : int128{1} << 62;
}

/// The bytes of activations that the link transfers in each pass, passes in the order of time. The
/// other traffic has arrived up to a pass: the link has moved the least of its sums of arrivals and
/// of later capacities.
inline std::vector<int128> left_for_activations(std::vector<int128> const& capacity,
                                                std::vector<int128> const& traffic) {
  std::vector<int128> moved(capacity.size() + 1, 0);
  for (std::size_t k = 1; k <= capacity.size(); ++k) {
    int128 least = 0;
    for (std::size_t i = 0; i != k; ++i) least += traffic[i];
    int128 arrived = 0;
    for (std::size_t first = 0; first != k; ++first) {
      int128 sum = arrived;
      for (std::size_t i = first; i != k; ++i) sum += capacity[i];
      least = std::min(least, sum);
      arrived += traffic[first];
    }
    moved[k] = least;
  }
  std::vector<int128> result;
  for (std::size_t k = 0; k != capacity.size(); ++k) {
    result.push_back(capacity[k] - (moved[k + 1] - moved[k]));
  }
  return result;
}

/// The peak of a layer in both passes. All sums are over ranges of layers.
struct layer_peak {
  int128 forward = 0;
  int128 backward = 0;
};

template <class Time>
class naive_memory {
 public:
  naive_memory(activation_case<Time> const& given, activation_choices const& choices)
      : given_(given) {
    for (std::size_t i = 0; i != given.layers.size(); ++i) {
      kept_.push_back(0);
      offloaded_.push_back(0);
      all_.push_back(0);
      for (std::size_t j = 0; j != given.layers[i].modules.size(); ++j) {
        std::int64_t const bytes = given.layers[i].modules[j].bytes;
        all_.back() += bytes;
        if (choices[i][j] == activation_choice::keep) kept_.back() += bytes;
        if (choices[i][j] == activation_choice::offload) offloaded_.back() += bytes;
      }
    }
    find_transfers();
  }

  [[nodiscard]] layer_peak of_layer(std::size_t i) const {
    int128 const others = (given_.in_flight - 1) * held();
    auto const& layer = given_.layers[i];
    int128 const before = sum(kept_, 0, i);
    int128 const after = sum(kept_, 0, i + 1);
    int128 const recomputed = all_[i] - kept_[i] - offloaded_[i];
    return {others + std::max(before + forward(i), after + forward(i + 1)) +
                layer.forward_transient_bytes,
            others + std::max(before + backward(i), after + backward(i + 1) + recomputed) +
                layer.backward_transient_bytes};
  }

  /// The bytes of a micro-batch between its passes.
  [[nodiscard]] int128 held() const {
    std::size_t const count = kept_.size();
    return sum(kept_, 0, count) + std::max(queue(count), fetch(count));
  }

  [[nodiscard]] int128 peak() const {
    int128 result = 0;
    for (std::size_t i = 0; i != kept_.size(); ++i) {
      layer_peak const one = of_layer(i);
      result = std::max({result, one.forward, one.backward});
    }
    return result;
  }

 private:
  /// Fills the bytes that the link transfers for activations during all passes.
  void find_transfers() {
    double forward = 0;
    double backward = 0;
    for (auto const& layer : given_.layers) {
      forward += static_cast<double>(layer.forward_time);
      backward += static_cast<double>(layer.backward_time);
    }
    auto const rate = [&](std::int64_t traffic, double time) {
      double const taken = time > 0 ? static_cast<double>(traffic) / time : 0;
      return std::max(0.0, given_.link.bytes_per_time - taken);
    };
    double const sending = rate(given_.link.forward_traffic_bytes, forward);
    double const fetching = rate(given_.link.backward_traffic_bytes, backward);
    std::vector<int128> forward_traffic;
    std::vector<int128> backward_traffic;
    for (auto const& layer : given_.layers) {
      sent_.push_back(transferred(sending, static_cast<double>(layer.forward_time)));
      fetched_.push_back(transferred(fetching, static_cast<double>(layer.backward_time)));
      forward_traffic.push_back(layer.forward_traffic_bytes);
      backward_traffic.push_back(layer.backward_traffic_bytes);
    }
    sent_ = left_for_activations(sent_, forward_traffic);
    std::reverse(fetched_.begin(), fetched_.end());
    std::reverse(backward_traffic.begin(), backward_traffic.end());
    fetched_ = left_for_activations(fetched_, backward_traffic);
    std::reverse(fetched_.begin(), fetched_.end());
  }

  static int128 sum(std::vector<int128> const& values, std::size_t first, std::size_t last) {
    int128 result = 0;
    for (std::size_t i = first; i < last; ++i) result += values[i];
    return result;
  }

  /// The bytes of the first layers that are not sent when their passes end.
  [[nodiscard]] int128 queue(std::size_t layers) const {
    int128 most = 0;
    for (std::size_t k = 0; k != layers; ++k) {
      most = std::max(most, sum(offloaded_, k, layers) - sum(sent_, k, layers));
    }
    return most;
  }
  /// The bytes of the first layers that are fetched when the backward pass of the last one begins.
  [[nodiscard]] int128 fetch(std::size_t layers) const {
    int128 most = 0;
    for (std::size_t k = 0; k != layers; ++k) {
      most = std::max(most, sum(offloaded_, k, layers) - sum(fetched_, k + 1, layers));
    }
    return most;
  }
  [[nodiscard]] int128 forward(std::size_t layers) const {
    return std::max(queue(layers), fetch(layers) - sum(fetched_, layers, kept_.size()));
  }
  [[nodiscard]] int128 backward(std::size_t layers) const {
    return std::max(fetch(layers), queue(layers) - sum(sent_, layers, kept_.size()) -
                                       sum(fetched_, layers, kept_.size()));
  }

  activation_case<Time> const& given_;
  std::vector<int128> kept_;
  std::vector<int128> offloaded_;
  std::vector<int128> all_;
  std::vector<int128> sent_;
  std::vector<int128> fetched_;
};

template <class Time>
wide_time<Time> added_time(activation_case<Time> const& given, activation_choices const& choices) {
  wide_time<Time> time{};
  for (std::size_t i = 0; i != choices.size(); ++i) {
    for (std::size_t j = 0; j != choices[i].size(); ++j) {
      if (choices[i][j] == activation_choice::recompute) {
        time += given.layers[i].modules[j].recompute_time;
      }
    }
  }
  return time;
}

/// Over all choices.
template <class Time>
struct every_activation {
  bool is_feasible = false;
  wide_time<Time> min_time{};
  int128 min_peak = int128{1} << 120;
};

/// Whether no required module is recomputed.
template <class Time>
bool keeps_required(activation_case<Time> const& given, activation_choices const& choices) {
  for (std::size_t i = 0; i != choices.size(); ++i) {
    for (std::size_t j = 0; j != choices[i].size(); ++j) {
      bool const is_required = given.layers[i].modules[j].need == omnibal::module_need::required;
      if (is_required && choices[i][j] == activation_choice::recompute) return false;
    }
  }
  return true;
}

template <class Time>
every_activation<Time> try_every_activation(activation_case<Time> const& given) {
  activation_choices choices;
  for (auto const& layer : given.layers) {
    choices.emplace_back(layer.modules.size(), activation_choice::keep);
  }
  every_activation<Time> result;
  for (;;) {
    bool const is_allowed = keeps_required(given, choices);
    int128 const peak = is_allowed ? naive_memory<Time>(given, choices).peak() : result.min_peak;
    result.min_peak = std::min(result.min_peak, peak);
    if (is_allowed && peak <= given.budget) {
      auto const time = added_time(given, choices);
      result.min_time = result.is_feasible ? std::min(result.min_time, time) : time;
      result.is_feasible = true;
    }
    bool is_next = false;
    for (auto& layer : choices) {
      for (activation_choice& choice : layer) {
        if (is_next) break;
        is_next = choice != activation_choice::offload;
        choice = is_next ? static_cast<activation_choice>(static_cast<int>(choice) + 1)
                         : activation_choice::keep;
      }
    }
    if (!is_next) return result;
  }
}

}  // namespace test
