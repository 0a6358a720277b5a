// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bytes on the device during both passes, from the bytes that each layer keeps and offloads.

#include <omnibal/recompute/detail/activation_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The bytes that each layer keeps and offloads.
struct saved_bytes {
  explicit saved_bytes(std::size_t layers) : kept(layers, 0), offloaded(layers, 0) {}

  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> offloaded;
};

/// Computes the queues of the link and the peak of memory from the bytes that layers keep and
/// offload. The memory for the queues is allocated once.
template <class Time>
class activation_replay {
 public:
  explicit activation_replay(activation_table<Time> const& table)
      : table_(table),
        sending_(table.layers_size() + 1, 0),
        fetching_(table.layers_size() + 1, 0) {}

  /// Returns the peak of the bytes on the device. Calls `visit(layer, forward_bytes,
  /// backward_bytes)` for each layer in order.
  template <class Visit>
  std::int64_t peak(saved_bytes const& saved, Visit const& visit) {
    std::size_t const count = table_.layers_size();
    auto const& [kept, offloaded] = saved;
    std::int64_t all_kept = 0;
    for (std::size_t i = 0; i != count; ++i) {
      sending_[i + 1] =
          std::max<std::int64_t>(0, sending_[i] + offloaded[i] - table_.forward_link[i]);
      fetching_[i + 1] =
          offloaded[i] + std::max<std::int64_t>(0, fetching_[i] - table_.backward_link[i]);
      all_kept += kept[i];
    }
    held_ = all_kept + std::max(sending_[count], fetching_[count]);
    std::int64_t const others = (table_.in_flight() - 1) * held_;
    std::int64_t result = 0;
    std::int64_t kept_before = 0;
    for (std::size_t i = 0; i != count; ++i) {
      std::int64_t const kept_after = kept_before + kept[i];
      std::int64_t const recomputed = table_.layer_bytes[i] - kept[i] - offloaded[i];
      std::int64_t const forward =
          std::max(kept_before + during_forward(i), kept_after + during_forward(i + 1)) +
          table_.forward_transient[i] + others;
      std::int64_t const backward = std::max(kept_before + during_backward(i),
                                             kept_after + during_backward(i + 1) + recomputed) +
                                    table_.backward_transient[i] + others;
      visit(i, forward, backward);
      result = std::max({result, forward, backward});
      kept_before = kept_after;
    }
    return result;
  }

  std::int64_t peak(saved_bytes const& saved) {
    return peak(saved, [](std::size_t, std::int64_t, std::int64_t) {});
  }

  /// Returns the bytes that a micro-batch keeps on the device between its passes. Precondition:
  /// `peak` was called.
  [[nodiscard]] std::int64_t held() const { return held_; }

 private:
  /// Returns the offloaded bytes of the first `layers` layers that are on the device when the
  /// forward pass of the last of them ends. These are the bytes not sent yet or, if there are more,
  /// the bytes that stay because they could not be fetched in time.
  [[nodiscard]] std::int64_t during_forward(std::size_t layers) const {
    return std::max(sending_[layers], fetching_[layers] - table_.backward_rest[layers]);
  }
  /// Returns the offloaded bytes of the first `layers` layers that are on the device when the
  /// backward pass of the last of them begins. These are the bytes fetched or, if there are more,
  /// the bytes not sent yet.
  [[nodiscard]] std::int64_t during_backward(std::size_t layers) const {
    return std::max(fetching_[layers],
                    sending_[layers] - table_.forward_rest[layers] - table_.backward_rest[layers]);
  }

  activation_table<Time> const& table_;
  /// The queues after each number of layers. The queue `sending_` has the bytes still to be sent
  /// when the forward pass of these layers ends. The queue `fetching_` has the bytes that must have
  /// been fetched when the backward pass of the last of these layers begins.
  std::vector<std::int64_t> sending_;
  std::vector<std::int64_t> fetching_;
  std::int64_t held_ = 0;
};

}  // namespace omnibal::inline v0::detail
