// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The limits of both queues under a budget, if all saved modules are offloaded.

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/recompute/detail/activation_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// An item of the knapsack problem: an optional module, which may be saved, that is, kept or
/// offloaded.
struct saved_item {
  std::int64_t bytes;
  /// The recomputation time that is not added if the module is saved.
  std::int64_t gain;
  std::uint32_t layer;
  /// The index of the module in the table.
  std::uint32_t module_index;
};

/// A queue of the link: the bytes to send after the forward passes of layers, or the bytes that
/// are fetched for backward passes.
enum class offload_queue { sending, fetching };

/// The layers [first, last), whose saved bytes are limited by the queue of bytes to send or by the
/// queue of fetched bytes.
struct window {
  std::uint32_t first;
  std::uint32_t last;
  offload_queue queue;
  std::int64_t bytes;
};

/// A limit for each queue after each layer. Keeping a module never requires fewer bytes than
/// offloading it. Therefore a set of saved modules fits if and only if the queues stay below these
/// limits with all of its modules offloaded. Items are optional modules. The required bytes of each
/// layer reduce the bytes that leave the queues, which may become negative.
struct queue_limits {
  std::vector<saved_item> items;
  /// The index of the first item of each layer; the last entry is the number of items.
  std::vector<std::uint32_t> offsets;
  /// For each layer: the bytes that leave each queue, and the largest number of bytes that each
  /// queue may hold.
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> fetched;
  std::vector<std::int64_t> max_sending;
  std::vector<std::int64_t> max_fetching;
  std::int64_t total_bytes = 0;
  /// The sum of the gains of all items.
  std::int64_t total_gain = 0;

  [[nodiscard]] std::size_t size() const { return sent.size(); }
  /// Returns the bytes that leave a queue, for each layer.
  [[nodiscard]] std::span<std::int64_t const> leaving(offload_queue queue) const {
    return queue == offload_queue::sending ? sent : fetched;
  }
  /// Returns the largest number of bytes that a queue may hold, for each layer.
  [[nodiscard]] std::span<std::int64_t const> max_bytes(offload_queue queue) const {
    return queue == offload_queue::sending ? max_sending : max_fetching;
  }

  /// Sets the items, and the bytes that leave the queues. A module without bytes or without
  /// recomputation time is not an item.
  template <class Time>
  void set_items(activation_table<Time> const& table) {
    sent = table.forward_link;
    fetched = table.backward_link;
    for (std::size_t i = 0; i != table.layers_size(); ++i) {
      sent[i] -= table.required_bytes[i];
      if (i != 0) fetched[i] -= table.required_bytes[i - 1];
    }
    total_bytes = table.total_bytes();
    offsets.assign(1, 0);
    for (std::size_t i = 0; i != table.layers_size(); ++i) {
      for (std::size_t k = table.offsets[i]; k != table.offsets[i + 1]; ++k) {
        std::int64_t const gain = table.to_whole(table.times[k]);
        if (gain == 0 || table.bytes[k] == 0) continue;
        total_gain += gain;
        items.push_back(
            {table.bytes[k], gain, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(k)});
      }
      offsets.push_back(static_cast<std::uint32_t>(items.size()));
    }
  }

  /// Returns the bytes of the saved items of each layer.
  [[nodiscard]] std::vector<std::int64_t> layer_bytes(
      std::vector<unsigned char> const& saved) const {
    std::vector<std::int64_t> result(size(), 0);
    for (std::size_t j = 0; j != saved.size(); ++j) {
      if (saved[j] != 0) result[items[j].layer] += items[j].bytes;
    }
    return result;
  }

  /// Returns true if the limits allow the layers to save these bytes.
  [[nodiscard]] bool allow(std::span<std::int64_t const> saved_bytes) const {
    std::int64_t sending = 0;
    std::int64_t fetching = 0;
    for (std::size_t i = 0; i != size(); ++i) {
      sending = std::max<std::int64_t>(0, sending + saved_bytes[i] - sent[i]);
      fetching = saved_bytes[i] + std::max<std::int64_t>(0, fetching - fetched[i]);
      if (sending > max_sending[i] || fetching > max_fetching[i]) return false;
    }
    return true;
  }

  /// Sets the limits for a micro-batch that has `budget` bytes. After the last layer, each queue
  /// may hold at most `max_end` bytes. The comment of `measure_activations` defines the bytes at
  /// each moment. Precondition: the required modules are within these limits if all of them are
  /// offloaded.
  template <class Time>
  void set_limits(activation_table<Time> const& table, std::int64_t budget, std::int64_t max_end) {
    std::size_t const count = table.layers_size();
    max_sending.assign(count, total_bytes);
    max_fetching.assign(count, total_bytes);
    for (std::size_t i = 0; i != count; ++i) {
      int128 const forward_rest = table.forward_rest[i + 1];
      int128 const backward_rest = table.backward_rest[i + 1];
      std::int64_t const end_of_forward = budget - table.forward_transient[i];
      limit_queues(i, end_of_forward, 0, backward_rest);
      if (i + 1 == count) break;

      std::int64_t const begin_of_next_forward = budget - table.forward_transient[i + 1];
      limit_queues(i, begin_of_next_forward, 0, backward_rest);
      std::int64_t const end_of_next_backward = budget - table.backward_transient[i + 1];
      limit_queues(i, end_of_next_backward, forward_rest + backward_rest, 0);
      // At this moment all bytes of the next layer are on the device, and its backward pass still
      // transfers.
      std::int64_t const begin_of_next_backward = end_of_next_backward - table.layer_bytes[i + 1];
      limit_queues(i, begin_of_next_backward, forward_rest + table.backward_rest[i + 2],
                   table.backward_link[i + 1]);
    }
    if (count == 0) return;
    max_sending.back() = std::min(max_sending.back(), max_end);
    max_fetching.back() = std::min(max_fetching.back(), max_end);
    for (std::size_t i = 0; i != count; ++i) max_fetching[i] -= table.required_bytes[i];
  }

 private:
  /// Limits the queues after a layer by a moment at which they may hold `room` bytes. Up to this
  /// moment the link sends `sent_since` bytes; after it, the link can still fetch `fetched_later`
  /// bytes.
  void limit_queues(std::size_t layer, std::int64_t room, int128 sent_since, int128 fetched_later) {
    auto const limit = [&](std::int64_t& most, int128 bytes) {
      most = static_cast<std::int64_t>(std::min<int128>(most, room + bytes));
    };
    limit(max_sending[layer], sent_since);
    limit(max_fetching[layer], fetched_later);
  }
};

}  // namespace omnibal::inline v0::detail
