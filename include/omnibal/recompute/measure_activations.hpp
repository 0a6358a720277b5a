// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Peak and added time of given choices for the activations of layers.

#include <omnibal/check.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/detail/activation_replay.hpp>
#include <omnibal/recompute/detail/activation_table.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct measure_activations_options {
  /// The number of micro-batches whose activations the device keeps at the same time.
  std::int64_t in_flight = 1;
};

/// The memory and the added time of given choices.
template <scalar_measure Time>
struct activation_usage {
  /// The sum of the recomputation times of the recomputed modules.
  Time added_time{};
  /// The peak of the bytes on the device.
  std::int64_t peak_bytes = 0;
  /// The bytes of one micro-batch that are kept, and that are offloaded.
  std::int64_t kept_bytes = 0;
  std::int64_t offloaded_bytes = 0;
  /// The bytes of one micro-batch that are on the device between its passes: kept bytes and bytes
  /// in a queue.
  std::int64_t held_bytes = 0;
  /// The peak of the bytes on the device during the forward pass and during the backward pass of
  /// each layer.
  std::vector<std::int64_t> forward_bytes;
  std::vector<std::int64_t> backward_bytes;

  [[nodiscard]] friend bool operator==(activation_usage const&, activation_usage const&) = default;
};

struct measure_activations_fn {
  /// Computes the bytes on the device during both passes of a micro-batch, and the time that
  /// recomputation adds. `choices[layer][module]` is the choice of a module.
  ///
  /// Layers run in order, then their backward passes in reverse order. Let `kept(i)` and
  /// `offloaded(i)` be the bytes of layer i with these choices, and F(i) and B(i) the whole bytes
  /// of activations that the link transfers during its forward and backward pass. Other traffic of
  /// the link reduces F and B. Even traffic reduces the rate. Traffic of a layer precedes all
  /// activations from the beginning of its pass on. The bytes not sent after layer i are `q(i) =
  /// max(0, q(i - 1) + offloaded(i) - F(i))`. The backward pass of layer i requires all its
  /// offloaded bytes when it begins. Fetches are as late as possible. Then `p(i) = offloaded(i) +
  /// max(0, p(i - 1) - B(i))` offloaded bytes of layers 1 to i are on the device at this time.
  /// Bytes that cannot be sent and fetched in time stay on the device. After the forward pass of
  /// layer i the queue has at least p(i) - B(i + 1) - ... - B(n) bytes. Before its backward pass
  /// the queue has at least q(i) - F(i + 1) - ... - F(n) - B(i + 1) - ... - B(n) bytes.
  ///
  /// The peak is the largest sum of kept bytes of layers 1 to i, queued bytes, and transient bytes.
  /// The transient bytes of a layer are added to the larger sum at the begin and at the end of its
  /// pass. When the backward pass of a layer begins, its recomputed bytes are on the device too.
  /// Each other micro-batch in flight adds the bytes kept by all layers and the larger queue at the
  /// end of the forward pass. Offloading never adds time, because no pass waits for the link.
  ///
  /// Complexity: linear in the number of modules. Memory: about 100 bytes for each layer.
  /// Determinism: portable; F and B are products of floating-point numbers. Errors:
  /// `std::invalid_argument` for choices that do not match the layers or have no valid value, for
  /// numbers that are negative or not finite, and for an in_flight below 1. Further errors:
  /// `std::overflow_error` if the bytes of all micro-batches or the sum of the times exceed their
  /// type.
  template <activation_layer_range Layers>
  [[nodiscard]] activation_usage<detail::activation_time<Layers>> operator()(
      Layers const& layers, std::vector<std::vector<activation_choice>> const& choices,
      offload_link const& link, measure_activations_options const& options = {}) const {
    using time_type = detail::activation_time<Layers>;
    detail::activation_table<time_type> table(name, link, options.in_flight);
    table.assign(layers);
    check_choices(table, choices);
    detail::saved_bytes saved(choices.size());
    activation_usage<time_type> result;
    for (std::size_t i = 0; i != choices.size(); ++i) {
      for (std::size_t j = 0; j != choices[i].size(); ++j) {
        std::size_t const index = table.offsets[i] + j;
        if (choices[i][j] == activation_choice::recompute) result.added_time += table.times[index];
        if (choices[i][j] == activation_choice::keep) saved.kept[i] += table.bytes[index];
        if (choices[i][j] == activation_choice::offload) saved.offloaded[i] += table.bytes[index];
      }
      result.kept_bytes += saved.kept[i];
      result.offloaded_bytes += saved.offloaded[i];
    }
    detail::activation_replay<time_type> replay(table);
    result.peak_bytes = replay.peak(
        saved, [&](std::size_t, std::int64_t forward_bytes, std::int64_t backward_bytes) {
          result.forward_bytes.push_back(forward_bytes);
          result.backward_bytes.push_back(backward_bytes);
        });
    result.held_bytes = replay.held();
    return result;
  }

 private:
  static constexpr std::string_view name = "measure_activations";

  template <class Time>
  static void check_choices(detail::activation_table<Time> const& table,
                            std::vector<std::vector<activation_choice>> const& choices) {
    detail::check_size(name, "choices", choices.size(), table.layers_size(), "layers");
    for (std::size_t i = 0; i != choices.size(); ++i) {
      detail::check_size(name, detail::joined_text("choices", "[", i, "]"), choices[i].size(),
                         table.offsets[i + 1] - table.offsets[i], "modules");
      for (std::size_t j = 0; j != choices[i].size(); ++j) {
        activation_choice const choice = choices[i][j];
        bool const is_required = table.needs[table.offsets[i] + j] == module_need::required;
        if (choice <= activation_choice::offload &&
            !(is_required && choice == activation_choice::recompute)) {
          continue;
        }
        detail::throw_invalid(name, detail::joined_text("choices", "[", i, "]"), " contains ",
                              static_cast<int>(choice), ", must be keep",
                              is_required ? "" : ", recompute", " or offload");
      }
    }
  }
};

/// Computes peak and added time of given choices; see `measure_activations_fn`.
inline constexpr measure_activations_fn measure_activations{};

}  // namespace omnibal::inline v0
