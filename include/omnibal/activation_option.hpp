// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ways of running a layer, among which a plan for recomputation chooses.

#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace omnibal::inline v0 {

/// One way of running a layer: keep all activations, recompute some of them, or recompute all. The
/// type is an aggregate; `activation_option{0.8, 100}` is an `activation_option<double>`.
template <scalar_measure Time = std::int64_t>
struct activation_option {
  /// The time of one micro-batch, in any unit that all layers share. The time is the sum of
  /// forward, backward and recomputation, or only the time that recomputation adds.
  Time time{};
  /// The bytes of activations that one micro-batch keeps from the forward pass of the layer to its
  /// backward pass.
  std::int64_t bytes = 0;
  /// Additional bytes while the backward pass of the layer runs, such as recomputed activations.
  std::int64_t transient_bytes = 0;

  [[nodiscard]] friend bool operator==(activation_option const&,
                                       activation_option const&) = default;
};

template <scalar_measure Time, std::integral... Bytes>
  requires(sizeof...(Bytes) <= 2)
activation_option(Time, Bytes...)
->activation_option<detail::working_weight<Time>>;

namespace detail {

template <class Member>
concept member_weight = scalar_measure<std::remove_cvref_t<Member>>;

template <class Member>
concept member_integer =
    scalar_measure<std::remove_cvref_t<Member>> && std::integral<std::remove_cvref_t<Member>>;

template <class Choice>
concept has_transient_bytes = requires(Choice const& way) {
  { way.transient_bytes } -> member_integer;
};

}  // namespace detail

/// A type with a `time`, a number, and `bytes`, an integer. The type may also have
/// `transient_bytes`; if it has none, they are zero.
template <class Choice>
concept any_activation_option = requires(Choice const& way) {
  { way.time } -> detail::member_weight;
  { way.bytes } -> detail::member_integer;
};

/// A range of the choices of one layer.
template <class Choices>
concept activation_option_range =
    std::ranges::input_range<Choices> && any_activation_option<std::ranges::range_value_t<Choices>>;

/// A functor from a layer to its choices; a member pointer is such a functor.
template <class Function, class Layer>
concept activation_option_function = std::regular_invocable<Function const&, Layer> &&
    activation_option_range<std::invoke_result_t<Function const&, Layer>>;

}  // namespace omnibal::inline v0
