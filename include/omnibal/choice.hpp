#pragma once

/// \file
/// Ways of running a layer, between which a plan for recomputation chooses.

#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace omnibal::inline v0 {

/// One way of running a layer: keep all activations, recompute some of them, recompute all. An
/// aggregate; `choice{0.8, 100}` is a `choice<double>`.
template <weight Time = std::int64_t>
struct choice {
  /// What it takes for one micro-batch, in any unit that all layers share: the time of forward,
  /// backward and recomputation together, or only what recomputation adds.
  Time time{};
  /// The activations that one micro-batch keeps from the layer's forward pass to its backward pass.
  std::int64_t bytes = 0;
  /// What exists besides while the layer's backward pass runs, such as recomputed activations.
  std::int64_t transient_bytes = 0;

  [[nodiscard]] friend bool operator==(choice const&, choice const&) = default;
};

template <weight Time, std::integral... Bytes>
  requires(sizeof...(Bytes) <= 2)
choice(Time, Bytes...)
->choice<detail::working_weight<Time>>;

namespace detail {

template <class Member>
concept member_weight = weight<std::remove_cvref_t<Member>>;

template <class Member>
concept member_integer =
    weight<std::remove_cvref_t<Member>> && std::integral<std::remove_cvref_t<Member>>;

template <class Choice>
concept has_transient_bytes = requires(Choice const& way) {
  { way.transient_bytes } -> member_integer;
};

}  // namespace detail

/// Anything with a `time`, a weight, and `bytes`, an integer. It may have `transient_bytes` too; if
/// it has none, they are zero.
template <class Choice>
concept layer_choice = requires(Choice const& way) {
  { way.time } -> detail::member_weight;
  { way.bytes } -> detail::member_integer;
};

/// The choices of one layer.
template <class Choices>
concept choice_range =
    std::ranges::input_range<Choices> && layer_choice<std::ranges::range_value_t<Choices>>;

/// A functor from a layer to its choices. A member pointer is one.
template <class Function, class Layer>
concept choice_function = std::regular_invocable<Function const&, Layer> &&
    choice_range<std::invoke_result_t<Function const&, Layer>>;

}  // namespace omnibal::inline v0
