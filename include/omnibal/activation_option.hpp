// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices of how a layer runs and what it recomputes, among which a plan for recomputation
/// selects.

#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace omnibal::inline v0 {

/// One choice of how a layer runs: it keeps all activations, recomputes some of them, or recomputes
/// all of them. The type is an aggregate; `activation_option{0.8, 100}` is an
/// `activation_option<double>`.
template <scalar_measure Time = std::int64_t>
struct activation_option {
  /// The time of the layer for one micro-batch, in the same unit for all layers. The time is the
  /// sum of forward pass, backward pass and recomputation, or only the time that recomputation
  /// adds.
  Time time{};
  /// The bytes of activations that one micro-batch keeps from the forward pass of the layer to its
  /// backward pass.
  std::int64_t bytes = 0;
  /// The additional bytes that the layer requires while its backward pass runs, such as recomputed
  /// activations.
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

/// A type with the members `time`, a number, and `bytes`, an integer. The type may also have the
/// member `transient_bytes`; otherwise the transient bytes are zero.
template <class Choice>
concept any_activation_option = requires(Choice const& way) {
  { way.time } -> detail::member_weight;
  { way.bytes } -> detail::member_integer;
};

/// A range of the choices of one layer.
template <class Choices>
concept activation_option_range =
    std::ranges::input_range<Choices> && any_activation_option<std::ranges::range_value_t<Choices>>;

/// A functor from a layer to the range of its choices. A member pointer is such a functor.
template <class Function, class Layer>
concept activation_option_function = std::regular_invocable<Function const&, Layer> &&
    activation_option_range<std::invoke_result_t<Function const&, Layer>>;

}  // namespace omnibal::inline v0
