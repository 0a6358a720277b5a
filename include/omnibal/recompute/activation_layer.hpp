// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers as modules whose activations are kept, recomputed or offloaded.

#include <omnibal/activation_option.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The choice for the activations of a module between its forward and its backward pass.
enum class activation_choice : std::uint8_t {
  keep,       ///< The activations stay on the device.
  recompute,  ///< The activations are dropped and computed again before the backward pass.
  offload,    ///< The activations are sent over the link and fetched before the backward pass.
};

/// Whether a module may be recomputed.
enum class module_need : std::uint8_t {
  optional,  ///< Any choice is possible.
  required,  ///< Recomputation starts from these activations, which are kept or offloaded.
};

/// A part of a layer with one choice for its activations.
template <scalar_measure Time = std::int64_t>
struct activation_module {
  /// The bytes of activations of one micro-batch.
  std::int64_t bytes = 0;
  /// The time that the recomputation of the module takes, in the unit of all times.
  Time recompute_time{};
  /// Whether the module may be recomputed. If the module is required, `recompute_time` is ignored.
  module_need need = module_need::optional;

  [[nodiscard]] friend bool operator==(activation_module const&,
                                       activation_module const&) = default;
};

/// A layer with its modules in the order of the forward pass.
template <scalar_measure Time = std::int64_t>
struct activation_layer {
  std::vector<activation_module<Time>> modules;
  /// The times of the forward and the backward pass of one micro-batch, without recomputation. The
  /// link transfers during these times.
  Time forward_time{};
  Time backward_time{};
  /// The additional bytes on the device while the forward or the backward pass of the layer runs.
  std::int64_t forward_transient_bytes = 0;
  std::int64_t backward_transient_bytes = 0;
  /// Other bytes, such as parameters or states of the optimizer, that the link starts to send when
  /// the forward pass of the layer begins, and to fetch when its backward pass begins. They precede
  /// the activations on the link. Remaining bytes are transferred during the next passes.
  std::int64_t forward_traffic_bytes = 0;
  std::int64_t backward_traffic_bytes = 0;

  [[nodiscard]] friend bool operator==(activation_layer const&, activation_layer const&) = default;
};

/// The link between a device and the memory to which activations are offloaded.
struct offload_link {
  /// The bytes that the link transfers in one unit of time in each direction, both directions at
  /// once. If several devices share the link, this is the share of one device. Zero means no link.
  double bytes_per_time = 0;
  /// Other bytes that the link sends during the forward passes of all layers and fetches during
  /// their backward passes, spread evenly over the times of these passes. For traffic of a whole
  /// step, divide its bytes by the number of micro-batches.
  std::int64_t forward_traffic_bytes = 0;
  std::int64_t backward_traffic_bytes = 0;
};

/// A type with an integer `bytes` and a number `recompute_time`. The type may also have `need`;
/// without `need`, every module is optional.
template <class Module>
concept any_activation_module = requires(Module const& part) {
  { part.bytes } -> detail::member_integer;
  { part.recompute_time } -> detail::member_weight;
};

/// A type with the members of `activation_layer`; `modules` is any range of modules. If the type
/// has no members for traffic, the layer has no traffic.
template <class Layer>
concept any_activation_layer = requires(Layer const& layer) {
  requires std::ranges::input_range<decltype((layer.modules))>;
  requires any_activation_module<std::ranges::range_value_t<decltype((layer.modules))>>;
  { layer.forward_time } -> detail::member_weight;
  { layer.backward_time } -> detail::member_weight;
  { layer.forward_transient_bytes } -> detail::member_integer;
  { layer.backward_transient_bytes } -> detail::member_integer;
};

/// A range of layers.
template <class Layers>
concept activation_layer_range = std::ranges::input_range<Layers const> &&
    any_activation_layer<std::remove_cvref_t<std::ranges::range_reference_t<Layers const>>>;

namespace detail {

template <class Module>
concept has_module_need = requires(Module const& part) {
  { part.need } -> std::convertible_to<module_need>;
};

template <class Layer>
concept has_layer_traffic = requires(Layer const& layer) {
  { layer.forward_traffic_bytes } -> member_integer;
  { layer.backward_traffic_bytes } -> member_integer;
};

template <class Layer>
using module_of = std::ranges::range_value_t<decltype((std::declval<Layer const&>().modules))>;

template <class Layer>
using activation_time_of =
    working_weight<std::remove_cvref_t<decltype(std::declval<Layer const&>().forward_time)>,
                   std::remove_cvref_t<decltype(std::declval<Layer const&>().backward_time)>,
                   std::remove_cvref_t<decltype(std::declval<module_of<Layer>>().recompute_time)>>;

/// The type of the sum of the times of such layers.
template <class Layers>
using activation_time =
    activation_time_of<std::remove_cvref_t<std::ranges::range_reference_t<Layers const>>>;

}  // namespace detail

}  // namespace omnibal::inline v0
